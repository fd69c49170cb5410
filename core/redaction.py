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
from typing import Any, NamedTuple

from .records.jsonable import jsonable

HIDDEN = "********"
SHORTEST = 8

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SECRET_WORDS = frozenset(
    "secret secrets password passwords passwd pwd passphrase jwt bearer cookie cookies authorization credential "
    "credentials apikey apikeys accesskey secretkey privatekey accesstoken clientsecret aksk".split()
)
_HARMLESS_KEYS = frozenset(
    "sort primary foreign partition cache public group row hash map index request object session answer dict json "
    "item lookup label category task config registry routing natural composite unique field column shard".split()
)
_HARMLESS_TOKENS = frozenset(
    "completion prompt max min eos bos pad stop start end num per special image cached next last first input output "
    "total reasoning mask sep unk cls".split()
)
_SECRET_PLURALS = frozenset("api access secret private auth bearer refresh".split())
_CONTAINERS = frozenset(
    "auth authentication credentials headers extra_headers default_headers env env_variables run_env_variables "
    "evaluation_env_variables evaluation_environment_env_variables".split()
)
#: Mappings of our records whose keys are names of tasks and categories: a task called `reset-password` is no password.
_TABLES = frozenset("resolved_execution_plans active_tasks categories hierarchy children".split())
#: A variable that every shell sets, whatever its name seems to say: it holds the working directory.
_NO_SECRETS = frozenset({"PWD"})


class _Format(NamedTuple):
    """A well-known form of secrets: texts without *marker* have none; *kept* stays of what *pattern* finds.

    A pattern starts with literal text, and none of its repetitions can be entered again from within: a search takes
    time in proportion to the text, also in one that an agent has made to be slow.
    """

    marker: str
    pattern: re.Pattern[str]
    kept: str = ""


def _prefixed(marker: str, rest: str, kinds: str = "") -> _Format:
    """Return the format of keys that begin with *marker* and a letter among *kinds*, at the beginning of a word."""
    start = marker + kinds
    return _Format(marker, re.compile(rf"{start}(?<![A-Za-z0-9_-]{start}){rest}"))


_QUERY_NAMES = ("key", "token", "secret", "password")
_QUERY = re.compile(r"([?&](?:(?:api|access|auth|client|secret)[_-]?)?(?:key|token|secret|password)=)[^&#\s\"'<>]{6,}")
_FORMATS = (
    _prefixed("sk-", r"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"),
    *(_prefixed(f"gh{kind}_", r"[A-Za-z0-9]{20,}") for kind in "pousr"),
    _prefixed("github_pat_", r"[A-Za-z0-9_]{20,}"),
    _prefixed("glpat-", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("hf_", r"[A-Za-z0-9]{20,}"),
    _prefixed("gsk_", r"[A-Za-z0-9]{20,}"),
    _prefixed("xai-", r"[A-Za-z0-9]{20,}"),
    _prefixed("AKIA", r"[0-9A-Z]{16}\b"),
    _prefixed("ASIA", r"[0-9A-Z]{16}\b"),
    _prefixed("AIza", r"[0-9A-Za-z_-]{35}"),
    _prefixed("xox", r"-[A-Za-z0-9-]{10,}", "[abprs]"),
    _prefixed("eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    _Format("Bearer ", re.compile(r"Bearer (?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{8,}"), "Bearer "),
    _Format("://", re.compile(r"://[^\s/@:]{0,200}:[^\s/@]{1,200}(?=@)"), "://"),
    _Format(
        "PRIVATE KEY-----",
        re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----)[\s\S])*-----END [A-Z ]{0,40}PRIVATE KEY-----"),
    ),
    *(_Format(f"{name}=", _QUERY, r"\1") for name in _QUERY_NAMES),
)


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
    if words[-1] in ("keys", "tokens"):
        return before in _SECRET_PLURALS
    return words[-1] in _SECRET_WORDS


def secrets_among(env: Mapping[str, str]) -> list[str]:
    """Return the values of *env* that are worth hunting: under a telling name, long enough, and no mere word."""
    telling = [value for name, value in env.items() if is_secret_name(name) and name not in _NO_SECRETS]
    return [value for value in telling if len(value) >= SHORTEST and not (value.isalpha() and len(value) < 16)]


class Redactor:
    """Replaces *secrets* (and what looks like one) in texts and documents."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()  # in every form that a text may hold them in, the longest first
        self._keys: dict[str, tuple[str, _KeyKind]] = {}  # what is known of keys: documents repeat the same few
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Hunt these values too, without the white space around them; those shorter than 8 characters are ignored."""
        forms = set(self._secrets)
        for secret in map(str.strip, secrets):
            if len(secret) >= SHORTEST:
                forms |= {secret, repr(secret)[1:-1]}
                forms |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        self._secrets = tuple(sorted(forms, key=lambda secret: (-len(secret), secret)))
        self._keys.clear()

    @classmethod
    def of_all(cls, redactors: Iterable[Redactor]) -> Redactor:
        """Return a redactor that knows what all *redactors* know."""
        joined = cls()
        joined._secrets = tuple(
            sorted({form for each in redactors for form in each._secrets}, key=lambda secret: (-len(secret), secret))
        )
        return joined

    def text(self, text: str) -> str:
        """Return *text* without secrets."""
        if len(text) < SHORTEST:
            return text
        for secret in self._secrets:  # mere searches: a regular expression of them all takes many times as long
            if secret in text:
                text = text.replace(secret, HIDDEN)
        for marker, pattern, kept in _FORMATS:
            if marker in text:
                text = pattern.sub(kept + HIDDEN, text)
        return text

    def document(self, value: Any) -> Any:
        """Return the JSON *value* without secrets, keys that name a secret included."""
        try:
            return self._walk(value)
        except RecursionError:
            return self._walk(jsonable(value))

    def _walk(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value)
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
        if kind is _KeyKind.CONTAINER and isinstance(value, Mapping):
            return name, self._walk(hide_leaves(value))
        telling = kind is _KeyKind.SECRET or (kind is _KeyKind.CONTAINER and is_secret_name(str(key)))
        if telling and value and not isinstance(value, bool | int | float):
            return name, HIDDEN
        if kind is _KeyKind.TABLE and isinstance(value, Mapping):
            return name, dict(self._row(inner, entry) for inner, entry in value.items())
        return name, self._walk(value)

    def _row(self, key: Any, value: Any) -> tuple[str, Any]:
        return (self.text(str(key)), self._walk(value)) if isinstance(value, Mapping) else self._entry(key, value)

    def _learn_key(self, key: str) -> tuple[str, _KeyKind]:
        known = (self.text(key), _kind(key))
        if len(self._keys) < 4096:
            self._keys[key] = known
        return known


class _KeyKind(Enum):
    PLAIN = "plain"
    SECRET = "secret"  # noqa: S105
    CONTAINER = "container"
    TABLE = "table"


def _kind(key: str) -> _KeyKind:
    if is_secret_name(key):
        return _KeyKind.CONTAINER if key in _CONTAINERS else _KeyKind.SECRET
    if key in _CONTAINERS:
        return _KeyKind.CONTAINER
    return _KeyKind.TABLE if key in _TABLES else _KeyKind.PLAIN


def hide_leaves(value: Any) -> Any:
    """Return *value* with everything in it hidden that may be a secret: all but keys, numbers and empty texts."""
    if isinstance(value, Mapping):
        return {key: hide_leaves(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [hide_leaves(entry) for entry in value]
    return value if value is None or value == "" or isinstance(value, bool | int | float) else HIDDEN
