"""Secrets are replaced wherever something is written: known values, values under telling names, well-known formats.

Free text is searched for known values of 8 characters or more; shorter ones would hide ordinary words. A guess (the
value of an environment variable with a telling name) that is a mere word is not hunted either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from .records.jsonable import jsonable

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
        self._suspicious = _MAY_HOLD_FORMAT
        self._keys: dict[str, tuple[str, _KeyKind]] = {}  # what is known of keys: documents repeat the same few
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Hunt these values too; those shorter than 8 characters are ignored."""
        for secret in secrets:
            if len(secret) >= SHORTEST:
                self._secrets |= {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        if self._secrets:
            alternatives = "|".join(map(re.escape, sorted(self._secrets, key=lambda secret: (-len(secret), secret))))
            self._known = re.compile(alternatives)
            self._suspicious = re.compile(f"{_MAY_HOLD_FORMAT.pattern}|{alternatives}")
        self._keys.clear()

    def text(self, text: str) -> str:
        """Return *text* without secrets."""
        if not self._suspicious.search(text):
            return text
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        return _FORMATS.sub(HIDDEN, text)

    def document(self, value: Any) -> Any:
        """Return the JSON *value* without secrets, keys that name a secret included."""
        try:
            return self._walk(value)
        except RecursionError:
            return self._walk(jsonable(value))

    def _walk(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value) if len(value) >= SHORTEST else value
        if kind is dict:
            return {name: entry for key, item in value.items() for name, entry in (self._entry(key, item),)}
        if kind is list or kind is tuple:
            return [self._walk(entry) for entry in value]
        if value is None or kind is bool or kind is int or kind is float:
            return value
        return self._walk(jsonable(value))

    def _entry(self, key: Any, value: Any) -> tuple[str, Any]:
        name, kind = self._keys.get(key) or self._learn_key(str(key))
        if value is None or kind is _KeyKind.PLAIN:
            return name, self._walk(value)
        if kind is _KeyKind.SECRET and value and not isinstance(value, bool | int | float):
            return name, HIDDEN
        if kind is _KeyKind.CONTAINER and isinstance(value, Mapping):
            return name, {self.text(str(inner)): hide_leaves(entry) for inner, entry in value.items()}
        return name, self._walk(value)

    def _learn_key(self, key: str) -> tuple[str, _KeyKind]:
        kind = _KeyKind.SECRET if is_secret_name(key) else _KeyKind.CONTAINER if key in _CONTAINERS else _KeyKind.PLAIN
        known = (self.text(key), kind)
        if len(self._keys) < 4096:
            self._keys[key] = known
        return known


class _KeyKind(Enum):
    PLAIN = "plain"
    SECRET = "secret"  # noqa: S105
    CONTAINER = "container"


def hide_leaves(value: Any) -> Any:
    """Return *value* with every non-empty text in it hidden, keys kept."""
    if isinstance(value, Mapping):
        return {key: hide_leaves(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [hide_leaves(entry) for entry in value]
    return HIDDEN if isinstance(value, str) and value else value
