"""Whole-body control in C packages: the same bits as in Python, torques within their limits."""

import shutil
import subprocess

import pytest

import linkwise as lw
from linkwise.embedded import Options, Package, entries
from linkwise.errors import LinkwiseError

LIMITS = (20.0, 6.0)


@pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make")
def test_the_c_of_a_package_has_the_bits_of_python(tmp_path):
    Package(lw.load("two_link"), ("whole_body",), Options(torque_limits=LIMITS), count=6).write(
        tmp_path / "pkg"
    )
    source = (tmp_path / "pkg/src/two_link_whole_body.c").read_text()
    assert "malloc" not in source
    header = (tmp_path / "pkg/include/two_link.h").read_text()
    assert "#define TWO_LINK_WHOLE_BODY_LIMITS " in header
    done = subprocess.run(
        ["make", "-s", "check", "CFLAGS=-O0"],
        cwd=tmp_path / "pkg",
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert "all bits equal" in done.stdout, done.stdout + done.stderr


def test_its_states_reach_limits_and_robots_with_a_floating_base_are_refused():
    entry = entries(lw.load("two_link"), ["whole_body"], Options(torque_limits=LIMITS))[0]
    states = entry.states(16)
    found = dict(zip((name for name, _ in entry.kernel.outputs), entry.kernel(*states.values()), strict=True))
    assert (abs(found["tau"]) <= LIMITS).all()
    assert found["active"].any()
    assert (found["report"][:, 0] < 1e-6).all()
    with pytest.raises(LinkwiseError, match="one coordinate each"):
        entries(lw.load("two_link").with_base("floating"), ["whole_body"])
