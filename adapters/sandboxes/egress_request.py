"""The head of a request to a proxy: read strictly, since two readings of one head are how filters are passed."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentcompass.core.network_rules import normal_host

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::([0-9]{1,5}))?")
_FRAMING = frozenset({"host", "content-length", "transfer-encoding"})
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "proxy-authorization", "upgrade"})


class Request(NamedTuple):
    """What is asked of the proxy: a tunnel to *host* and *port*, or *head* to be sent there.

    *length* is the size of the body that follows; None when it comes in chunks.
    """

    host: str
    port: int
    is_tunnel: bool
    head: bytes = b""
    length: int | None = 0


def parse(head: bytes) -> Request:
    """Read *head*, up to and with the empty line.

    Raises:
        ValueError: it is none that a proxy serves, with the reason.
    """
    first, *lines = head.removesuffix(b"\r\n\r\n").decode("latin-1").split("\r\n")
    if re.search(r"[\0\r\n]", first + "".join(lines)):
        raise ValueError("stray line ends in the head")
    method, target, version = _request_line(first)
    headers = [_header(line) for line in lines]
    if method == "CONNECT":
        host, port = _authority(target, None)
        return Request(host, port, is_tunnel=True)
    scheme, _, rest = target.partition("://")
    if scheme.lower() != "http":
        raise ValueError("this is a proxy: it takes CONNECT, and http:// addresses")
    authority, path = _split(rest)
    host, port = _authority(authority, 80)
    _require_host(headers, host, port)
    kept = [(name, value) for name, value in headers if name.lower() not in _dropped(headers)]
    out = [f"{method} {path} {version}", f"Host: {authority}", *(f"{name}: {value}" for name, value in kept)]
    text = "\r\n".join([*out, "Connection: close", "", ""])
    return Request(host, port, is_tunnel=False, head=text.encode("latin-1"), length=_length(headers))


def chunk_size(line: bytes) -> int:
    """Read the *line* before a chunk.

    Raises:
        ValueError: it is none.
    """
    digits = line.removesuffix(b"\r\n").partition(b";")[0].rstrip(b" \t")
    if not line.endswith(b"\r\n") or not re.fullmatch(rb"[0-9A-Fa-f]{1,15}", digits):
        raise ValueError("a broken chunk")
    return int(digits, 16)


def _request_line(line: str) -> tuple[str, str, str]:
    parts = line.split(" ")
    if len(parts) != 3 or not _TOKEN.fullmatch(parts[0]) or not re.fullmatch(r"[!-~]+", parts[1]):
        raise ValueError("no request of HTTP")
    if parts[2] not in ("HTTP/1.0", "HTTP/1.1"):
        raise ValueError("only HTTP/1 is spoken here")
    return parts[0], parts[1], parts[2]


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not _TOKEN.fullmatch(name):  # a name with a blank, or a folded line, is read in two ways
        raise ValueError("a broken header")
    return name, value.strip(" \t")


def _split(rest: str) -> tuple[str, str]:
    """Split what follows the scheme into the authority and the path with its query; a fragment is not sent."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) :].partition("#")[0]
    return authority, path if path.startswith("/") else f"/{path}"


def _authority(text: str, default: int | None) -> tuple[str, int]:
    found = _AUTHORITY.fullmatch(text)
    port = int(found[2]) if found and found[2] else default
    if found is None or port is None or not 0 < port < 65536:
        raise ValueError("neither a host nor a host with a port" if default else "CONNECT needs a host and a port")
    return normal_host(found[1].strip("[]")), port


def _require_host(headers: list[tuple[str, str]], host: str, port: int) -> None:
    """Refuse a Host header that names another host: a server with many names would believe it."""
    for value in _values(headers, "host"):
        if _authority(value, 80) != (host, port):
            raise ValueError("the Host header names another host than the address")


def _length(headers: list[tuple[str, str]]) -> int | None:
    sizes = _values(headers, "content-length")
    codings = _values(headers, "transfer-encoding")
    if codings:
        if sizes or [value.lower() for value in codings] != ["chunked"]:
            raise ValueError("a body whose length is given in two ways")
        return None
    if len(set(sizes)) > 1 or not all(re.fullmatch("[0-9]{1,18}", size) for size in sizes):
        raise ValueError("a broken Content-Length")
    return int(sizes[0]) if sizes else 0


def _dropped(headers: list[tuple[str, str]]) -> frozenset[str]:
    """Return the names of the headers that are for the proxy; the Host is written anew."""
    listed = {word.strip().lower() for value in _values(headers, "connection") for word in value.split(",")}
    return _HOP_BY_HOP | (listed - _FRAMING) | {"host"}


def _values(headers: list[tuple[str, str]], wanted: str) -> list[str]:
    return [value for name, value in headers if name.lower() == wanted]
