"""The sandbox `bubblewrap`: a private root on this machine's system, an unprivileged user, a network of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import Capabilities, EnvironmentSpec
from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.ports.environment import unrecorded

from . import local_leftovers
from .bubblewrap_image import Recipe
from .bubblewrap_keeper import KEEPER_MARK, NOBODY, choose_maker, tool
from .bubblewrap_session import BubblewrapSession, require_mode
from .cgroup_limits import limitable
from .netns import can_listen_in
from .process_tree import TreeMaker, choose_tree
from .refusals import require_names
from .waiting import to_the_end

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentcompass.core.model.environment import Leftover
    from agentcompass.ports.environment import Record

_KIND = "bwrap-"  # what tells its folders from those of host_process


class BubblewrapProvider:
    """Runs commands in a private root, in which the machine's system is read-only and everything else is its own.

    Outside, its processes are nobody (or, if we are not root, we) without any capability; inside they look like root.
    They see no other process, no file of the machine but its system, and no network unless that is public: then it is
    the machine's own, with what listens on its 127.0.0.1. Hosts on lists are reached through a proxy for HTTP and
    CONNECT that programs find by the usual variables. A Dockerfile is played on the machine's own system.

    *root* is where private folders are made (else the folder for temporary files). The files and folders *bind* are
    shown, read-only, at their own paths. *build_args* are the values of a Dockerfile's ARGs. *make_tree* overrides the
    choice of how processes are found, and *maker* that of the program which makes sandboxes: bwrap, else unshare.
    """

    def __init__(
        self,
        *,
        root: str | None = None,
        bind: Sequence[str] = (),
        build_args: Mapping[str, str] | None = None,
        make_tree: TreeMaker | None = None,
        maker: str | None = None,
    ) -> None:
        self._root = root
        self._bind = tuple(bind)
        for path in self._bind:
            if not os.path.isabs(path) or not os.path.exists(path):
                raise UsageError("bind", f"there is no {path!r} here", "name files and folders by absolute paths")
        self._build_args = dict(build_args or {})
        self._make_tree = make_tree
        self._maker = maker or choose_maker()
        self.capabilities = Capabilities(
            network_modes=_network_modes(), dynamic_network=True, builds=True, resources=limitable(), private_root=True
        )

    async def open(self, spec: EnvironmentSpec, record: Record = unrecorded) -> BubblewrapSession:
        """Decide what will be; the first use makes it. What is to be built is built at once, with a public network."""
        self._require_possible(spec)
        recipe = None if spec.build is None else Recipe(spec.build, self._build_args)
        sandbox = local_leftovers.new_id(_KIND)
        if self._make_tree is None:
            self._make_tree = choose_tree()[0]
        session = self._session(sandbox, spec, record)
        if recipe is not None:
            try:
                await self._build(recipe, session, spec)
            except BaseException:
                await to_the_end(session.close())
                raise
        return session

    async def leftovers(self) -> Sequence[Leftover]:
        """Return the private folders that there are."""
        return await asyncio.to_thread(local_leftovers.find, "bubblewrap", self._root, _KIND)

    async def release(self, recorded: Mapping[str, str]) -> None:
        """Kill what bears the mark of the sandbox, its first process too, and remove its folder."""
        await local_leftovers.release(self._root, recorded, marks=("", KEEPER_MARK))

    async def check(self) -> str:
        """Open a sandbox, and say what holds in it."""
        version = await asyncio.to_thread(_version, self._maker)
        mode = NetworkMode.ALLOWLIST if NetworkMode.ALLOWLIST in self.capabilities.network_modes else None
        session = await self.open(EnvironmentSpec(network=NetworkPolicy(mode or NetworkMode.NO_NETWORK)))
        try:
            await session.exec("true")
        except SandboxError as error:
            raise UsageError("bubblewrap", str(error), "unprivileged user namespaces must be allowed") from error
        finally:
            await session.close()
        who = f"as user {NOBODY}" if os.geteuid() == 0 else "as this user"
        modes = ", ".join(sorted(self.capabilities.network_modes))
        limits = ", ".join(sorted(self.capabilities.resources)) or "none"
        return (
            f"{version}; private root, read-only system, {who} without capabilities; networks: {modes} (public is this "
            f"machine's own); limits: {limits}; {choose_tree()[1]}"
        )

    def _session(self, sandbox: str, spec: EnvironmentSpec, record: Record) -> BubblewrapSession:
        assert self._make_tree is not None
        folder = local_leftovers.place(self._root, sandbox)
        return BubblewrapSession(
            sandbox,
            folder,
            spec,
            record=record,
            bind=self._bind,
            tree=self._make_tree,
            modes=self.capabilities.network_modes,
            maker=self._maker,
        )

    async def _build(self, recipe: Recipe, session: BubblewrapSession, spec: EnvironmentSpec) -> None:
        """Play *recipe*; what a RUN has left running is killed before the network becomes the one of *spec*."""
        await session.set_network(NetworkPolicy())
        image = await recipe.play(session)
        await session.kill_all()
        await session.become(image.variables, image.workdir)
        await session.set_network(spec.network)

    def _require_possible(self, spec: EnvironmentSpec) -> None:
        require_names(spec.env)
        require_mode(spec.network, self.capabilities.network_modes)
        if spec.image is not None:
            raise UsageError("image", f"bubblewrap has no images, such as {spec.image!r}", "use a container sandbox")
        for name in spec.resources.given:
            if name not in self.capabilities.resources:
                raise UsageError(name, "bubblewrap cannot limit it on this machine", "leave it out")
        _require_tools(self._maker)


def _network_modes() -> frozenset[NetworkMode]:
    modes = {NetworkMode.PUBLIC, NetworkMode.NO_NETWORK}
    # who is not root has made the sandbox's user namespace, and may enter it
    if sys.platform == "linux" and (os.geteuid() != 0 or can_listen_in()):
        modes |= {NetworkMode.ALLOWLIST, NetworkMode.DENYLIST}
    return frozenset(modes)


def _require_tools(maker: str) -> None:
    for name in (maker, "nsenter", "setpriv", "unshare"):
        tool(name)


def _version(maker: str) -> str:
    _require_tools(maker)
    return subprocess.run([tool(maker), "--version"], capture_output=True, text=True, check=False).stdout.strip()
