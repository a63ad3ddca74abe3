"""Access to the page: a token in the address, and checks of the Host and Origin headers, as Jupyter does.

A page of any web site can send requests to a server on the same machine. Without the token, which is part of the
address, requests are refused; the Host check stops DNS rebinding; the Origin check stops other pages of the same
browser, which would send the cookie along.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hmac
import http
import inspect
import io
import ipaddress
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from unittest import mock
from urllib.parse import parse_qsl, urlsplit

from linkwise.core import foreign
from linkwise.errors import LinkwiseError, needed

if TYPE_CHECKING:
    import viser
    from websockets import Headers

LOOPBACK = "127.0.0.1"
_WILDCARDS = ("", "0.0.0.0", "::")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HEADERS = {
    "Referrer-Policy": "no-referrer",  # the address contains the token
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
# Pages that may put this one in a frame; a notebook is on another port of this machine, so it is another origin.
_FRAMES = {
    False: "frame-ancestors 'self'",
    True: "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*",
}
# [s] for the first request of a connection. Browsers open connections that they may not use, and a server that stops
# waits for their requests.
_PATIENCE = 2.0
_one_at_a_time = threading.Lock()


class Access:
    """Decides which requests are answered.

    Args:
        host: the address that the server is bound to.
        framed: whether pages of other servers on this machine (notebooks) may put this page in a frame.
        title: of the page.
    """

    def __init__(self, host: str, framed: bool = False, title: str = "3-D page"):
        self.title = title
        self.token = secrets.token_urlsafe(24)
        self.headers = {**_HEADERS, "Content-Security-Policy": _FRAMES[framed]}
        self.any_address = host in _WILDCARDS
        self.names = {"localhost", host.lower()}
        if self.any_address:
            machine = socket.gethostname().lower()
            self.names |= {machine, f"{machine}.local", socket.getfqdn().lower()}

    def refusal(self, path: str, headers: Headers, port: int) -> str | None:
        """Why a request is refused; None if it may pass.

        Args:
            path: path and query of the request.
            headers: its headers.
            port: the port that the server listens on; part of the cookie's name, because browsers send cookies to
                every port of a host.
        """
        host = _single(headers, "Host")
        if host is None or not self._known(host):
            return "unknown Host"
        origins = headers.get_all("Origin")
        if origins and (len(origins) > 1 or not _same_origin(origins[0], host)):
            return "request from a page of another origin"
        query = parse_qsl(path.partition("?")[2], keep_blank_values=True)
        if any(name != "token" for name, _ in query):  # viser's page would connect to servers named there
            return "unknown parameter in the address"
        given = [value for name, value in query if name == "token"] or _cookies(headers, cookie_name(port))
        if len(given) != 1 or not hmac.compare_digest(given[0].encode(errors="replace"), self.token.encode()):
            return "no valid token"
        return None

    def _known(self, host: str) -> bool:
        """Whether a Host header names this server. Addresses cannot be rebound by DNS, names can."""
        name = _host_and_port(host, "http")[0]
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name in self.names
        return address.is_loopback or self.any_address or name in self.names


def cookie_name(port: int) -> str:
    """Name of the cookie that carries the token from the page to its websocket."""
    return f"linkwise-view-{port}"


def guarded_server(access: Access, **options: Any) -> viser.ViserServer:
    """A viser server that answers only requests that ``access`` lets pass.

    viser has no hook for this. Its server module calls ``websockets.asyncio.server.serve``; while the server starts,
    that module gets a version of ``serve`` that checks each request first, websocket handshakes included. If viser
    did not call it, the server is stopped and an error raised.
    """
    viser = needed("viser", "view")
    module = sys.modules[viser.infra.WebsockServer.__module__]
    calls: list[object] = []
    with (
        _one_at_a_time,
        _serve_replaced(module, lambda serve: _checked(serve, access, calls)),
        contextlib.redirect_stdout(io.StringIO()),  # viser prints an address without the token
    ):
        server = viser.ViserServer(**options)
        if not calls:
            server.stop()
            raise _unprotected(viser)
    return server


def _unprotected(viser) -> LinkwiseError:
    return LinkwiseError(
        f"viser {viser.__version__} starts its server in another way than expected, so the page cannot be protected; "
        "install another version of viser"
    )


@contextlib.contextmanager
def _serve_replaced(module, change: Callable):
    try:
        package = module.websockets
        server = package.asyncio.server
        serve = change(server.serve)
    except AttributeError:
        raise _unprotected(needed("viser", "view")) from None
    changed = _Overlay(package, asyncio=_Overlay(package.asyncio, server=_Overlay(server, serve=serve)))
    with mock.patch.object(module, "websockets", changed):
        yield


class _Overlay:
    """A module with some of its names replaced."""

    def __init__(self, module, **replaced):
        self.__dict__.update(replaced)
        self._module = module

    def __getattr__(self, name: str):
        return getattr(self._module, name)


def _checked(serve, access: Access, calls: list[object]):
    """``websockets.asyncio.server.serve`` with the checks before the caller's own ``process_request``."""
    from websockets import Headers
    from websockets.http11 import Response

    def refuse(reason: str):
        text = f"Refused: {reason}. Use the complete address that linkwise printed; it contains the token.\n"
        body = text.encode()
        headers = Headers(
            {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), **access.headers}
        )
        return Response(http.HTTPStatus.FORBIDDEN.value, "Forbidden", headers, body)

    def checked_serve(*arguments, process_request=None, **options):
        async def process(connection, request):
            port = connection.local_address[1]
            reason = access.refusal(request.path, request.headers, port)
            if reason is not None:
                return refuse(reason)
            answer = None if process_request is None else process_request(connection, request)
            if inspect.isawaitable(answer):
                answer = await answer
            if answer is not None:
                _extend(answer, access.title)
                for name, value in access.headers.items():
                    answer.headers[name] = value
                cookie = f"{cookie_name(port)}={access.token}; Path=/; HttpOnly; SameSite=Strict"
                answer.headers["Set-Cookie"] = cookie
            return answer

        calls.append(process)
        return serve(*arguments, process_request=process, **{"open_timeout": _PATIENCE, **options})

    return checked_serve


def _extend(answer, title: str) -> None:
    """Append this project's script to viser's page."""
    if answer.status_code != http.HTTPStatus.OK or "text/html" not in answer.headers.get("Content-Type", ""):
        return
    answer.body = _extended(answer.body, answer.headers.get("Content-Encoding") == "gzip", title)
    del answer.headers["Content-Length"]
    answer.headers["Content-Length"] = str(len(answer.body))


# Text of viser's controls with enough contrast to its background, by WCAG 2.
_CONTRAST = """
:root[data-mantine-color-scheme=light]{--mantine-color-dimmed:#454c54;--mantine-primary-color-filled:#0b5ea8;
--mantine-color-blue-filled:#0b5ea8;--mantine-color-blue-outline:#0b5ea8}
:root[data-mantine-color-scheme=dark]{--mantine-color-dimmed:#c9ced4;--mantine-primary-color-filled:#1864ab;
--mantine-color-blue-filled:#1864ab;--mantine-color-blue-outline:#8cc4f5}
:root[data-mantine-color-scheme=dark] [role=tab][aria-selected=true]{color:#8cc4f5!important}
[role=tab]{opacity:1!important}
"""


@functools.lru_cache(maxsize=4)
def _extended(body: bytes, compressed: bool, title: str) -> bytes:
    text = foreign.json_in_html(title)
    script = (files("linkwise.view") / "labels.js").read_text("utf-8").replace("TITLE", text)
    page = (
        gzip.decompress(body) if compressed else body
    ) + f"\n<style>{_CONTRAST}</style>\n<script>{script}</script>\n".encode()
    return gzip.compress(page, mtime=0) if compressed else page


def _single(headers: Headers, name: str) -> str | None:
    values = headers.get_all(name)
    return values[0] if len(values) == 1 else None


def _cookies(headers: Headers, name: str) -> list[str]:
    """Values of a cookie. Split by hand: cookies of other servers on this host may break stricter parsers."""
    pairs = (part.strip().partition("=") for text in headers.get_all("Cookie") for part in text.split(";"))
    return [value for key, _, value in pairs if key == name]


def _same_origin(origin: str, host: str) -> bool:
    """Whether an Origin header belongs to the host of the request. The scheme may differ: a proxy in front of the
    server may speak https."""
    scheme, separator, rest = origin.partition("://")
    if not separator or scheme not in _DEFAULT_PORTS or not rest:
        return False
    return _host_and_port(rest, scheme) == _host_and_port(host, scheme)


def _host_and_port(text: str, scheme: str) -> tuple[str, int]:
    """("", -1) for what is no plain host with an optional port."""
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return "", -1
    if parts.netloc != text or "@" in text:
        return "", -1
    return name, _DEFAULT_PORTS[scheme] if port is None else port
