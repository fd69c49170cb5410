"""Tests of how the Docker provider finds an engine and images, builds them, and lists and removes what is left."""

from __future__ import annotations

import asyncio
import os

import pytest
from contracts.environment_tools import opened, run
from support import docker

from agentcompass.adapters.sandboxes.owners import owner
from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import EnvironmentSpec, Resources

docker_daemon, slice_image = docker.docker_daemon, docker.slice_image
docker_engine = pytest.importorskip("agentcompass.adapters.sandboxes.docker_engine")
DockerProvider = docker_engine.DockerProvider


@pytest.fixture
def folder(tmp_path, slice_image, docker_daemon):
    """A folder to build from; the images that were built from it go with it."""
    path = tmp_path / f"task-{os.getpid()}" / "environment"
    path.mkdir(parents=True)
    yield path
    for image in docker_daemon.images(filters={"reference": f"agentcompass/{path.parent.name}"}):
        for tag in image["RepoTags"]:
            docker_daemon.remove_image(tag, force=True)


def built(docker_daemon, folder) -> list[str]:
    images = docker_daemon.images(filters={"reference": f"agentcompass/{folder.parent.name}"})
    return sorted(tag for image in images for tag in image["RepoTags"])


async def result_of(provider, command, **spec):
    async with opened(provider, **spec) as env:
        return await env.exec(command)


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("unix:///no/such/socket", "docker: no engine answers at unix:///no/such/socket; start the Docker daemon"),
        ("tcp://127.0.0.1:1", "docker: no engine answers at tcp://127.0.0.1:1; start the Docker daemon"),
        ("gopher://x", "docker: gopher://x: .*; mend DOCKER_HOST"),
    ],
)
def test_engine_that_does_not_answer(monkeypatch, host, said) -> None:
    """Where nobody answers, a line says where, and what to do; opening is a failure of the sandbox."""
    monkeypatch.setenv("DOCKER_HOST", host)
    for use in ("check", "leftovers"):
        with pytest.raises(UsageError, match=f"^{said}"):
            run(getattr(DockerProvider(), use)())
    with pytest.raises(SandboxError, match=f"^{said}"):
        run(DockerProvider(image="x").open(EnvironmentSpec()))


def test_socket_of_others_is_named(monkeypatch) -> None:
    """Without permission a line says so, and whom to join."""

    def refuse(where):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("agentcompass.adapters.sandboxes.docker_client._knock", refuse)
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/other.sock")
    with pytest.raises(UsageError, match="no permission to use unix:///run/other.sock; join the group 'docker'"):
        run(DockerProvider().check())


def test_check_names_the_engine(docker_daemon) -> None:
    """The check says which version answers and which limits hold."""
    line = run(DockerProvider().check())

    assert f"Docker engine {docker_daemon.version()['Version']}" in line
    assert "limits: cpu, memory, pids" in line


def test_missing_image_is_named(docker_daemon) -> None:
    """An image that is nowhere is refused by its name, before anything is made."""
    for provider in (DockerProvider(image="no/such:image"), DockerProvider(image="no/such:image", pull="never")):
        recorded = []
        with pytest.raises((UsageError, SandboxError), match="no/such:image.*pull"):
            run(provider.open(EnvironmentSpec(), recorded.append))
        assert [] == recorded
    with pytest.raises(UsageError, match="image"):
        run(DockerProvider().open(EnvironmentSpec()))
    with pytest.raises(UsageError, match="sometimes"):
        DockerProvider(pull="sometimes")


def test_what_exists_is_recorded_before(slice_image, docker_daemon) -> None:
    """The record comes before the container; what it raises keeps the container from being made."""
    seen = []

    def record(facts):
        seen.append((facts["id"], docker.containers(docker_daemon)))
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="disk"):
        run(DockerProvider(image=slice_image).open(EnvironmentSpec(), record))
    assert [] == seen[0][1]
    assert seen[0][0].startswith("agentcompass-")
    assert [] == docker.containers(docker_daemon)


@pytest.mark.parametrize("options", [{"mounts": ["no-slash:relative"]}, {"networks": ["no-such-network"]}])
def test_failed_opening_leaves_nothing(slice_image, docker_daemon, options) -> None:
    """Whatever the engine refuses, no container stays."""
    with pytest.raises((SandboxError, UsageError), match="relative|no-such-network"):
        run(DockerProvider(image=slice_image, **options).open(EnvironmentSpec()))
    assert [] == docker.containers(docker_daemon)


def test_image_without_a_shell(folder, docker_daemon) -> None:
    """An image with no shell is one clear line, and no container stays."""
    (folder / "file").write_bytes(b"")
    (folder / "Dockerfile").write_bytes(b"FROM scratch\nCOPY file /file\n")
    with pytest.raises(SandboxError, match="has no /bin/sh"):
        run(DockerProvider().open(EnvironmentSpec(build=str(folder))))
    assert [] == docker.containers(docker_daemon)


def test_folder_is_built_once(folder, slice_image, docker_daemon) -> None:
    """Several who want the same get one build; what a build ignores changes nothing, anything else does."""
    (folder / "Dockerfile").write_text(
        f"FROM {slice_image}\nARG WORD=none\nCOPY . /app\nWORKDIR /app\n"
        "RUN echo $WORD $(tr -d - </proc/sys/kernel/random/uuid) >/stamp\n"
    )
    (folder / ".dockerignore").write_text("# no\nsecret*\n")
    (folder / "secret.txt").write_text("hush")
    (folder / "run.sh").write_text("echo ran")

    async def main() -> None:
        spec = {"build": str(folder)}
        provider = DockerProvider(build_args={"WORD": "given"})
        one, two = await asyncio.gather(*(result_of(provider, "cat /stamp; pwd; ls", **spec) for _ in range(2)))
        assert one.stdout == two.stdout
        assert one.stdout.startswith(b"given ")
        assert one.stdout.endswith(b"\n/app\nDockerfile\nrun.sh\n")
        (folder / "secret.txt").write_text("other")
        assert (
            one.stdout
            == (await result_of(DockerProvider(build_args={"WORD": "given"}), "cat /stamp; pwd; ls", **spec)).stdout
        )
        assert 1 == len(built(docker_daemon, folder))
        (folder / "run.sh").chmod(0o755)
        assert one.stdout != (await result_of(provider, "cat /stamp; pwd; ls", **spec)).stdout
        assert 2 == len(built(docker_daemon, folder))

    run(main())


def test_failed_build_shows_its_last_lines(folder, slice_image, docker_daemon) -> None:
    """The end of a build's output is in the error; the next attempt tries again."""
    (folder / "Dockerfile").write_text(f"FROM {slice_image}\nRUN seq 100; echo 'cannot go on' >&2; exit 7\n")
    with pytest.raises(
        SandboxError, match="(?s)cannot be built.*\n100\n.*cannot go on.*returned a non-zero code: 7"
    ) as caught:
        run(DockerProvider().open(EnvironmentSpec(build=str(folder))))
    assert 17 > len(str(caught.value).splitlines())
    (folder / "Dockerfile").write_text("FROM no/such:base\n")
    with pytest.raises(SandboxError, match="no/such"):
        run(DockerProvider().open(EnvironmentSpec(build=str(folder))))
    (folder / "Dockerfile").unlink()
    with pytest.raises(UsageError, match="Dockerfile"):
        run(DockerProvider().open(EnvironmentSpec(build=str(folder))))
    assert [] == docker.containers(docker_daemon)


def test_named_image_wins(folder, slice_image) -> None:
    """A Dockerfile is not built when the task names an image."""
    (folder / "Dockerfile").write_text("FROM no/such:base\n")

    assert 0 == run(result_of(DockerProvider(), "true", image=slice_image, build=str(folder))).exit_code


def test_workdir_is_the_specs_or_the_images(slice_image) -> None:
    """A workdir that is not there is made; a relative one lies in the image's."""

    async def main() -> None:
        provider = DockerProvider(image=slice_image)
        for wanted, there in ((None, "/work"), ("a/b", "/work/a/b"), ("/new/place", "/new/place")):
            async with opened(provider, workdir=wanted) as env:
                assert there == env.workdir
                assert f"{there}\n".encode() == (await env.exec("pwd && touch x")).stdout

    run(main())


def test_options_reach_the_container(slice_image, tmp_path, docker_daemon) -> None:
    """Mounts, variables, ports, devices and capabilities are as for the docker command."""
    (tmp_path / "here").write_bytes(b"mounted")
    provider = DockerProvider(
        image=slice_image,
        mounts=[f"{tmp_path}:/there:ro"],
        ports=["127.0.0.1::8000", "9000/udp"],
        devices=["/dev/null:/dev/own"],
        cap_add=["SYS_PTRACE"],
    )

    async def main() -> None:
        async with opened(provider, env={"OWN": "1", "BOTH": "spec"}) as env:
            result = await env.exec(
                'cat /there/here; touch /there/x; echo "$OWN$BOTH"; test -c /dev/own && echo device'
            )
            facts = docker_daemon.inspect_container(env._container)

            assert b"mounted1spec\ndevice\n" == result.stdout
            assert ["SYS_PTRACE"] == [name.removeprefix("CAP_") for name in facts["HostConfig"]["CapAdd"]]
            assert {"8000/tcp", "9000/udp"} == set(facts["NetworkSettings"]["Ports"])
            assert "127.0.0.1" == facts["NetworkSettings"]["Ports"]["8000/tcp"][0]["HostIp"]

    run(main())
    with pytest.raises(UsageError, match="ports: 'http'"):
        run(DockerProvider(image=slice_image, ports=["http"]).open(EnvironmentSpec()))


def test_leftovers_are_listed_and_released(slice_image, docker_daemon) -> None:
    """What is open is listed with its owner and labels, and goes by its id alone, once or more often."""

    async def main() -> None:
        provider, recorded = DockerProvider(image=slice_image), []
        env = await provider.open(EnvironmentSpec(labels={"run": "r1", "kept": "1"}), recorded.append)
        await env.exec("sleep 60 &")
        (mine,) = [entry for entry in await DockerProvider().leftovers() if entry.owner == owner()]

        assert [{"id": mine.id}] == recorded
        assert (False, True, "docker") == (mine.abandoned, mine.kept, mine.provider)
        assert {"run": "r1", "kept": "1"} == mine.labels
        assert "container" in mine.what
        await asyncio.gather(*(DockerProvider().release(recorded[0]) for _ in range(3)))
        await DockerProvider().release({"id": mine.id})
        assert [] == docker.containers(docker_daemon)
        with pytest.raises(SandboxError):
            await env.exec("true")
        await env.close()

    run(main())


def test_many_open_and_close_at_once(slice_image, docker_daemon) -> None:
    """Sandboxes that are opened side by side are apart from each other, and all go."""

    async def main() -> None:
        provider = DockerProvider(image=slice_image)
        results = await asyncio.gather(
            *(result_of(provider, f"echo {n} >mine; cat *", resources=Resources(pids=50)) for n in range(6))
        )
        assert [f"{n}\n".encode() for n in range(6)] == [result.stdout for result in results]

    run(main())
    assert [] == docker.containers(docker_daemon)
