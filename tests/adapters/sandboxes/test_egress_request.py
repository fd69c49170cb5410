"""Tests of how the head of a request to a proxy is read."""

from __future__ import annotations

import pytest

from agentcompass.adapters.sandboxes.egress_request import chunk_size, parse


def test_a_request_is_rewritten_for_its_server():
    """The address becomes host and path; what is for the proxy is dropped, what Connection lists too."""
    request = parse(
        b"POST http://A.org:8080?q#f HTTP/1.1\r\nHost: a.org:8080\r\nContent-Length: 3\r\nProxy-Authorization: x\r\n"
        b"Connection: close, X-Hop, Content-Length\r\nX-Hop: 1\r\nX-Stays: \xff\r\n\r\n"
    )

    assert ("a.org", 8080, False, 3) == (request.host, request.port, request.is_tunnel, request.length)
    assert (
        b"POST /?q HTTP/1.1\r\nHost: A.org:8080\r\nContent-Length: 3\r\nX-Stays: \xff\r\nConnection: close\r\n\r\n"
    ) == request.head


def test_a_tunnel_is_asked_for():
    """To a name or an address, with a port."""
    assert ("::1", 443, True) == parse(b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n")[:3]
    assert ("a.org", 22, True) == parse(b"CONNECT a.org.:22 HTTP/1.0\r\nHost: whatever\r\n\r\n")[:3]


@pytest.mark.parametrize(
    "request_text",
    [
        "GET / HTTP/1.1\r\nHost: a.org\r\n\r\n",
        "GET https://a.org/ HTTP/1.1\r\n\r\n",
        "GET http://user:word@a.org/ HTTP/1.1\r\n\r\n",
        "GET http://a.org\\@b.org/ HTTP/1.1\r\n\r\n",
        "GET http://a.org:99999/ HTTP/1.1\r\n\r\n",
        "GET http:/// HTTP/1.1\r\n\r\n",
        "GET http://[::1%25eth0]/ HTTP/1.1\r\n\r\n",
        "GET http://a.org/ HTTP/1.1\r\nHost: b.org\r\n\r\n",
        "GET http://a.org/ HTTP/1.1\r\nHost: a.org:81\r\n\r\n",
        "GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\nHost: b.org\r\n\r\n",
        "GET http://a.org/ HTTP/1.1\r\nHost : b.org\r\n\r\n",
        "GET http://a.org/ HTTP/1.1\r\nX: 1\r\n Host: b.org\r\n\r\n",
        "GET http://a.org/ HTTP/1.1\r\nX: 1\nHost: b.org\r\n\r\n",
        "GET http://a.org/ HTTP/1.1\r\nX: 1\rHost: b.org\r\n\r\n",
        "POST http://a.org/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST http://a.org/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST http://a.org/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
        "POST http://a.org/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "GET http://a.org/ HTTP/2.0\r\n\r\n",
        "GET  http://a.org/ HTTP/1.1\r\n\r\n",
        "CONNECT a.org HTTP/1.1\r\n\r\n",
        "CONNECT http://a.org:443 HTTP/1.1\r\n\r\n",
        "CONNECT a.org:0 HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x02\x00\r\n\r\n",
        "\r\n\r\n",
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(request_text):
    """Garbage, and the tricks by which one head means two hosts or two lengths."""
    with pytest.raises(ValueError, match="."):
        parse(request_text.encode("latin-1"))


def test_sizes_of_chunks():
    """With extensions, and nothing but hexadecimal digits."""
    assert [0, 26, 26] == [chunk_size(line) for line in (b"0\r\n", b"1a\r\n", b"1A ;x=y\r\n")]
    for broken in (b"\r\n", b"-1\r\n", b"0x1\r\n", b"1_0\r\n", b"1", b"1" * 16 + b"\r\n"):
        with pytest.raises(ValueError, match="broken chunk"):
            chunk_size(broken)
