"""The file system of a `bubblewrap` sandbox: a private folder as its root, in which the machine's system is read-only.

The system's folders are mounts rather than links, and so are the files that the loader of programs reads: what cannot
be moved away cannot be replaced, by which a command of ours that enters the sandbox could be taken over.
"""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_FOLDERS = (
    "app tests logs solution home root run srv mnt media opt etc proc dev sys var/lib var/log var/cache var/spool"
).split()
_OPEN_FOLDERS = ("tmp", "var/tmp")
_ETC = (  # of this machine, where it is there; nothing in it tells of people, hosts or keys
    "alternatives ssl/certs ssl/openssl.cnf ca-certificates ca-certificates.conf pki/tls/certs pki/ca-trust "
    "ld.so.cache ld.so.conf ld.so.conf.d localtime timezone mime.types services protocols rpc fonts perl python3* "
    "terminfo inputrc bash.bashrc profile debian_version os-release lsb-release magic shells login.defs gai.conf "
    "java-*-openjdk resolv.conf"
).split()
_FILES = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n",
    "hostname": "sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    "ld.so.preload": "",
}


def make(root: str, workdir: str, owner: int | None) -> None:
    """Make the folders and files of the sandbox in *root*, and give them to *owner* (None: they stay ours).

    Raises:
        OSError: that fails.
    """
    os.mkdir(root, 0o755)
    for name in (*_FOLDERS, *_OPEN_FOLDERS, *_system(), workdir.strip("/")):
        os.makedirs(f"{root}/{name}", exist_ok=True)
    for name in _OPEN_FOLDERS:
        os.chmod(f"{root}/{name}", 0o1777)  # noqa: S103
    os.chmod(f"{root}/root", 0o700)
    for name, text in _FILES.items():
        with open(f"{root}/etc/{name}", "x", encoding="ascii") as file:
            file.write(text)
    if owner is not None:
        for folder, _, names in os.walk(root):
            for path in (folder, *(f"{folder}/{name}" for name in names)):
                os.chown(path, owner, owner)


def mounts(root: str, bind: Sequence[tuple[str, str]]) -> list[str]:
    """Return bwrap's arguments: *root*, the system over it, and the sources and targets of *bind*, read-only."""
    arguments = ["--bind", root, "/", "--bind", f"{root}/etc", "/etc"]
    for name in _system():
        arguments += ["--ro-bind", f"/{name}", f"/{name}"]
    arguments += ["--ro-bind", f"{root}/etc/ld.so.preload", "/etc/ld.so.preload"]
    for path in _etc():
        arguments += ["--ro-bind", path, path]
    for source, target in bind:
        arguments += ["--ro-bind", source, target]
    return [*arguments, "--proc", "/proc", "--dev", "/dev"]


def _system() -> list[str]:
    return [name for name in _SYSTEM if os.path.isdir(f"/{name}")]


def _etc() -> Iterator[str]:
    for pattern in _ETC:
        yield from (path for path in sorted(glob.glob(f"/etc/{pattern}")) if os.path.exists(path))
