"""What a network policy lets through: hosts by name, addresses and ranges, each perhaps at one port.

The decision is made on the addresses that are then connected to, so that a name cannot lead elsewhere later. Private,
loopback and link-local addresses (the metadata services of clouds among them) stay closed unless the policy lists the
very host, address or range.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from .model.network import NetworkMode, NetworkPolicy

Address = IPv4Address | IPv6Address
_NAT64 = IPv6Network("64:ff9b::/96")  # a gateway turns it into IPv4
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")


@dataclass(frozen=True, slots=True)
class Target:
    """One entry of a list: a *name* (or the suffix of names, for ``*.suffix``) or a *range*, at *port* or at any."""

    name: str | None = None
    is_suffix: bool = False
    range: IPv4Network | IPv6Network | None = None
    port: int | None = None

    def names(self, host: str, port: int) -> bool:
        """Tell whether the entry means the name *host*, as it was asked for."""
        if self.name is None or self.port not in (None, port):
            return False
        return host.endswith(f".{self.name}") if self.is_suffix else host == self.name

    def holds(self, address: Address, port: int) -> bool:
        """Tell whether the entry means *address*."""
        return self.range is not None and self.port in (None, port) and address in self.range


def parse_target(text: str) -> Target:
    """Read a host name, ``*.suffix``, address or range, perhaps with ``:port``; an IPv6 one with a port in brackets.

    Raises:
        ValueError: it is none, with the reason.
    """
    host, port = _split_port(text.strip())
    network = _range(host)
    if network is not None:
        return Target(range=network, port=port)
    is_suffix = host.startswith("*.")
    name = normal_host(host[2:] if is_suffix else host)
    if not all(_LABEL.fullmatch(label) for label in name.split(".")) or len(name) > 253:
        raise ValueError("neither a host name, a *.suffix, an address nor a range")
    if re.fullmatch(r"[0-9.]+", name):
        raise ValueError("an incomplete address")
    return Target(name, is_suffix, port=port)


def normal_host(host: str) -> str:
    """Return *host* in lower case, in ASCII, without the dot of the root."""
    host = host.strip().rstrip(".")
    try:
        return host.lower() if host.isascii() else host.encode("idna").decode("ascii").lower()
    except UnicodeError as exc:
        raise ValueError("no host name") from exc


def is_refused_by_name(policy: NetworkPolicy, host: str, port: int) -> bool:
    """Tell whether `permits` refuses *host* wherever it leads; then nobody need ask for its addresses.

    Even a look-up tells something to whoever answers for the name.
    """
    if policy.network_mode is NetworkMode.NO_NETWORK:
        return True
    name = normal_host(host)
    if policy.network_mode is NetworkMode.ALLOWLIST:
        targets = map(parse_target, policy.allowed_hosts)
        return not any(t.names(name, port) or (t.range is not None and t.port in (None, port)) for t in targets)
    return policy.network_mode is NetworkMode.DENYLIST and any(
        target.names(name, port) for target in map(parse_target, policy.denied_hosts)
    )


def permits(policy: NetworkPolicy, host: str, port: int, addresses: Iterable[str]) -> Sequence[str]:
    """Return those of *addresses*, to which *host* resolves (itself, if it is one), that may be connected to."""
    if policy.network_mode is NetworkMode.NO_NETWORK:
        return ()
    if policy.network_mode is NetworkMode.PUBLIC:
        return tuple(addresses)
    allow = policy.network_mode is NetworkMode.ALLOWLIST
    targets = [parse_target(entry) for entry in (policy.allowed_hosts if allow else policy.denied_hosts)]
    found = [(text, _address(text)) for text in addresses]
    name = normal_host(host)
    if allow:
        return tuple(text for text, address in found if _is_allowed(targets, name, address, port))
    if any(t.names(name, port) or any(t.holds(address, port) for _, address in found) for t in targets):
        return ()
    return tuple(text for text, address in found if is_open(address))


def _is_allowed(targets: Sequence[Target], name: str, address: Address, port: int) -> bool:
    for target in targets:
        if target.holds(address, port):
            return True
        if target.names(name, port) and (is_open(address) or not target.is_suffix):
            return True
    return False


def is_open(address: Address) -> bool:
    """Tell whether *address* is one of the public network."""
    return address.is_global and not (address.is_multicast or address.is_reserved or _is_of_old(address))


def _is_of_old(address: Address) -> bool:
    """Tell whether *address* is of a withdrawn range that Python may count as public: site-local, 6to4."""
    return isinstance(address, IPv6Address) and (address.is_site_local or address.sixtofour is not None)


def _address(text: str) -> Address:
    return _unwrapped(ip_address(text.partition("%")[0]))


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address to which the IPv6 one leads, if it does: what is connected to is that."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _split_port(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError("the brackets of an address do not close")
        return host, _port(rest[1:]) if rest else None
    if text.count(":") == 1:
        host, _, rest = text.partition(":")
        return host, _port(rest)
    return text, None


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 65536:
        raise ValueError(f"{text!r} is no port")
    return int(text)


def _range(text: str) -> IPv4Network | IPv6Network | None:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        if "/" in text or ":" in text:
            raise ValueError("neither an address nor a range") from None
        return None
    first = _unwrapped(network.network_address)
    if first.version == 4 and network.version == 6 and network.prefixlen >= 96:
        return IPv4Network((int(first), network.prefixlen - 96))
    return network
