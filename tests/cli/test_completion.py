"""What shells complete, and pages that ``--open`` shows."""

import os
import subprocess
import sys
import webbrowser

import pytest

from linkwise.cli import main


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("generate panda inverse_", ["plain,inverse_dynamics", "plain,inverse_mass_matrix"]),
        ("generate panda comp", ["plain,computed_torque"]),
        ("generate panda mass_matrix momentum_", ["plain,momentum_observer"]),
        ("generate panda mass_matrix --algorithm cov", ["plain,covariance"]),
        ("generate panda mass_matrix --target wa", ["plain,wasm"]),
        ("simulate panda --controller gravity", ["plain,gravity_pd"]),
        ("info pan", ["plain,panda"]),
        ("identify panda lo", ["file,lo"]),
        ("inverse panda --report pa", ["file,pa"]),
        ("inverse panda --base fl", ["plain,floating"]),
    ],
)
def test_completion(monkeypatch, capsys, typed, expected):
    """What the functions that shells run ask for."""
    words = ["linkwise", *typed.split()]
    monkeypatch.setenv("_LINKWISE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    with pytest.raises(SystemExit):
        main([])
    assert set(expected) <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_shell_gets_its_functions(shell):
    """bash is asked for its version first, so it is left to where there is one."""
    environment = {**os.environ, "_LINKWISE_COMPLETE": f"{shell}_source"}
    ran = subprocess.run([sys.executable, "-m", "linkwise"], capture_output=True, text=True, env=environment)
    assert "_LINKWISE_COMPLETE" in ran.stdout, ran.stderr


def test_open_shows_the_page_that_was_written(linkwise, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    page = tmp_path / "page.html"
    given = ("inverse", "two_link", "--trajectory", "quintic", "--to", "1,1", "--points", "5")
    assert linkwise(*given, "--out", "/dev/null", "--report", page, "--open").status == 0
    assert opened == [page.resolve().as_uri()]
    assert page.exists()
    assert "give --report FILE.html" in linkwise(*given, "--open").refused()
    assert len(opened) == 1


def test_without_a_browser_the_page_is_named(linkwise, tmp_path, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    page = tmp_path / "page.html"
    ran = linkwise(
        "simulate", "two_link", "--duration", "0.05", "--report", page, "--open", "--out", "/dev/null"
    )
    assert ran.status == 0
    assert page.resolve().as_uri() in ran.err
