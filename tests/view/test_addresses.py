"""Addresses at which the page cannot be served are refused at once: viser would try port after port."""

import socket

import pytest

from linkwise.cli import main
from linkwise.errors import LinkwiseError
from linkwise.view.addresses import HIGHEST_PORT, free_port

OTHERS = (
    "203.0.113.5",
    "no.such.host.invalid",
    "300.1.1.1",
    "127.0.0.1:80",
    "a b",
    "x" * 300,
    "2001:db8::1",
    "\0",
)


def test_addresses_of_other_machines_are_errors():
    for host in OTHERS:
        for port in (0, 8080):
            with pytest.raises(LinkwiseError, match=r"^host"):
                free_port(host, port)


def test_the_command_ends_with_one_line(capsys):
    pytest.importorskip("viser")
    for host in OTHERS[:2]:
        assert main(["view", "two_link", "--host", host]) == 2
        assert capsys.readouterr().err.startswith(f"linkwise: host: '{host}' is no address")


def test_the_next_free_port_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        busy = server.getsockname()[1]
        if busy < HIGHEST_PORT:
            assert free_port("127.0.0.1", busy) > busy
    assert free_port("127.0.0.1", 0) == 0
    assert free_port("", 0) == 0
    for port in (-1, HIGHEST_PORT + 1):
        with pytest.raises(LinkwiseError, match="port: expected a number from 0 to 65535"):
            free_port("127.0.0.1", port)
