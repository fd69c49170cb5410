"""What each entry of a network policy lets through, and what stays closed."""

from __future__ import annotations

import pytest

from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.core.network_rules import parse_target, permits

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
    "::ffff:10.0.0.1 ::ffff:127.0.0.1".split(),
)
def test_private_addresses_are_closed_unless_they_are_listed(address):
    """A suffix does not open them, nor does a deny list; the very host, address or range does."""
    assert not _allowed("*.a.org", "b.a.org", 443, [address])
    assert _denied("b.org", "a.org", 443, [address])
    assert _allowed("a.org", "a.org", 443, [address])
    plain = address.removeprefix("::ffff:")
    assert _allowed(plain, "a.org", 443, [address])


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
