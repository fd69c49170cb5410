"""Secrets are replaced wherever something is written: known values, values under telling names, well-known formats.

Free text is searched for known values of 8 characters or more; shorter ones would hide ordinary words. A guess (the
value of an environment variable with a telling name) that is a mere word is not hunted either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

HIDDEN = "********"
SHORTEST = 8

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SECRET_WORDS = frozenset(
    "secret secrets password passwd pwd passphrase token jwt bearer cookie authorization credential credentials "
    "apikey accesskey secretkey privatekey accesstoken clientsecret aksk".split()
)
_HARMLESS_KEYS = frozenset(
    "sort primary foreign partition cache public group row hash map index request object".split()
)
_HARMLESS_TOKENS = frozenset(
    "completion prompt max min eos bos pad stop start end num per special image cached".split()
)
_CONTAINERS = frozenset(
    "auth authentication credentials headers env env_variables run_env_variables evaluation_env_variables "
    "evaluation_environment_env_variables".split()
)
_FORMATS = re.compile(
    r"\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
    r"|(?<=Bearer )[A-Za-z0-9._~+/=-]{8,}|(?<=://)[^\s/@:]{1,200}:[^\s/@]{1,200}(?=@)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----"
)
_MAY_HOLD_FORMAT = re.compile(r"sk-|gh[pousr]_|github_pat_|hf_|AKIA|AIza|xox|eyJ|Bearer |://|PRIVATE KEY")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether the value under *name* is a credential, by the words that the name is made of."""
    words = [word for word in re.split(r"[^a-z0-9]+", _CAMEL.sub("_", name).lower()) if word]
    if not words:
        return False
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "key":
        return bool(before) and before not in _HARMLESS_KEYS
    if words[-1] == "token":
        return before not in _HARMLESS_TOKENS
    return words[-1] in _SECRET_WORDS


def secrets_among(env: Mapping[str, str]) -> list[str]:
    """Return the values of *env* that are worth hunting: under a telling name, long enough, and no mere word."""
    return [
        value
        for name, value in env.items()
        if is_secret_name(name) and len(value) >= SHORTEST and not (value.isalpha() and len(value) < 16)
    ]


class Redactor:
    """Replaces *secrets* (and what looks like one) in texts and documents."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Hunt these values too; those shorter than 8 characters are ignored."""
        for secret in secrets:
            if len(secret) >= SHORTEST:
                self._secrets |= {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        if self._secrets:
            alternatives = sorted(self._secrets, key=lambda secret: (-len(secret), secret))
            self._known = re.compile("|".join(map(re.escape, alternatives)))

    def text(self, text: str) -> str:
        """Return *text* without secrets."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        if _MAY_HOLD_FORMAT.search(text):
            text = _FORMATS.sub(HIDDEN, text)
        return text

    def document(self, value: Any) -> Any:
        """Return the JSON *value* without secrets, keys that name a secret included."""
        if isinstance(value, str):
            return self.text(value) if len(value) >= SHORTEST else value
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._entry(str(key), entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.document(entry) for entry in value]
        return value

    def _entry(self, key: str, value: Any) -> Any:
        if value and is_secret_name(key) and not isinstance(value, bool | int | float):
            return HIDDEN
        if key in _CONTAINERS and isinstance(value, Mapping):
            return {name: hide_leaves(entry) for name, entry in value.items()}
        return self.document(value)


def hide_leaves(value: Any) -> Any:
    """Return *value* with every non-empty text in it hidden, keys kept."""
    if isinstance(value, Mapping):
        return {key: hide_leaves(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [hide_leaves(entry) for entry in value]
    return HIDDEN if isinstance(value, str) and value else value
