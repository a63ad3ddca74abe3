"""Who may use the page: the token, the Host and Origin headers, over plain sockets."""

from __future__ import annotations

import base64
import os
import socket
import urllib.request

import pytest
from test_page import free_port

import linkwise as lw
from linkwise.view.access import Access, cookie_name, guarded_server
from linkwise.view.page import serve

viser = pytest.importorskip("viser")
OK, SWITCHED, REFUSED = 200, 101, 403


@pytest.fixture(scope="module")
def page():
    with_page = serve(lw.load("two_link"), port=free_port())
    yield with_page
    with_page.close()


def answer(page, path: str, *headers: str, upgrade: bool) -> tuple[int, str]:
    """Status and headers that a request over a plain socket gets."""
    lines = [f"GET {path} HTTP/1.1", *headers]
    if upgrade:
        key = base64.b64encode(os.urandom(16)).decode()
        lines += [
            *("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
            f"Sec-WebSocket-Key: {key}",
            f"Sec-WebSocket-Protocol: viser-v{viser.__version__}",
        ]
    with socket.create_connection(("127.0.0.1", page.port), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        received = b""
        while b"\r\n\r\n" not in received:
            piece = connection.recv(4096)
            if not piece:
                break
            received += piece
    head = received.split(b"\r\n\r\n")[0].decode("latin-1")
    return int(head.split()[1]), head


def host(page, name: str = "127.0.0.1") -> str:
    return f"Host: {name}:{page.port}"


def origin(page, name: str = "127.0.0.1") -> str:
    return f"Origin: http://{name}:{page.port}"


def with_token(page) -> str:
    return f"/?token={page.access.token}"


def cookie(page, value: str | None = None) -> str:
    return f"Cookie: a={{b}}; {cookie_name(page.port)}={page.access.token if value is None else value}"


@pytest.mark.parametrize("upgrade", [False, True])
def test_the_right_address_is_answered(page, upgrade):
    good = SWITCHED if upgrade else OK
    assert answer(page, with_token(page), host(page), origin(page), upgrade=upgrade)[0] == good
    assert answer(page, with_token(page), host(page), upgrade=upgrade)[0] == good  # not a browser
    assert answer(page, "/", host(page), origin(page), cookie(page), upgrade=upgrade)[0] == good
    for name in ("localhost", "LOCALHOST", "127.3.2.1", "[::1]"):  # also a tunnel from another port
        given = (f"Host: {name}:9000", f"Origin: http://{name}:9000")
        assert answer(page, with_token(page), *given, upgrade=upgrade)[0] == good
    assert (
        answer(page, with_token(page), "Host: localhost", "Origin: http://localhost:80", upgrade=upgrade)[0]
        == good
    )
    assert (
        answer(page, with_token(page), "Host: localhost", "Origin: https://localhost", upgrade=upgrade)[0]
        == good
    )
    secure = ("Host: localhost", "Origin: https://localhost:443")  # a proxy that speaks https
    assert answer(page, with_token(page), *secure, upgrade=upgrade)[0] == good


@pytest.mark.parametrize("upgrade", [False, True])
def test_requests_without_the_token_are_refused(page, upgrade):
    token = page.access.token
    for path in ("/", "/index.html", "/?token=", f"/?token={token[:-1]}", f"/?token={token}x", "/?token=%ff"):
        assert answer(page, path, host(page), origin(page), upgrade=upgrade)[0] == REFUSED, path
    assert answer(page, f"/?token={token}&token=x", host(page), upgrade=upgrade)[0] == REFUSED
    for value in ("", "x", token[:-1], "\xff"):
        assert answer(page, "/", host(page), cookie(page, value), upgrade=upgrade)[0] == REFUSED
    assert answer(page, "/?token=x", host(page), cookie(page), upgrade=upgrade)[0] == REFUSED


@pytest.mark.parametrize("upgrade", [False, True])
def test_other_host_names_are_refused(page, upgrade):
    """DNS rebinding: a name of another site that resolves to this machine."""
    for name in (
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.168.1.7",
        "x@127.0.0.1",
    ):
        given = (host(page, name), origin(page, name), cookie(page))
        assert answer(page, "/", *given, upgrade=upgrade)[0] == REFUSED, name
        assert answer(page, with_token(page), *given, upgrade=upgrade)[0] == REFUSED, name
    assert answer(page, with_token(page), upgrade=upgrade)[0] == REFUSED
    assert (
        answer(page, with_token(page), host(page), host(page, "evil.example"), upgrade=upgrade)[0] == REFUSED
    )
    for broken in ("", ":80", "[::1", "127.0.0.1:x", "127.0.0.1/", "127.0.0.1?"):
        assert answer(page, with_token(page), f"Host: {broken}", upgrade=upgrade)[0] == REFUSED, broken


@pytest.mark.parametrize("upgrade", [False, True])
def test_pages_of_other_origins_are_refused(page, upgrade):
    others = ("http://evil.example", f"http://localhost:{page.port}", "http://127.0.0.1:1", "null", "",
              f"ftp://127.0.0.1:{page.port}", f"http://127.0.0.1:{page.port}/", f"http://x@127.0.0.1:{page.port}",
              "http://", f"127.0.0.1:{page.port}")  # fmt: skip
    for other in others:
        given = (host(page), f"Origin: {other}", cookie(page))
        assert answer(page, "/", *given, upgrade=upgrade)[0] == REFUSED, other
        assert answer(page, with_token(page), *given, upgrade=upgrade)[0] == REFUSED, other
    both = (host(page), origin(page), "Origin: http://evil.example")
    assert answer(page, with_token(page), *both, upgrade=upgrade)[0] == REFUSED


def test_an_address_must_not_name_another_server(page):
    """viser's page takes its data from ?websocket= and ?playbackPath=."""
    for more in (
        "websocket=ws://evil.example",
        "playbackPath=http://evil.example/x",
        "%77ebsocket=ws://evil.example",
    ):
        assert answer(page, f"{with_token(page)}&{more}", host(page), upgrade=False)[0] == REFUSED
        assert answer(page, f"/?{more}", host(page), cookie(page), upgrade=False)[0] == REFUSED


def test_the_answer_sets_a_cookie_for_the_websocket_and_keeps_the_address_private(page):
    _, head = answer(page, with_token(page), host(page), upgrade=False)
    assert (
        f"Set-Cookie: {cookie_name(page.port)}={page.access.token}; Path=/; HttpOnly; SameSite=Strict" in head
    )
    assert "Referrer-Policy: no-referrer" in head
    assert "frame-ancestors 'self'" in head
    _, refused = answer(page, "/", host(page), upgrade=False)
    assert page.access.token not in refused
    assert "Set-Cookie" not in refused


def test_the_address_works_and_every_page_has_its_own_token(page):
    assert page.url == f"http://127.0.0.1:{page.port}/?token={page.access.token}"
    assert page.network_url is None
    with urllib.request.urlopen(page.url) as opened:
        assert opened.status == OK
    tokens = {Access("127.0.0.1").token for _ in range(20)}
    assert len(tokens) == 20
    assert all(len(token) >= 32 for token in tokens)


def test_a_page_for_the_network_needs_the_token_too():
    page = serve(lw.load("two_link"), host="0.0.0.0", port=free_port())
    try:
        machine = socket.gethostname()
        assert page.url.startswith("http://127.0.0.1:")
        assert page.network_url == page.url.replace("127.0.0.1", machine)
        for name in ("192.168.1.7", machine):
            assert answer(page, with_token(page), host(page, name), upgrade=False)[0] == OK
            assert answer(page, "/", host(page, name), upgrade=False)[0] == REFUSED
        assert answer(page, with_token(page), host(page, "evil.example"), upgrade=False)[0] == REFUSED
    finally:
        page.close()


def test_a_name_given_as_host_is_known():
    from websockets import Headers

    access = Access("Robot.lab.example")
    for name, refused in (("robot.lab.example", False), ("other.lab.example", True), ("10.0.0.1", True)):
        reason = access.refusal(f"/?token={access.token}", Headers({"Host": name}), 80)
        assert (reason is not None) == refused


def test_a_viser_that_starts_otherwise_is_not_served_unprotected(monkeypatch):
    module = __import__(viser.infra.WebsockServer.__module__, fromlist=["x"])
    monkeypatch.setattr(module, "websockets", object())
    with pytest.raises(lw.LinkwiseError, match="cannot be protected"):
        guarded_server(Access("127.0.0.1"), host="127.0.0.1", port=free_port())
