"""What each entry of a network policy lets through, and what stays closed."""

from __future__ import annotations

import pytest

from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.core.network_rules import is_refused_by_name, parse_target, permits

OUT = "93.184.216.34"


def _allowed(entry, host, port=443, addresses=(OUT,)):
    return bool(permits(NetworkPolicy(NetworkMode.ALLOWLIST, (entry,)), host, port, addresses))


def _denied(entry, host, port=443, addresses=(OUT,)):
    return not permits(NetworkPolicy(NetworkMode.DENYLIST, (), (entry,)), host, port, addresses)


@pytest.mark.seed("CP-05")
@pytest.mark.parametrize(
    ("entry", "host", "port", "addresses", "met"),
    [
        ("a.org", "a.org", 443, [OUT], True),
        ("a.org", "A.ORG.", 443, [OUT], True),
        ("A.org", "a.org", 80, [OUT], True),
        ("a.org", "b.a.org", 443, [OUT], False),
        ("a.org", "a.org.evil.com", 443, [OUT], False),
        ("a.org", "evila.org", 443, [OUT], False),
        ("*.a.org", "b.a.org", 443, [OUT], True),
        ("*.a.org", "c.b.a.org", 443, [OUT], True),
        ("*.a.org", "a.org", 443, [OUT], False),
        ("*.a.org", "evila.org", 443, [OUT], False),
        ("a.org:443", "a.org", 443, [OUT], True),
        ("a.org:443", "a.org", 80, [OUT], False),
        (OUT, OUT, 443, [OUT], True),
        (OUT, "whatever.org", 443, [OUT], True),
        ("93.184.0.0/16", "x.org", 443, [OUT], True),
        ("93.185.0.0/16", "x.org", 443, [OUT], False),
        ("93.184.0.0/16:80", "x.org", 443, [OUT], False),
        ("2606:2800::/32", "x.org", 443, ["2606:2800::1"], True),
        ("[2606:2800::1]:443", "x.org", 443, ["2606:2800::1"], True),
        ("[2606:2800::1]:443", "x.org", 80, ["2606:2800::1"], False),
        ("bücher.de", "xn--bcher-kva.de", 443, [OUT], True),
    ],
)
def test_an_entry_means_its_hosts_in_both_lists(entry, host, port, addresses, met):
    """What an allow list lets through a deny list refuses, and the other way round."""
    assert met is _allowed(entry, host, port, addresses)
    assert met is _denied(entry, host, port, addresses)


@pytest.mark.parametrize(
    "address",
    "127.0.0.1 10.1.2.3 192.168.0.1 172.17.0.1 169.254.169.254 0.0.0.0 224.0.0.1 100.64.0.1 ::1 fe80::1 fd00::1 "
    "::ffff:10.0.0.1 ::ffff:127.0.0.1 fe80::1%eth0 fec0::1 ff02::1 ::7f00:1 64:ff9b::a00:1 2002:7f00:1::1 "
    "2001:db8::1 240.0.0.1 255.255.255.255".split(),
)
def test_private_addresses_are_closed_unless_they_are_listed(address):
    """A suffix does not open them, nor does a deny list; the very host, address or range does."""
    assert not _allowed("*.a.org", "b.a.org", 443, [address])
    assert _denied("b.org", "a.org", 443, [address])
    assert _allowed("a.org", "a.org", 443, [address])
    plain = address.removeprefix("::ffff:").partition("%")[0]
    assert _allowed(plain, "a.org", 443, [address])


@pytest.mark.parametrize("entry", ["93.184.216.34", "::ffff:93.184.216.34", "::ffff:93.184.0.0/112"])
@pytest.mark.parametrize("address", ["93.184.216.34", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"])
def test_an_address_is_the_same_in_every_wrapping(entry, address):
    """An IPv6 address that leads to an IPv4 one is that one, in lists and in answers."""
    assert _allowed(entry, "a.org", 443, [address])
    assert _denied(entry, "a.org", 443, [address])


def test_one_denied_address_is_enough():
    """Of a name that leads to a denied address nothing is permitted; a private one is only left out."""
    policy = NetworkPolicy(NetworkMode.DENYLIST, (), (OUT,))

    assert () == tuple(permits(policy, "a.org", 443, ["1.1.1.1", OUT]))
    assert ("1.1.1.1",) == tuple(permits(policy, "a.org", 443, ["10.0.0.1", "1.1.1.1"]))


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        (NetworkPolicy(), False),
        (NetworkPolicy(NetworkMode.NO_NETWORK), True),
        (NetworkPolicy(NetworkMode.ALLOWLIST, ("b.org", "*.a.org")), True),
        (NetworkPolicy(NetworkMode.ALLOWLIST, ("b.org", "a.org:80")), True),
        (NetworkPolicy(NetworkMode.ALLOWLIST, ("10.0.0.0/8:80",)), True),
        (NetworkPolicy(NetworkMode.ALLOWLIST, ("a.org",)), False),
        (NetworkPolicy(NetworkMode.ALLOWLIST, ("10.0.0.0/8",)), False),
        (NetworkPolicy(NetworkMode.DENYLIST, (), ("a.org",)), True),
        (NetworkPolicy(NetworkMode.DENYLIST, (), ("b.org", OUT)), False),
    ],
)
def test_what_no_address_could_permit_need_not_be_looked_up(policy, refused):
    """A refusal by the name alone asks no name server, who would learn of it."""
    assert refused is is_refused_by_name(policy, "A.org", 443)


def test_only_the_permitted_of_several_addresses_are_left():
    """A name that leads to a private address too is connected to its public one."""
    policy = NetworkPolicy(NetworkMode.ALLOWLIST, ("*.a.org",))

    assert (OUT,) == tuple(permits(policy, "b.a.org", 443, ["10.0.0.1", OUT]))


def test_the_modes_without_lists():
    """Everything, and nothing."""
    assert (OUT,) == tuple(permits(NetworkPolicy(), "a.org", 1, [OUT]))
    assert () == tuple(permits(NetworkPolicy(NetworkMode.NO_NETWORK), "a.org", 1, [OUT]))


@pytest.mark.parametrize(
    "text",
    "|a b|http://a.org|a.org/x|*|a.*.org|*a.org|a.org:0|a.org:x|a.org:99999|1.2.3|1.2.3.4/33|[::1|[::1]x|-a.org|"
    "a..org".split("|"),
)
def test_what_is_no_host_is_refused_with_a_reason(text):
    """URLs, blanks, inner wildcards, impossible ports and half addresses."""
    with pytest.raises(ValueError, match="."):
        parse_target(text)
