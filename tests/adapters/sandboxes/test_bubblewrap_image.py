"""Tests of Dockerfiles played in a `bubblewrap` sandbox: what they make, and what is refused."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile

import pytest
from contracts.environment_tools import opened, run

from agentcompass.adapters.sandboxes.bubblewrap import BubblewrapProvider
from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import EnvironmentSpec
from agentcompass.core.model.network import NetworkMode, NetworkPolicy


@pytest.fixture
def provider(bubblewrap, root):
    return BubblewrapProvider(root=str(root), build_args={"VERSION": "2"})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "src" / "sub").mkdir(parents=True)
    (tmp_path / "src" / "main.py").write_text("main")
    (tmp_path / "src" / "sub" / "x.py").write_text("x")
    (tmp_path / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "note.md").write_text("note")
    return tmp_path


def _built(provider, folder, text, *commands, **spec):
    """Open what *text* makes and return the outputs of *commands*."""
    (folder / "Dockerfile").write_text(text)

    async def main():
        async with opened(provider, build=str(folder), **spec) as env:
            results = [await env.exec(command) for command in commands]
            return [env.workdir, *((result.stdout + result.stderr).decode() for result in results)]

    return run(main())


def test_a_dockerfile_is_played(provider, folder):
    """Folders, files, variables and commands are there; the spec's variables lie over the image's."""
    text = (
        "ARG BASE=debian\nFROM $BASE:12 AS base\nLABEL a=b\nENV WHO=image KEPT=yes\nARG VERSION=1\nARG OTHER=o\n"
        "ENV V=$VERSION-$OTHER\nWORKDIR /srv/site\nWORKDIR sub\nCOPY src ./code/\n"
        "COPY --chmod=755 run.sh note.md /opt/t/\n"
        'RUN echo "$WHO $VERSION $PWD" >built && mkdir /data\nRUN ["sh", "-c", "echo $HOME >>built"]\n'
        'SHELL ["/bin/bash", "-c"]\nRUN [[ a == a ]] && echo bash >>built\nUSER root\nEXPOSE 80\nCMD ["x"]\n'
        "ENTRYPOINT x\nVOLUME /vol\nADD src/sub/x.py /vol/renamed\n"
    )
    shown = _built(
        provider,
        folder,
        text,
        "cat built",
        "echo $WHO $KEPT $V ${VERSION:-none}",
        "find code | sort | xargs",
        "/opt/t/run.sh; ls -l /opt/t/note.md | cut -c1-10; cat /vol/renamed; ls -d /data",
        env={"WHO": "spec"},
    )

    assert [
        "/srv/site/sub",
        "image 2 /srv/site/sub\n/root\nbash\n",
        "spec yes 2-o none\n",
        "code code/main.py code/sub code/sub/x.py\n",
        "ran\n-rwxr-xr-x\nx/data\n",
    ] == shown


def test_copies_follow_the_rules(provider, folder):
    """Files into folders that exist, trees by their content, patterns, archives unpacked by ADD, ignored files not."""
    (folder / ".dockerignore").write_text("# no\n*.md\nsrc/sub\n!src/sub/x.py\n**/*.log\n")
    (folder / "src" / "sub" / "y.py").write_text("y")
    (folder / "src" / "a.log").write_text("log")
    with tarfile.open(folder / "pack.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("inner/file")
        member.size = 2
        tar.addfile(member, io.BytesIO(b"ok"))
    text = (
        "FROM x\nRUN mkdir /there\nCOPY run.sh /there\nCOPY run.sh /renamed\nCOPY . /all\nCOPY src/*.py /some/\n"
        "ADD pack.tar.gz /unpacked\nCOPY pack.tar.gz /packed\n"
    )
    shown = _built(
        provider,
        folder,
        text,
        "ls /there; ls -d /renamed; cd /all; find . | sort | xargs; ls /some; cat /unpacked/inner/file; ls -d /packed",
    )

    assert (
        "run.sh\n/renamed\n. ./.dockerignore ./Dockerfile ./pack.tar.gz ./run.sh ./src ./src/main.py ./src/sub "
        "./src/sub/x.py\nmain.py\nok/packed\n"
    ) == shown[1]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("FROM y", "FROM: several stages"),
        ("USER app", "USER: there is no user 'app'"),
        ("COPY --from=y a b", "COPY: --from cannot"),
        ("COPY --chown=app a b", "COPY: there is no user 'app'"),
        ("COPY missing /x", "COPY: there is no 'missing'"),
        ("COPY ../outside /x", "COPY: there is no '../outside'"),
        ("COPY link /x", "COPY: 'link' leads out of the folder"),
        ("ADD https://a.org/x /x", "ADD: 'https://a.org/x' would have to be fetched"),
        ("ONBUILD RUN x", "ONBUILD: cannot be played"),
        ("RUN --mount=type=secret,id=x y", "RUN: --mount cannot"),
        ("RUN cat <<EOF", "here-document"),
        ("COPY one", "COPY: expected sources and a target"),
        ("ENV a-b=1", "ENV: 'a-b' is no name"),
        ("FORM x", "FORM: cannot be played"),
        ("ENV A='x", "ENV: a quote does not close"),
    ],
)
def test_what_cannot_be_played_is_refused(provider, folder, root, line, says):
    """By file, line and instruction; and nothing is left."""
    os.symlink("/etc/passwd", folder / "link")
    with pytest.raises(UsageError) as caught:
        _built(provider, folder, f"FROM x\n\n{line}\n")

    assert f"{folder}/Dockerfile:3: " in str(caught.value)
    assert says in str(caught.value)
    assert [] == list(root.iterdir())


def test_no_dockerfile_is_named(provider, folder):
    """Neither a missing one, nor one without a start."""
    with pytest.raises(UsageError, match="Dockerfile: .*No such file"):
        run(provider.open(EnvironmentSpec(build=str(folder))))
    with pytest.raises(UsageError, match="there is no FROM"):
        _built(provider, folder, "RUN x")


def test_a_failing_command_says_its_last_lines(provider, folder, root):
    """With the place in the Dockerfile."""
    with pytest.raises(SandboxError, match=r"Dockerfile:2: RUN ended with exit code 3:\n(?s:.*)why\Z"):
        _built(provider, folder, "FROM x\nRUN seq 1 100; echo why >&2; exit 3\n")
    assert [] == list(root.iterdir())


def test_what_is_built_is_built_within_the_sandbox(provider, folder, tmp_path):
    """A RUN writes where a sandbox may; what it leaves running is gone, and so is its network."""
    text = "FROM x\nRUN ! touch /usr/bin/x 2>/dev/null && sleep 60 & cat /etc/shadow; true\n"
    shown = _built(
        provider,
        folder,
        text,
        "cat /proc/[0-9]*/comm; python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 9))'",
        network=NetworkPolicy(NetworkMode.NO_NETWORK),
        workdir="below",
    )

    assert "/app/below" == shown[0]
    assert "cat" in shown[1].split()
    assert "sleep" not in shown[1].split()
    assert "unreachable" in shown[1]


def test_cancelling_a_build_leaves_nothing(provider, folder, root):
    """A long RUN can be given up."""
    (folder / "Dockerfile").write_text("FROM x\nRUN sleep 60\n")

    async def main():
        opening = asyncio.ensure_future(provider.open(EnvironmentSpec(build=str(folder))))
        while not list(root.glob("*/root/app")):
            await asyncio.sleep(0.01)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    run(main())
    assert [] == list(root.iterdir())
