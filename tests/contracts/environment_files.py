"""The contract of sandboxes, the files: what is written, read, copied and removed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agentcompass.core.errors import TransferLimitError
from agentcompass.core.model.environment import TransferLimits
from agentcompass.ports.environment import Environment

from .environment_tools import in_sandbox


def tree_of(root: Path) -> dict[str, tuple[str, int, bytes | str | None]]:
    """Describe every file, folder and link below *root*: kind, mode, content."""
    found: dict[str, tuple[str, int, bytes | str | None]] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        name = str(path.relative_to(root))
        if stat.S_ISLNK(mode):
            found[name] = ("link", 0, os.readlink(path))
        elif stat.S_ISDIR(mode):
            found[name] = ("folder", stat.S_IMODE(mode), None)
        else:
            found[name] = ("file", stat.S_IMODE(mode), path.read_bytes())
    return found


def plant_tree(root: Path) -> Path:
    """Make a tree that has everything a copy must keep."""
    (root / "empty").mkdir(parents=True)
    (root / "closed").mkdir()
    (root / "closed" / "inner.txt").write_bytes(b"inside\n")
    (root / "run.sh").write_bytes(b"#!/bin/sh\necho ran\n")
    (root / "raw.bin").write_bytes(bytes(range(256)) * 300)
    (root / "none").write_bytes(b"")
    (root / "name with blank\nand line").write_bytes(b"x")
    (root / "to-file").symlink_to("raw.bin")
    (root / "to-nowhere").symlink_to("/no/such/place")
    (root / "to-folder").symlink_to("closed")
    for name, mode in {"run.sh": 0o755, "raw.bin": 0o640, "none": 0o600, "empty": 0o750, "closed": 0o555}.items():
        (root / name).chmod(mode)
    return root


class FileContract:
    """How files and trees get into every sandbox, and out of it."""

    @in_sandbox
    async def test_written_file_is_read_back(self, env: Environment) -> None:
        """Folders are made, bytes and mode are kept, commands see the file."""
        data = bytes(range(256)) * 1000
        await env.write_file("a/b/run", data)
        await env.write_file(f"{env.workdir}/a/script", b"#!/bin/sh\necho ran\n", mode=0o750)
        result = await env.exec(["./a/script"])
        modes = await env.exec("ls -l a/script a/b/run")

        assert data == await env.read_file("a/b/run")
        assert data == await env.read_file(f"{env.workdir}/a/b/run")
        assert b"ran\n" == result.stdout
        assert [b"-rw-r--r--", b"-rwxr-x---"] == sorted(line[:10] for line in modes.stdout.splitlines())

    @in_sandbox
    async def test_existing_file_is_replaced_whole(self, env: Environment) -> None:
        """The old content and mode are gone; a link is replaced, not followed."""
        await env.write_file("file", b"long old content", mode=0o600)
        await env.exec("ln -s file link")
        await env.write_file("file", b"new")
        await env.write_file("link", b"mine")
        listed = await env.exec("ls -A; ls -l file | cut -c1-10")

        assert (b"new", b"mine") == (await env.read_file("file"), await env.read_file("link"))
        assert b"file\nlink\n-rw-r--r--\n" == listed.stdout

    @in_sandbox
    async def test_what_is_no_regular_file_reads_as_none(self, env: Environment) -> None:
        """Missing files, folders, pipes, devices and broken links are None, without a hang."""
        await env.write_file("plain", b"")
        await env.exec("mkdir folder; mkfifo pipe; ln -s nowhere broken; ln -s broken2 broken2; ln -s plain link")
        names = ["missing", "no/such/folder", "plain/x", "folder", ".", "pipe", "broken", "broken2", "/dev/zero"]

        assert [None] * len(names) == [await env.read_file(name) for name in names]
        assert b"" == await env.read_file("plain")

    @in_sandbox
    async def test_reading_is_limited(self, env: Environment) -> None:
        """A file larger than the limit is a ValueError; one of just that size is read."""
        await env.write_file("ten", b"0123456789")

        assert b"0123456789" == await env.read_file("ten", limit=10)
        with pytest.raises(ValueError, match="9"):
            await env.read_file("ten", limit=9)

    @in_sandbox
    async def test_tree_survives_the_round_trip(self, env: Environment, tmp_path: Path) -> None:
        """Modes, links, empty folders and odd names are the same there and back again."""
        source = plant_tree(tmp_path / "source")
        await env.upload(str(source), "deep/er/copy")
        seen = await env.exec("./run.sh; ls empty; readlink to-nowhere; cat to-folder/inner.txt", cwd="deep/er/copy")
        await env.download("deep/er/copy", str(tmp_path / "new" / "back"))

        assert b"ran\n/no/such/place\ninside\n" == seen.stdout
        assert 10 == len(tree_of(source))
        assert tree_of(source) == tree_of(tmp_path / "new" / "back")

    @in_sandbox
    async def test_single_file_is_copied(self, env: Environment, tmp_path: Path) -> None:
        """A file becomes the target, with its mode, in place of what was there."""
        source = tmp_path / "source"
        source.write_bytes(b"\xff\x00data")
        source.chmod(0o711)
        await env.write_file("there", b"something longer than that")
        await env.upload(str(source), "there")
        await env.upload(str(source), "new/folder/there")
        await env.download("there", str(tmp_path / "back"))

        assert b"\xff\x00data" == await env.read_file("there")
        assert b"\xff\x00data" == await env.read_file("new/folder/there")
        assert b"\xff\x00data" == (tmp_path / "back").read_bytes()
        assert 0o711 == stat.S_IMODE((tmp_path / "back").stat().st_mode)

    @in_sandbox
    async def test_upload_into_a_folder_keeps_the_rest(self, env: Environment, tmp_path: Path) -> None:
        """A tree is laid over the folder that is there: its files replace, others stay."""
        (tmp_path / "source" / "sub").mkdir(parents=True)
        (tmp_path / "source" / "sub" / "both").write_bytes(b"new")
        await env.exec("mkdir -p target/sub; echo old >target/sub/both; echo own >target/sub/own")
        await env.upload(str(tmp_path / "source"), "target")

        assert b"new" == await env.read_file("target/sub/both")
        assert b"own\n" == await env.read_file("target/sub/own")

    @in_sandbox
    async def test_missing_source_is_a_file_not_found_error(self, env: Environment, tmp_path: Path) -> None:
        """Copying what is not there says so and makes nothing."""
        with pytest.raises(FileNotFoundError):
            await env.download("missing", str(tmp_path / "back"))
        with pytest.raises(FileNotFoundError):
            await env.upload(str(tmp_path / "missing"), "there")

        assert [] == list(tmp_path.iterdir())
        assert b"" == (await env.exec("ls -A")).stdout

    @in_sandbox
    async def test_remove_takes_files_trees_and_links(self, env: Environment) -> None:
        """What is named goes, whatever it is; what a link points to stays; nothing there is no error."""
        await env.exec(
            "mkdir -p tree/a/b kept; touch f tree/a/f kept/f; chmod 555 tree/a; ln -s kept link; ln -s /no broken"
        )
        for name in ("tree", "link", "broken", "f", "f", "missing/too", "kept/f/no"):
            await env.remove(name)
        listed = await env.exec("ls -A; ls kept")

        assert b"kept\nf\n" == listed.stdout

    @in_sandbox
    async def test_what_is_excluded_stays_there(self, env: Environment, tmp_path: Path) -> None:
        """By its name anywhere, or by its path; a folder with all that is in it."""
        await env.exec(
            "mkdir -p t/sub/deep/er t/node_modules/x t/other/deep; touch t/keep t/a.pyc t/sub/b.pyc t/sub/keep "
            "t/sub/deep/er/z t/node_modules/x/y t/other/deep/kept"
        )
        left_out = await env.download("t", str(tmp_path / "back"), exclude=["*.pyc", "node_modules", "sub/deep"])

        assert ["keep", "other", "other/deep", "other/deep/kept", "sub", "sub/keep"] == list(tree_of(tmp_path / "back"))
        assert [] == list(left_out)

    @in_sandbox
    async def test_hard_link_to_what_is_excluded_breaks_nothing(self, env: Environment, tmp_path: Path) -> None:
        """The other name of an excluded file is had, or named as left out; and the rest comes."""
        await env.exec("mkdir t; echo inside >t/a.skip; ln t/a.skip t/b; echo more >t/c; ln t/c t/d")
        left_out = await env.download("t", str(tmp_path / "back"), exclude=["*.skip"])
        found = tree_of(tmp_path / "back")

        assert {"c", "d"} <= set(found) <= {"b", "c", "d"}
        assert (b"more\n", b"more\n") == (found["c"][2], found["d"][2])
        assert ("b" in found and found["b"][2] == b"inside\n") or any("b: " in line for line in left_out)

    @in_sandbox
    async def test_a_copy_with_limits_keeps_them(self, env: Environment, tmp_path: Path) -> None:
        """Too many files, or too many bytes, end it with an error that names the limit; what fits comes whole."""
        await env.exec(
            "mkdir many large; for i in 1 2 3 4 5 6; do echo >many/$i; done; head -c 300000 /dev/zero >large/f"
        )
        with pytest.raises(TransferLimitError, match="more than 4 files"):
            await env.download("many", str(tmp_path / "a"), limits=TransferLimits(max_files=4))
        with pytest.raises(TransferLimitError, match="more than"):
            await env.download("large", str(tmp_path / "b"), limits=TransferLimits(max_bytes=104_858))
        await env.download("many", str(tmp_path / "c"), limits=TransferLimits(max_files=7, max_bytes=100_000))

        assert 6 == len(list((tmp_path / "c").iterdir()))

    @in_sandbox
    async def test_excluded_files_count_for_no_limit(self, env: Environment, tmp_path: Path) -> None:
        """What stays there costs nothing."""
        await env.exec("mkdir -p t/skip; for f in skip/f f.skip; do head -c 300000 /dev/zero >t/$f; done; echo >t/k")
        await env.download("t", str(tmp_path / "t"), exclude=["skip", "*.skip"], limits=TransferLimits(20_000, 3))

        assert ["k"] == list(tree_of(tmp_path / "t"))

    @in_sandbox
    async def test_a_copy_with_limits_is_distrustful(self, env: Environment, tmp_path: Path) -> None:
        """Pipes, and links that lead out of the tree, are left out and named; links within it are kept."""
        await env.exec(
            "mkdir -p t/sub; cd t; echo x >file; mkfifo pipe; ln -s /etc/passwd absolute; ln -s ../../etc sub/parent; "
            "ln -s ../file sub/inner; ln -s .. up; ln -s file link; mknod device c 1 3 2>/dev/null || true"
        )
        left_out = await env.download("t", str(tmp_path / "back"), limits=TransferLimits())
        named = {line.partition(":")[0] for line in left_out}

        assert ["file", "link", "sub", "sub/inner"] == list(tree_of(tmp_path / "back"))
        assert {"pipe", "absolute", "sub/parent", "up"} == named - {"device"}
