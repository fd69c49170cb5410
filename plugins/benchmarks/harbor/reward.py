"""What a verifier wrote, as rewards by key, or the reason why it is none."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

JSON_FILE, TEXT_FILE = "reward.json", "reward.txt"
REWARD_FILES = (JSON_FILE, TEXT_FILE)  #: the first that is there counts
USUAL = "reward"  #: the key of the reward that is the score


class RewardInvalidError(Exception):
    """A reward file is no reward, with the reason."""


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards by key, and the file that they were read from."""

    values: Mapping[str, float]
    file: str


def parse(name: str, data: bytes) -> Rewards:
    """Return the rewards in the file *name*.

    Raises:
        RewardInvalidError: it holds none.
    """
    text = data.decode("utf-8-sig", "replace").strip()
    if not text:
        raise RewardInvalidError(f"{name} is empty")
    values = _json(text) if name == JSON_FILE else {USUAL: _float(name, text)}
    return Rewards(values, name)


def primary(rewards: Rewards, key: str | None) -> float | None:
    """Return the reward that is the score: that of *key*, else ``reward``, else the only one; None if none is."""
    values = rewards.values
    if key is not None:
        return values.get(key)
    if USUAL in values:
        return values[USUAL]
    return next(iter(values.values())) if len(values) == 1 else None


def _float(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise RewardInvalidError(f"{name} holds no number: {text[:80]!r}") from None
    return _finite(name, value)


def _finite(where: str, value: float) -> float:
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        finite = False
    if not finite:
        raise RewardInvalidError(f"{where} holds no finite number")
    return float(value)


def _json(text: str) -> dict[str, float]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise RewardInvalidError(f"{JSON_FILE} is no JSON: {exc}") from None
    if not isinstance(document, dict):
        raise RewardInvalidError(f"{JSON_FILE} is no object of numbers: {text[:80]!r}")
    if not document:
        raise RewardInvalidError(f"{JSON_FILE} holds no reward")
    return {key: _entry(key, value) for key, value in document.items()}


def _entry(key: str, value: Any) -> float:
    if not isinstance(value, int | float):
        raise RewardInvalidError(f"{JSON_FILE}: {key!r} is no number: {str(value)[:80]!r}")
    return _finite(f"{JSON_FILE}: {key!r}", value)
