"""The processes of a container as a script in it sees them, for engines on other machines."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from agentcompass.core.errors import SandboxError

from .docker_client import engine_errors
from .docker_reach import KEEPER
from .process_table import marker

if TYPE_CHECKING:
    from collections.abc import Sequence

# Builtins of any POSIX shell and one grep for a look. The arguments are the mark of a branch (empty for all), that of
# the keeper, and that of these scripts, which are killed but not counted; nor is what the engine has not made a program
# of yet, and so shows no mark, or nothing at all. Everybody is stopped before anybody is killed: a shell whose child
# has died goes on otherwise, and one that is becoming another program shows no mark. The first process's waiting child
# is spared, and so is this script's own session.
_KILL = r"""
mark=$1 keeper=$2 ours=$3 count=0 seen=' ' rounds=0
facts() {
    line=
    { IFS= read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -- ${line##*) }
    state=$1 parent=$2 session=$4
}
facts $$ && own=$session
look() {
    chosen=' ' grown=1
    [ -z "$mark" ] || for file in $(grep -l -F -e "$mark" /proc/[0-9]*/environ 2>/dev/null); do
        pid=${file#/proc/} chosen="$chosen${pid%/environ} "
    done
    while [ $grown = 1 ]; do
        grown=0
        for folder in /proc/[0-9]*; do
            pid=${folder#/proc/}
            case $chosen in *" $pid "*) continue ;; esac
            facts "$pid" || continue
            [ "$session" != "$own" ] && [ "$pid" != 1 ] && [ "$state" != Z ] && [ "$state" != X ] || continue
            if [ -z "$mark" ]; then
                [ "$parent" != 1 ] || ! grep -q -F -e "$keeper" "$folder/environ" 2>/dev/null || continue
            else
                case $chosen in *" $parent "* | *" $session "*) ;; *) continue ;; esac
            fi
            chosen="$chosen$pid " grown=1
        done
    done
    alive=' ' moving=0
    for pid in $chosen; do
        facts "$pid" && [ "$session" != "$own" ] && [ "$state" != Z ] && [ "$state" != X ] || continue
        alive="$alive$pid "
        [ "$state" = T ] || moving=1
    done
}
while look; [ "$alive" != ' ' ] && [ $rounds -lt 200 ]; do
    rounds=$((rounds + 1)) before= looks=0
    while [ "$alive" != "$before" ] || [ $moving = 1 ] && [ $looks -lt 20 ] && [ $rounds -lt 200 ]; do
        before=$alive rounds=$((rounds + 1)) looks=$((looks + 1))
        kill -STOP $alive 2>/dev/null
        look
    done
    for pid in $alive; do
        case $seen in *" $pid "*) continue ;; esac
        seen="$seen$pid "
        facts "$pid" && case $line in *'(runc:['*) continue ;; esac
        grep -q -F -e "$ours" -e _LIBCONTAINER_ "/proc/$pid/environ" 2>/dev/null || count=$((count + 1))
    done
    kill -KILL $alive 2>/dev/null
done
echo "$count $alive"
"""
# Pipes that somebody in the container writes to and nobody in it reads are the engine's: they are emptied. A pipe is
# opened here, not in the reader: who held it may have ended before the reader begins. Opening it for both waits for
# nobody.
_DRAIN = r"""
mark=$1 done=' '
for file in $(grep -l -F -e "$mark" /proc/[0-9]*/environ 2>/dev/null); do
    for fd in ${file%/environ}/fd/[12]; do
        pipe=$(readlink "$fd") || continue
        case $pipe in pipe:*) ;; *) continue ;; esac
        case $done in *" $pipe "*) continue ;; esac
        read=0
        for other in /proc/[0-9]*/fd/*; do
            [ "$(readlink "$other" 2>/dev/null)" = "$pipe" ] || continue
            case $(ls -l "$other" 2>/dev/null) in l-w*) ;; l*) read=1 && break ;; esac
        done
        [ $read = 1 ] || { { cat <&3 >/dev/null 2>&1 3<&- 4>&- & } 3</proc/self/fd/4; } 4<>"$fd" || continue
        done="$done$pipe "
    done
done
"""
_REACH = "reach"
_OOM = "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null; :"


class InsideReach:
    """Runs scripts as root in the container; without a shell and grep in it, what runs there cannot be killed."""

    def __init__(self, api: Any, container: str, sandbox: str) -> None:
        self._api = api
        self._container = container
        self._sandbox = sandbox
        self._lock = Lock()

    def watch(self, pid: int) -> int | None:  # noqa: ARG002, RUF100
        """Return None: the process is another machine's."""
        return None

    def kill(self, branch: str | None) -> int:
        """Stop all, then kill all, until a look shows nobody."""
        marks = ("" if branch is None else self._mark(branch), self._mark(KEEPER), self._mark(_REACH))
        with self._lock:
            count, _, alive = self._run("kill processes", _KILL, *marks).strip().partition(" ")
        if not count.isdecimal() or alive.strip():
            raise SandboxError(f"processes cannot be killed: {alive.strip() or 'the container has no shell for it'}")
        return int(count)

    def held_pipes(self, branch: str, pid: int) -> Sequence[int]:  # noqa: ARG002, RUF100
        """Leave a reader in the container for each of them."""
        # not waited for: the engine does not tell its end before the pipes are empty
        self._run("read on", _DRAIN, self._mark(branch), detach=True)
        return ()

    def oom_kills(self) -> int:
        """Read the counter in the container."""
        lines = self._run("read the memory counter", _OOM).splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)

    def host_pid(self) -> int | None:
        """Return None."""
        return None

    def remove(self, path: str) -> bool:  # noqa: ARG002, RUF100
        """Return False: nothing can be done without a program."""
        return False

    def _mark(self, branch: str) -> str:
        ((name, value),) = marker(self._sandbox, branch).items()
        return f"{name}={value}"

    def _run(self, doing: str, script: str, *words: str, detach: bool = False) -> str:
        with engine_errors(doing):
            made = self._api.exec_create(
                self._container,
                ["/bin/sh", "-c", script, "sh", *words],
                user="0",
                workdir="/",
                environment=dict(marker(self._sandbox, _REACH)),
            )
            said = self._api.exec_start(made["Id"], detach=detach)
        return "" if detach else bytes(said).decode(errors="replace")
