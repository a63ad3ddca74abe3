"""``linkwise view`` as people start it."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from linkwise.cli import main

pytest.importorskip("viser")


def started(*arguments: str) -> tuple[subprocess.Popen, list[str]]:
    """The running command, and its lines up to the one with the address."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "linkwise", "view", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip())
        if "http://" in line:
            return process, lines
    raise AssertionError(process.communicate()[1])


def test_a_busy_port_is_said_and_another_taken():
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        process, lines = started("two_link", "--port", str(busy))
        try:
            assert f"port {busy} is busy" in lines[0]
            address = lines[-1].split()[3]
            assert str(busy) not in address
            with urllib.request.urlopen(address) as page:
                assert page.status == 200
        finally:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_ctrl_c_ends_it_as_soon_as_the_address_is_read(monkeypatch, capsys):
    """The first to read the address may press Ctrl+C before the command waits for it."""

    def pressed_at_once(page, wanted, as_json):
        raise KeyboardInterrupt

    monkeypatch.setattr("linkwise.cli.view.announce", pressed_at_once)
    assert main(["view", "two_link", "--port", "0"]) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_mistyped_robot(capsys):
    assert main(["view", "pandda"]) == 2
    assert "did you mean 'panda'?" in capsys.readouterr().err


def test_a_motion_of_another_robot(tmp_path, capsys):
    path = tmp_path / "motion.csv"
    path.write_text("t,q1\n0,0\n1,1\n2,0\n")
    assert main(["view", "two_link", "--trajectory", str(path)]) == 2
    assert "a motion of 1 joints, expected 2" in capsys.readouterr().err


def test_without_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "viser", None)  # as if it were not installed
    assert main(["view", "two_link"]) == 2
    assert "pip install 'linkwise[view]'" in capsys.readouterr().err
