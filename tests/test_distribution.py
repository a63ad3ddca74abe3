"""What a distribution must contain besides code: licences of bundled data, and pinned versions of what tests need."""

import re
import tomllib
from pathlib import Path

import pytest

import linkwise as lw

ROOT = Path(__file__).parents[1]
NOTICE = (ROOT / "NOTICE").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("robot", lw.robots())
def test_the_source_of_every_bundled_robot_is_in_the_notice(robot):
    assert f"{robot}.toml" in NOTICE


def test_the_notice_has_the_licences_of_bundled_data():
    assert "study/joe_kuo.txt" in NOTICE
    assert "Copyright (c) 2008, Frances Y. Kuo and Stephen Joe" in NOTICE
    assert "Copyright 2012-2022 Robot Locomotion Group @ CSAIL" in NOTICE
    assert NOTICE.count("Redistribution and use in source and binary forms") == 4
    assert set(PROJECT["license-files"]) == {"LICENSE", "NOTICE"}


def test_every_dependency_of_tests_documentation_and_tools_is_pinned():
    pinned = {name(line) for line in CONSTRAINTS.splitlines() if "==" in line}
    wanted = {name(line) for line in PROJECT["dependencies"]}
    for extra in ("test", "dev", "docs", "all"):
        wanted |= {name(line) for line in PROJECT["optional-dependencies"][extra]}
    for extra in ("plot", "view", "simulate", "identify", "formulas", "cluster"):
        wanted |= {name(line) for line in PROJECT["optional-dependencies"].get(extra, ())}
    assert wanted - {"linkwise"} <= pinned


def test_constraints_are_plain_versions():
    for line in CONSTRAINTS.splitlines():
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9_.\-]+==[A-Za-z0-9.+!]+", line), line
    assert not re.search(r"^(cupy\S*|linkwise)==", CONSTRAINTS, flags=re.MULTILINE)


def test_make_and_the_checks_of_a_change_install_from_the_constraints():
    assert "-c $(CONSTRAINTS)" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "constraints.txt" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_trust_model_is_stated():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for subject in ("robot file", "study file", "cache", "pickle", "token", "Report"):
        assert subject in text


def name(requirement: str) -> str:
    """The name of a package, spelt in one way."""
    found = re.match(r"[A-Za-z0-9_.\-]+", requirement)
    assert found
    return found[0].lower().replace("_", "-").replace(".", "-")
