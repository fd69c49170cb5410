"""The words that make a `bubblewrap` sandbox where bwrap is missing: those of util-linux, to the same end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# It is the first process of the new namespaces, and takes the mounts in bwrap's own words. What a read-only mount has
# forbidden besides stays forbidden: the kernel lets nobody take that back here, and findmnt tells what it is.
_BUILD = r"""
set -e
hostname sandbox
root=$2
place() {
    [ ! -e "$2" ] || return 0
    if [ -d "$1" ]; then mkdir -p -- "$2"; else mkdir -p -- "${2%/*}"; : >"$2"; fi
}
restrict() {
    findmnt -nluR -o VFS-OPTIONS,TARGET --mountpoint "$2" | while read -r options target; do
        [ "$1" = --bind ] || options=ro,${options#r[ow],}
        mount -o "remount,bind,$options,nosuid,nodev" -- "$target"
    done
}
while [ "$1" != -- ]; do
    case $1 in
    --bind | --ro-bind)
        target=$root${3%/}
        place "$2" "$target"
        mount --rbind -- "$2" "$target"
        restrict "$1" "$target"
        shift 3
        ;;
    --proc) proc=$root$2; shift 2 ;;
    --dev) dev=$root$2; shift 2 ;;
    *) echo "no such word: $1" >&2; exit 1 ;;
    esac
done
shift
mount -t proc -o nosuid,nodev,noexec proc "$proc"
mount -t tmpfs -o nosuid,mode=755 dev "$dev"
mkdir "$dev/pts" "$dev/shm"
chmod 1777 "$dev/shm"
for name in null zero full random urandom tty; do
    : >"$dev/$name"
    mount --bind "/dev/$name" "$dev/$name"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,nosuid,noexec devpts "$dev/pts"
ln -s pts/ptmx "$dev/ptmx"
ln -s /proc/self/fd "$dev/fd"
ln -s fd/0 "$dev/stdin"
ln -s fd/1 "$dev/stdout"
ln -s fd/2 "$dev/stderr"
ln -s /proc/kcore "$dev/core"
cd "$root"
pivot_root . mnt
cd /
umount -n -l /mnt
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all "$@"
"""


def words(tool: Callable[[str], str], mounts: Sequence[str], stays: bool) -> list[str]:
    """Return the words before the command of a first process; *mounts* are bwrap's, the root first.

    Unless the sandbox *stays*, it ends with the process that makes it.
    """
    for name in ("findmnt", "hostname", "mount", "pivot_root", "setpriv", "umount"):
        tool(name)
    ends_with_us = [] if stays else [tool("setpriv"), "--pdeathsig", "KILL"]
    spaces = "--user --map-root-user --mount --pid --ipc --uts --net --fork --kill-child".split()
    return [*ends_with_us, tool("unshare"), *spaces, "/bin/sh", "-c", _BUILD, "sh", *mounts, "--"]
