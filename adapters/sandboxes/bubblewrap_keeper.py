"""What keeps a `bubblewrap` sandbox: its first process and namespaces, and the command line that enters them."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from agentcompass.core.errors import SandboxError, UsageError

from . import bubblewrap_root, unshared_root
from .netns import listen_in
from .process_table import marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

KEEPER_MARK = "-keeper"  #: added to the sandbox's id in the mark of its first process
NOBODY = 65534  #: whom the processes of a sandbox are to this machine, when we are root
_PACKAGES = {"bwrap": "bubblewrap", "hostname": "hostname", "mount": "mount", "umount": "mount"}
_READY_WITHIN = 30.0
_GONE_WITHIN = 10.0
_PATIENCE = 0.5
_NS_GET_PARENT = 0xB702
_STAGES = ("/mnt", "/media", "/srv", "/opt")

# It gives back what it is given, and the end of its input is the end of the sandbox. Where a first process ignores how
# children end, no zombies pile up; it is not a shell, since shells do not keep ignoring that.
_FIRST = "env --ignore-signal=CHLD true 2>/dev/null || exec cat; exec env --ignore-signal=CHLD cat"
# Root's private folders are closed to the user that bwrap runs as: they are shown to it where it can go.
_STAGE = """set -e; stage=$1; shift; mount -t tmpfs -o mode=755 stage "$stage"; n=0
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir "$stage/$n"; else : >"$stage/$n"; fi
    mount --rbind -- "$1" "$stage/$n"; n=$((n + 1)); shift
done; shift; exec "$@" """

# What programs of root take for granted, among the files and ports that are the sandbox's own: outside it is nothing.
_RIGHTS = "+chown,+dac_override,+fowner,+fsetid,+kill,+setuid,+setgid,+net_bind_service"

# What a program loader or a shell obeys: set only inside, or it would act on the programs that lead there.
_LATE = (
    "LD_",
    "GLIBC_",
    "MALLOC_",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
)


def tool(name: str) -> str:
    """Return the path of a program that sandboxes are made with.

    Raises:
        UsageError: it is not installed.
    """
    path = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    if path is None:
        package = _PACKAGES.get(name, "util-linux")
        raise UsageError("bubblewrap", f"{name} is not installed here", f"install the package {package}")
    return path


def choose_maker() -> str:
    """Return the program that makes sandboxes here: bwrap, else unshare."""
    with suppress(UsageError):
        tool("bwrap")
        return "bwrap"
    return "unshare"


class Keeper:
    """The first process of one sandbox. It ends with this process, with its own input, or at `close`.

    One that *stays* holds its own input open, and ends at `close` or by its mark. Made in the thread of the event loop:
    the kernel ends the others when the thread that made them ends.
    """

    def __init__(self, sandbox: str, root: str, bind: Sequence[str], *, maker: str, stays: bool = False) -> None:
        self.pid = 0
        self._stays = stays
        self._maker = maker
        said, tell = os.pipe()
        given, give = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*_outside(root, bind, partial(self._words, tell)), "/bin/sh", "-c", _FIRST],
                env=dict(marker(sandbox + KEEPER_MARK, "0")),
                cwd="/",
                pass_fds=(tell, give) if stays else (tell,),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except BaseException as error:
            os.close(said)
            os.close(give)
            if isinstance(error, OSError):
                raise SandboxError(f"cannot start {maker}: {error}") from error
            raise
        finally:
            os.close(tell)
            os.close(given)
        self._ends = [said, give]

    def wait(self) -> None:
        """Wait until the sandbox stands; blocks.

        Raises:
            SandboxError: it does not, with what its maker says.
        """
        process, (said, give) = self._process, self._ends
        assert process.stdout is not None
        assert process.stderr is not None
        with suppress(BrokenPipeError):
            os.write(give, b"?")
        ready, _, _ = select.select([process.stdout], [], [], _READY_WITHIN)
        if not ready or not process.stdout.read1(64):  # type: ignore[attr-defined]
            process.kill()
            told = process.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise SandboxError(f"{self._maker} cannot make a sandbox: {told or 'it does not answer'}")
        self.pid = self._child() if self._maker == "unshare" else int(json.loads(os.read(said, 65536))["child-pid"])
        self._namespace = os.stat(f"/proc/{self.pid}/ns/pid").st_ino
        if self._maker == "unshare":
            listen_in(self.pid).close()  # which sets up the loopback device, as bwrap does
        if self._stays:
            self._let_go()
            threading.Thread(target=process.wait, daemon=True).start()  # whoever kills it, somebody reaps it

    def require_alive(self) -> None:
        """Refuse to go on with a sandbox whose first process has ended."""
        if self._process.poll() is not None:
            raise SandboxError("the sandbox has ended: its first process is gone")

    def enter(self, variables: Mapping[str, str], *, own_network: bool) -> tuple[list[str], dict[str, str]]:
        """Return the words before a command that runs it inside, and the variables to start them with."""
        late = {name: value for name, value in variables.items() if name.startswith(_LATE)}
        namespaces = ["-U", "-m", "-p", "-i", "-u", *(["-n"] if own_network else [])]
        words = [*_as_nobody(), tool("nsenter"), "-t", str(self.pid), *namespaces, "--preserve-credentials"]
        words += ["/usr/bin/setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set=-all,{_RIGHTS}"]
        words += ["/usr/bin/env", *(f"{name}={value}" for name, value in late.items())] if late else []
        return words, {name: value for name, value in variables.items() if name not in late}

    def members(self) -> set[int]:
        """Return the processes in the sandbox, by their numbers on this machine, without the first one."""
        return {pid for pid in self._inside() if pid != self.pid}

    def _words(self, tell: int, mounts: Sequence[str]) -> list[str]:
        if self._maker == "unshare":
            return unshared_root.words(tool, mounts, self._stays)
        return [tool("bwrap"), *mounts, *_namespaces(tell, self._stays), "--"]

    def _child(self) -> int:
        with open(f"/proc/{self._process.pid}/task/{self._process.pid}/children", encoding="ascii") as file:
            return int(file.read())

    def _inside(self) -> Iterator[int]:
        ours = os.stat("/proc/self/ns/pid").st_ino
        for name in os.listdir("/proc"):
            if name.isdecimal():
                with suppress(OSError):  # gone, or somebody else's
                    place = f"/proc/{name}/ns/pid"
                    if os.stat(place).st_ino != ours and self._namespace in _lineage(place) and _is_alive(name):
                        yield int(name)

    async def close(self) -> None:
        """Kill the first process, and with it everything inside, and wait for their end."""
        if self.pid and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        began = time.monotonic()
        while self._process.poll() is None or (self.pid and self.members()):
            waited = time.monotonic() - began
            if not self.pid or waited > _PATIENCE:  # the first process waits for orphans that nobody reaps: all is dead
                self._process.kill()
            if waited > _GONE_WITHIN:
                raise SandboxError("the sandbox cannot be killed")
            await asyncio.sleep(0.002)
        self._let_go()

    def _let_go(self) -> None:
        """Close this process's ends of the pipes."""
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        while self._ends:
            os.close(self._ends.pop())


def _as_nobody() -> list[str]:
    if os.geteuid() != 0:
        return []
    return [tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def _outside(root: str, bind: Sequence[str], make: Callable[[Sequence[str]], list[str]]) -> list[str]:
    """Return the command line up to the command of the first process; *make* returns the maker's for some mounts."""
    if os.geteuid() != 0:
        return make(bubblewrap_root.mounts(root, [(path, path) for path in bind]))
    sources = [root, *bind]
    stages = [stage for stage in _STAGES if os.path.isdir(stage) and not any(_is_in(path, stage) for path in sources)]
    if not stages:
        raise SandboxError(f"there is none of {', '.join(_STAGES)} to show folders in")
    shown = [(f"{stages[0]}/{number}", path) for number, path in enumerate(bind, 1)]
    staging = [tool("unshare"), "--mount", "/bin/sh", "-c", _STAGE, "sh", stages[0], *sources, "--"]
    return [*staging, *_as_nobody(), *make(bubblewrap_root.mounts(f"{stages[0]}/0", shown))]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _namespaces(tell: int, stays: bool) -> list[str]:
    return [
        *"--unshare-user --uid 0 --gid 0 --unshare-pid --unshare-ipc --unshare-uts --unshare-net".split(),
        *"--hostname sandbox --as-pid-1 --new-session --chdir /".split(),
        *([] if stays else ["--die-with-parent"]),
        "--info-fd",
        str(tell),
    ]


def _lineage(namespace: str) -> Iterator[int]:
    """Yield the number of a namespace of processes and of those around it."""
    fd = os.open(namespace, os.O_RDONLY)
    try:
        while True:
            yield os.fstat(fd).st_ino
            try:
                around = fcntl.ioctl(fd, _NS_GET_PARENT)
            except PermissionError:  # ours, or beyond it
                return
            os.close(fd)
            fd = around
    finally:
        os.close(fd)


def _is_alive(pid: str) -> bool:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
