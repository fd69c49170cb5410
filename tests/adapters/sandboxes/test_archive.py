"""Tests of archives: what they leave out, and what they refuse to write."""

from __future__ import annotations

import io
import os
import socket
import tarfile
from pathlib import Path
from threading import Event

import pytest

from agentcompass.adapters.sandboxes.archive import Stopped, Valve, copy, pack, unpack
from agentcompass.core.errors import SandboxError


def archive(*members: tuple[str, bytes, str]) -> io.BytesIO:
    """Make an archive of members: name, type, and link target or content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, text in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            member.mode = 0o755
            if kind == tarfile.REGTYPE:
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text.encode()))
            else:
                member.linkname = text
                tar.addfile(member)
    out.seek(0)
    return out


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A target beside a file that must not change."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "victim").write_text("safe")
    return tmp_path / "target"


ROOT = ("r", tarfile.DIRTYPE, "")
ESCAPES = {
    "parent": [ROOT, ("r/../outside/victim", tarfile.REGTYPE, "evil")],
    "root-is-parent": [("../outside/victim", tarfile.REGTYPE, "evil")],
    "absolute": [("/outside/victim", tarfile.REGTYPE, "evil")],
    "through-own-link": [ROOT, ("r/l", tarfile.SYMTYPE, "../outside"), ("r/l/victim", tarfile.REGTYPE, "evil")],
    "folder-through-link": [ROOT, ("r/l", tarfile.SYMTYPE, "../outside"), ("r/l/new", tarfile.DIRTYPE, "")],
    "hard-link": [ROOT, ("r/h", tarfile.LNKTYPE, "r/../../outside/victim"), ("r/h", tarfile.REGTYPE, "evil")],
    "absolute-hard-link": [ROOT, ("r/h", tarfile.LNKTYPE, "/etc/passwd")],
    "hard-link-to-link": [ROOT, ("r/l", tarfile.SYMTYPE, "../outside/victim"), ("r/h", tarfile.LNKTYPE, "r/l")],
    "root-is-link": [("r", tarfile.SYMTYPE, "outside"), ("r/victim", tarfile.REGTYPE, "evil")],
}


@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_lands_outside(target: Path, name: str) -> None:
    """A member that would lie outside the target is refused, by whatever way it tries."""
    with pytest.raises(SandboxError, match="archive member"):
        unpack(archive(*ESCAPES[name]), str(target))

    assert ["victim"] == os.listdir(target.parent / "outside")
    assert "safe" == (target.parent / "outside" / "victim").read_text()
    assert 1 == (target.parent / "outside" / "victim").stat().st_nlink


def test_planted_links_are_replaced(target: Path) -> None:
    """A link that lies in wait where a member belongs is not followed."""
    target.mkdir()
    (target / "file").symlink_to("../outside/victim")
    (target / "folder").symlink_to("../outside")
    unpack(
        archive(
            ROOT,
            ("r/file", tarfile.REGTYPE, "new"),
            ("r/folder", tarfile.DIRTYPE, ""),
            ("r/folder/victim", tarfile.REGTYPE, "new"),
        ),
        str(target),
    )

    assert "safe" == (target.parent / "outside" / "victim").read_text()
    assert "new" == (target / "file").read_text()
    assert not (target / "folder").is_symlink()


def test_members_replace_what_is_in_the_way(target: Path) -> None:
    """A folder gives way to a file, and a file to a folder."""
    (target / "a" / "b").mkdir(parents=True)
    (target / "c").write_text("")
    unpack(archive(ROOT, ("r/a", tarfile.REGTYPE, "x"), ("r/c", tarfile.DIRTYPE, "")), str(target))

    assert (True, True) == ((target / "a").is_file(), (target / "c").is_dir())


def test_special_files_are_neither_packed_nor_made(target: Path, tmp_path: Path) -> None:
    """Pipes, sockets and devices do not travel, and do not stop what does."""
    source = tmp_path / "source"
    source.mkdir()
    os.mkfifo(source / "pipe")
    (source / "file").write_text("x")
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(source, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{folder}/s" if os.path.exists("/proc/self/fd") else str(source / "s"))
        os.close(folder)
        copy(str(source), str(target), Event())
    unpack(archive(ROOT, ("r/p", tarfile.FIFOTYPE, ""), ("r/d", tarfile.CHRTYPE, "")), str(tmp_path / "other"))

    assert ["file"] == os.listdir(target)
    assert [] == os.listdir(tmp_path / "other")


def test_hard_links_and_times_are_kept_but_no_privileges(target: Path, tmp_path: Path) -> None:
    """Two names of one file stay so; set-user-id bits do not travel."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("x")
    os.link(source / "a", source / "b")
    (source / "a").chmod(0o6755)
    os.utime(source / "a", (1, 1_000_000_000.5))
    os.utime(source, (1, 1_000_000_000))
    copy(str(source), str(target), Event())

    assert (target / "a").stat().st_ino == (target / "b").stat().st_ino
    assert (0o755, 1_000_000_000.5) == ((target / "a").stat().st_mode & 0o7777, (target / "a").stat().st_mtime)
    assert 1_000_000_000 == target.stat().st_mtime


def test_any_file_name_travels(target: Path, tmp_path: Path) -> None:
    """Names that are no UTF-8, long, or look like options are kept as they are."""
    source = os.fsencode(tmp_path / "source")
    os.mkdir(source)
    names = sorted([b"\xff\xfe", b"x" * 255, b"-rf", "é\n".encode(), b"..."])
    for name in names:
        Path(os.fsdecode(source + b"/" + name)).write_bytes(name)
    copy(os.fsdecode(source), str(target), Event())

    assert names == sorted(os.listdir(os.fsencode(target)))
    assert names == sorted(path.read_bytes() for path in target.iterdir())


def test_failure_of_either_end_is_told(target: Path, tmp_path: Path) -> None:
    """The cause reaches the caller, whichever end met it, and nobody hangs."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "large").write_bytes(b"x" * 3_000_000)
    with pytest.raises(OSError, match="name too long"):
        copy(str(source), str(target / ("x" * 300)), Event())
    with pytest.raises(FileNotFoundError):
        copy(str(tmp_path / "missing"), str(tmp_path / "other"), Event())
    with pytest.raises(SandboxError, match="broken archive"):
        unpack(io.BytesIO(b"no archive" * 100), str(tmp_path / "other"))


def test_stop_ends_a_copy(target: Path, tmp_path: Path) -> None:
    """A copy that nobody wants ends at the next block."""
    (tmp_path / "source").write_bytes(b"x" * 100_000)
    stop = Event()
    stop.set()
    with pytest.raises(Stopped):
        copy(str(tmp_path / "source"), str(target), stop)
    with pytest.raises(Stopped):
        pack(str(tmp_path / "source"), Valve(io.BytesIO(), stop))
