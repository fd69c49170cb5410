"""Names of tasks and runs as file names.

A task's name is reversible and has no namesakes, on disks that fold case or normalize letters too: what is not a safe
ASCII character (or a letter of a script without cases) is written as %XX of its UTF-8; a mask of the upper-case
positions follows after ``~``. A name that would be too long ends in a digest instead, and is not reversible.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

LONGEST = 180  #: bytes of a task's file name, so that prefixes, suffixes and ".json" fit into the usual 255

_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.=+,@")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)")


def _plain(character: str) -> bool:
    if character in _SAFE:
        return True
    if "\u1100" <= character <= "\u11ff":  # conjoining jamo, which a disk may normalize to syllables
        return False
    return (
        unicodedata.category(character) == "Lo"
        and unicodedata.normalize("NFKD", character) == character
        and character.lower() == character.upper()
    )


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def task_file_name(task_id: str) -> str:
    """Return the file name of *task_id*, without an extension."""
    body = "".join(c if _plain(c) else _percent(c) for c in task_id)
    if body.startswith((".", "_", "-")) or _RESERVED.match(body):
        body = _percent(body[0]) + body[1:]
    if body.endswith("."):
        body = body[:-1] + "%2E"
    capitals = sum(1 << i for i, c in enumerate(c for c in task_id) if c in _SAFE and c.isupper())
    name = f"{body}~{capitals:x}" if capitals else body
    if not name or len(name.encode("utf-8")) > LONGEST:
        digest = hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        start = body.encode("utf-8")[: LONGEST - 40].decode("utf-8", "ignore")
        return f"{start}~~{digest}"
    return name


def task_id_of(file_name: str) -> str | None:
    """Return the task whose file name is *file_name*, or None where the name does not tell."""
    if "~~" in file_name:
        return None
    body = file_name.partition("~")[0]
    raw = re.sub(rb"%([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), body.encode("utf-8", "surrogatepass"))
    try:
        task_id = raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return task_id if task_file_name(task_id) == file_name else None


def safe_name(text: str) -> str:
    """Return *text* as one readable folder name: letters of any script stay, everything else becomes ``_``."""
    normal = unicodedata.normalize("NFC", text)
    name = re.sub(r"_+", "_", "".join(c if c.isalnum() or c in "-.=+@" else "_" for c in normal)).strip("._-")
    if _RESERVED.match(name):
        name = f"_{name}"
    raw = name.encode("utf-8", "replace")
    if len(raw) > 120:
        name = raw[:100].decode("utf-8", "ignore") + "~" + hashlib.sha256(raw).hexdigest()[:12]
    return name or "_"


def run_namespace(model: str | None, benchmark: str, harness: str) -> str:
    """Return the folder of the runs of one combination: ``<model>_<benchmark>_<harness>``, without a missing part."""
    return "_".join(safe_name(part) for part in (model, benchmark, harness) if part)


def run_levels(run_name: str) -> tuple[str, ...]:
    """Return the folders that a run name stands for; ``/`` and ``\\`` separate them, ``.`` and ``..`` are dropped."""
    parts = (part.strip() for part in re.split(r"[/\\]+", run_name))
    return tuple(safe_name(part) for part in parts if part not in ("", ".", ".."))
