"""Addresses that a page can be served at: where one is not of this machine, viser would try ports for ever."""

from __future__ import annotations

import errno
import os
import socket

from linkwise.errors import LinkwiseError

HIGHEST_PORT = 65535


def free_port(host: str, port: int) -> int:
    """The first port from ``port`` on that nobody uses.

    Args:
        host: address or name of this machine; "" and "0.0.0.0" mean all of its addresses.
        port: 0 leaves the choice to the operating system.

    Returns:
        The port, or 0 if ``port`` is 0.

    Raises:
        LinkwiseError: the address is not of this machine, the port may not be used, or all ports are busy.
    """
    if not 0 <= port <= HIGHEST_PORT:
        raise LinkwiseError(f"port: expected a number from 0 to {HIGHEST_PORT}, got {port}")
    for candidate in (0,) if port == 0 else range(port, HIGHEST_PORT + 1):
        if _can_bind(host, candidate):
            return candidate
    raise LinkwiseError(f"port: all ports from {port} on are busy")


def _can_bind(host: str, port: int) -> bool:
    """Whether a server can listen there; False if another one does. Other problems are errors."""
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise LinkwiseError(f"host: {host!r} is no address: {_reason(error)}") from None
    problems: list[OSError] = []
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as server:
            try:
                if os.name == "posix":  # as asyncio does
                    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                server.bind(address)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return False
                if error.errno != errno.EADDRNOTAVAIL:  # a family of addresses that is switched off
                    raise LinkwiseError(f"host {host!r}, port {port}: {_reason(error)}") from None
                problems.append(error)
    if len(problems) == len(addresses):
        raise LinkwiseError(
            f"host: {host!r} is no address of this machine; 0.0.0.0 serves the page at all of its addresses"
        )
    return True


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")
