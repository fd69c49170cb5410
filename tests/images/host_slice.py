"""Makes an image for tests from this machine's own files, so that sandboxes can be tested without a registry.

``python tests/images/host_slice.py`` makes it by hand and prints its tag.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO

import docker
from docker.errors import ImageNotFound

REPOSITORY = "agentcompass/host-slice"
LABEL = "agentcompass.test-image"
#: Names under which it stands in for what benchmarks build from, where these are absent.
STAND_INS = ("debian:12", "debian:12-slim", "python:3.11-slim")
WORKDIR = "/work"

_PROGRAMS = """
    [ awk base32 base64 basename bash cat chgrp chmod chown cksum cmp comm cp curl cut dash date dd df diff dir dirname
    du echo egrep env expand expr false fgrep find flock fmt fold free getent git grep groups gunzip gzip head hostname
    iconv id
    install ip join kill ldconfig link ln locale logname ls md5sum mkdir mkfifo mknod mktemp more mv nice nl nohup nproc
    nsenter od openssl paste patch perl pgrep pidof pkill printenv printf prlimit ps pwd readlink realpath renice rm
    rmdir sed seq setpriv setsid sha1sum sha256sum sh shred shuf sleep sort split stat stdbuf stty su sum sync tac tail
    tar tee test time timeout tmux touch tr true truncate tsort tty uname uniq unlink uptime users vdir wc whoami xargs
    xz yes
""".split()
_EXTRA = (
    "/usr/lib/git-core",
    "/etc/ssl/certs/ca-certificates.crt",
    "/usr/share/terminfo",
    "/lib/terminfo",
    "/usr/lib/locale/C.utf8",
)
# Not in any closure: programs from elsewhere ask for them by name, and they are empty since glibc 2.34.
_STUBS = ("librt.so.1", "libpthread.so.0", "libdl.so.2", "libutil.so.1", "libm.so.6", "libresolv.so.2", "libanl.so.1")
_LINKS = {"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"}
_FOLDERS = {"/tmp": 0o1777, "/var/tmp": 0o1777, "/root": 0o700, WORKDIR: 0o755, "/usr/lib64": 0o755, "/usr/sbin": 0o755}
_FILES = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/bin/false\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n",
    "/etc/group": "root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "/etc/os-release": 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="AgentCompass host slice"\n',
}
_PYTHON_LEFT_OUT = {"test", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "site-packages", "__pycache__"}
_NEEDED = re.compile(r"(?:=> )?(/\S+) \(0x")


def ensure_image() -> str:
    """Make the image unless it is there, tag the stand-ins that are absent, and return its tag."""
    api = docker.from_env().api
    try:
        paths = sorted(_paths())
        tag = f"{REPOSITORY}:{_fingerprint(paths)}"
        if not _exists(api, tag):
            with tempfile.TemporaryFile() as archive:
                _write(paths, archive)
                archive.seek(0)
                repository, _, version = tag.rpartition(":")
                changes = [f"WORKDIR {WORKDIR}", 'CMD ["bash"]', f"LABEL {LABEL}=1"]
                changes.append("ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
                api.import_image(src=archive, repository=repository, tag=version, changes=changes)
        for name in STAND_INS:
            if not _exists(api, name):
                api.tag(tag, *name.split(":"))
    finally:
        api.close()
    return tag


def _exists(api: docker.APIClient, tag: str) -> bool:
    try:
        api.inspect_image(tag)
    except ImageNotFound:
        return False
    return True


def _paths() -> set[str]:
    """Name every file that goes in, where it is here: programs, Python, and the libraries that they need."""
    found: set[str] = set()
    for program in _PROGRAMS:
        path = shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin")
        if path is not None:
            found |= _chain(path)
    for root in (*_EXTRA, *_python()):
        found |= set(_below(root)) if os.path.isdir(root) else _chain(root)
    binaries = [path for path in found if os.path.isfile(path) and _is_elf(path)]
    folder = os.path.dirname(os.path.realpath(_libraries([sys.executable, "/usr/bin/env"], "libc.so.6")))
    stubs = [f"{folder}/{name}" for name in _STUBS if os.path.exists(f"{folder}/{name}")]
    for library in (*_closure([*binaries, *stubs]), *stubs):
        found |= _chain(library)
    return found


def _python() -> Iterator[str]:
    """Yield the parts of the system's Python, without what no test needs."""
    program = shutil.which("python3", path="/usr/bin:/bin")
    if program is None:
        return
    yield program
    ask = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    stdlib = subprocess.run([program, "-I", "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    for entry in os.listdir(stdlib):
        if entry not in _PYTHON_LEFT_OUT and not entry.startswith("config-"):
            yield f"{stdlib}/{entry}"


def _below(root: str) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in (*files, *(name for name in folders if os.path.islink(f"{folder}/{name}"))):
            yield from _chain(f"{folder}/{name}")


def _chain(path: str) -> set[str]:
    """Return *path* and what its links lead to, all below /usr, /etc or wherever they really are."""
    found = set()
    while os.path.lexists(path):
        place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if place in found:
            break
        found.add(place)
        if not os.path.islink(place):
            break
        path = os.path.join(os.path.dirname(place), os.readlink(place))
    return {place for place in found if not os.path.isdir(place) or os.path.islink(place)}


def _is_elf(path: str) -> bool:
    with suppress(OSError), open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"
    return False


def _closure(binaries: list[str]) -> set[str]:
    return {path for path in _NEEDED.findall(_ldd(binaries)) if os.path.exists(path)}


def _libraries(binaries: list[str], name: str) -> str:
    return next(path for path in _closure(binaries) if os.path.basename(path) == name)


def _ldd(binaries: list[str]) -> str:
    return subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False).stdout


def _fingerprint(paths: Iterable[str]) -> str:
    digest = hashlib.sha256(repr((_FILES, _FOLDERS, _LINKS)).encode())
    for path in paths:
        facts = os.lstat(path)
        digest.update(f"{path}\0{facts.st_size}\0{facts.st_mode}\0{int(facts.st_mtime)}\n".encode())
    return digest.hexdigest()[:16]


def _write(paths: Iterable[str], archive: BinaryIO) -> None:
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path, mode in _FOLDERS.items():
            _add(tar, path, tarfile.DIRTYPE, mode)
        for path, target in _LINKS.items():
            _add(tar, path, tarfile.SYMTYPE, 0o777, link=target)
        for path, text in _FILES.items():
            _add(tar, path, tarfile.REGTYPE, 0o644, text.encode())
        for path in paths:
            member = tar.gettarinfo(path, path.lstrip("/"))
            member.uid = member.gid = 0
            if member.isreg():
                with open(path, "rb") as file:
                    tar.addfile(member, file)
            else:
                tar.addfile(member)


def _add(tar: tarfile.TarFile, path: str, kind: bytes, mode: int, content: bytes = b"", link: str = "") -> None:
    member = tarfile.TarInfo(path.lstrip("/"))
    member.type, member.mode, member.size, member.linkname = kind, mode, len(content), link
    tar.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    print(ensure_image())
