"""The sandbox `docker`: a container for each attempt, its limits enforced by the kernel."""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from docker.errors import APIError  # type: ignore[import-untyped]

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import Capabilities, EnvironmentSpec, Leftover
from agentcompass.core.model.network import NetworkMode
from agentcompass.ports.environment import unrecorded

from .docker_client import Engine, engine_errors, is_gone, one_line
from .docker_compose import PROJECT, Project, compose_command, compose_file, overlay, remove_project
from .docker_files import Files
from .docker_images import Images
from .docker_inside import InsideReach
from .docker_network import LISTS, Network, possible_modes, require_mode
from .docker_reach import HostReach, Reach, is_reachable
from .docker_session import DockerSession
from .docker_spec import KEPT, LABEL, OURS, OWNER, Options, creation
from .owners import abandoned
from .process_table import Census, ProcTable
from .waiting import in_own_thread, to_the_end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agentcompass.ports.environment import Record

_LIMITS = (("cpu", "CpuCfsQuota"), ("memory", "MemoryLimit"), ("pids", "PidsLimit"))
_GONE_SECONDS = 30.0  # for a removal that somebody else has begun


class DockerProvider:
    """Opens containers on the engine that the docker command would use.

    *image* is for specs that name none and have nothing to build. *pull* says when images are fetched: ``missing``,
    ``never`` or ``always``. *mounts* (``/here:/there:ro``), *ports*, *devices*, *cap_add*, *platform* and *user* are as
    for ``docker run``; *networks* are joined besides the engine's default one, in the public mode;
    *build_args* go into every build.
    """

    def __init__(
        self,
        *,
        image: str | None = None,
        pull: str = "missing",
        platform: str | None = None,
        mounts: Sequence[str] = (),
        ports: Sequence[str] = (),
        devices: Sequence[str] = (),
        cap_add: Sequence[str] = (),
        networks: Sequence[str] = (),
        build_args: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        if pull not in ("missing", "never", "always"):
            raise UsageError("pull", f"{pull!r} is no policy", "use 'missing', 'never' or 'always'")
        self._image = image
        self._options = Options(platform, mounts, ports, devices, cap_add, networks, user)
        self._engine = Engine()
        self._images = Images(self._engine, pull, platform, build_args or {})
        self._census = Census(ProcTable())
        self.capabilities = Capabilities(
            network_modes=possible_modes(),
            dynamic_network=True,
            users=True,
            images=True,
            builds=True,
            resources=frozenset({"cpu", "memory_mb", "pids", "gpus"}),
            private_root=True,
        )

    async def open(self, spec: EnvironmentSpec, record: Record = unrecorded) -> DockerSession:
        """Make a container and start it; whatever goes wrong, it is removed."""
        require_mode(spec.network, self.capabilities.network_modes)
        api = await self._connected()
        name = f"{LABEL}-{secrets.token_hex(8)}"
        file = await in_own_thread(partial(compose_file, spec.build))
        if file is None:
            image = await self._image_of(spec)
            options = creation(api, name, image["Id"], spec, self._options, image.get("Config") or {})
            start, stop = partial(self._start, api, options), None
        else:
            laid = overlay(name, spec, self._options)
            project = Project(api, name, file, await in_own_thread(partial(compose_command, file)))
            start, stop = partial(project.up, *laid), project.stop
        remove = partial(self._remove, name, file is not None)
        record({"id": name})
        try:
            container = await to_the_end(in_own_thread(start), stop)
            return await self._opened(api, name, container, spec, remove, file is not None)
        except BaseException:
            await to_the_end(in_own_thread(remove))
            raise

    async def check(self) -> str:
        """Say which engine answers and what it enforces."""
        info, version = await in_own_thread(self._ask)
        limits = [word for word, key in _LIMITS if info.get(key)]
        modes = ", ".join(sorted(mode.value for mode in self.capabilities.network_modes))
        return (
            f"Docker engine {version['Version']} on {info.get('OperatingSystem', 'an unknown system')}; "
            f"limits: {', '.join(limits) or 'none'}; networks: {modes}"
        )

    async def leftovers(self) -> Sequence[Leftover]:
        """Return the containers that carry our label; those of one compose project are one, as are its networks."""
        found: dict[str, Leftover] = {}
        for entry in await in_own_thread(self._list):
            leftover = _leftover(entry)
            found.setdefault(leftover.id, leftover)
        return list(found.values())

    async def release(self, recorded: Mapping[str, str]) -> None:
        """Remove the container, or the compose project, that *recorded* names."""
        await to_the_end(in_own_thread(partial(self._remove, recorded["id"], True)))

    async def _connected(self) -> Any:
        try:
            return await in_own_thread(lambda: self._engine.api)
        except UsageError as error:
            raise SandboxError(str(error)) from error

    async def _image_of(self, spec: EnvironmentSpec) -> Mapping[str, Any]:
        if spec.image is not None:
            return await self._images.named(spec.image)
        if spec.build is not None:
            return await self._images.built(spec.build)
        if self._image is not None:
            return await self._images.named(self._image)
        raise UsageError("image", "docker needs one, and the task has none", "give the environment an 'image'")

    def _start(self, api: Any, options: Mapping[str, Any]) -> str:
        with self._engine.churn, engine_errors(f"start a container of {options['image']}"):
            try:
                container = str(api.create_container(**options)["Id"])
                api.start(container)
            except APIError as error:
                said = one_line(error)
                if "/bin/sh" in said:
                    raise SandboxError(f"the image has no /bin/sh, which keeps a sandbox: {said}") from error
                raise
        return container

    async def _opened(
        self, api: Any, name: str, container: str, spec: EnvironmentSpec, remove: Callable[[], None], is_project: bool
    ) -> DockerSession:
        with engine_errors("look at a new container"):
            facts = await in_own_thread(partial(api.inspect_container, container))
        reach = await in_own_thread(partial(self._reach, api, name, container, facts["State"]["Pid"]))
        network = Network(api, container, reach, self._options.networks)
        # a plain public or closed container was made so
        if not is_project and (self._options.networks or spec.network.network_mode in LISTS):
            await network.switch(spec.network)
        config = facts["Config"]
        owner = await in_own_thread(partial(_identity, api, container, config.get("User") or ""))
        return DockerSession(
            api,
            name=name,
            container=container,
            workdir=config.get("WorkingDir") or "/",
            image=str(facts["Image"]),
            memory_mb=spec.resources.memory_mb,
            modes=frozenset({NetworkMode.PUBLIC}) if is_project else self.capabilities.network_modes,
            reach=reach,
            files=Files(api, container, owner),
            network=network,
            remove=remove,
        )

    def _reach(self, api: Any, name: str, container: str, pid: int) -> Reach:
        return HostReach(name, pid, self._census) if is_reachable(name, pid) else InsideReach(api, container, name)

    def _ask(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        api = self._engine.api
        with engine_errors("say what it is"):
            return api.info(), api.version()

    def _list(self) -> Sequence[Mapping[str, Any]]:
        api = self._engine.api
        ours = {"label": f"{LABEL}=1"}
        with engine_errors("list its containers"):
            return [*api.containers(all=True, filters=ours), *api.networks(filters=ours)]

    def _remove(self, name: str, is_project: bool) -> None:
        """Remove everything of the sandbox *name*."""
        with self._engine.churn:
            if is_project:
                remove_project(self._engine.api, name)
            self._remove_container(name)

    def _remove_container(self, name: str) -> None:
        """Remove the container *name* with its volumes, whatever runs in it; wait for a removal that is under way."""
        deadline = time.monotonic() + _GONE_SECONDS
        with engine_errors(f"remove the container {name}"):
            while True:
                try:
                    self._engine.api.remove_container(name, v=True, force=True)
                except APIError as error:
                    if error.status_code == 404:
                        return
                    if not is_gone(error) or time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
                else:
                    return


def _identity(api: Any, container: str, user: str) -> tuple[int, int]:
    """Return the numbers of the container's user and group, to whom files that come in will belong."""
    if user.partition(":")[0] in ("", "0", "root"):
        return 0, 0
    with engine_errors(f"find the user {user}"):
        made = api.exec_create(container, ["/bin/sh", "-c", "id -u; id -g"], user=user)
        said = api.exec_start(made["Id"]).split()
    if len(said) != 2 or not all(word.isdigit() for word in said):
        raise SandboxError(f"the container does not know the user {user!r}")
    return int(said[0]), int(said[1])


def _leftover(entry: Mapping[str, Any]) -> Leftover:
    labels: Mapping[str, str] = entry.get("Labels") or {}
    project, kind = labels.get(PROJECT), "container" if "Image" in entry else "network"
    name = str(entry.get("Name") or next(iter(entry.get("Names") or ()), entry["Id"])).lstrip("/")
    of = f" of {entry['Image']}" if "Image" in entry else ""
    owner = labels.get(OWNER, "")
    return Leftover(
        provider="docker",
        id=project or name,
        what=f"compose project with {kind} {name}" if project else f"{kind}{of}, {entry.get('Status', 'of no use')}",
        owner=owner,
        abandoned=abandoned(owner),
        kept=KEPT in labels,
        labels={key.removeprefix(OURS): value for key, value in labels.items() if key.startswith(OURS)},
    )
