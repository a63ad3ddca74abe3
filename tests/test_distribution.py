"""What a distribution must contain besides code: licences of bundled data, and pinned versions of what tests need."""

import importlib
import re
import tomllib
import zipfile
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
    assert "study/sampling/joe_kuo.txt" in NOTICE
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


# -- releases ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def release(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("release")


READY = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2030-01-31\n\n### Added\n\n- x\n"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("", ""), None),
        (("[Unreleased]\n", "[Unreleased]\n\n### Added\n\n- y\n"), "under [Unreleased]"),
        (("[1.2.0] - 2030-01-31", "[1.1.0] - 2030-01-31"), "no section [1.2.0]"),
        ((" - 2030-01-31", ""), "has no date"),
        (("- x\n", ""), "is empty"),
    ],
)
def test_a_release_needs_its_changelog(release, change, problem):
    found = release.changelog_problems(READY.replace(*change) if change[0] else READY, "1.2.0")
    assert (found == []) if problem is None else (len(found) == 1 and problem in found[0])


def test_every_file_states_the_version(release, tmp_path):
    assert release.version_problems(PROJECT["version"]) == []
    assert len(release.version_problems("9.9.9")) == 3


def test_the_citation_has_what_is_needed():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for key in ("cff-version: 1.2.0", "message:", "title:", "authors:", f"license: {PROJECT['license']}"):
        assert re.search(rf"^{re.escape(key)}", text, flags=re.MULTILINE), key


def wheel(path: Path, tag: str = "py3-none-any", extra: str = "", **metadata: str) -> Path:
    says = {"Version": PROJECT["version"], "Requires-Python": PROJECT["requires-python"], **metadata}
    lines = [f"{key}: {value}" for key, value in says.items()]
    lines += [f"Classifier: {each}" for each in PROJECT["classifiers"]]
    lines += [f"Requires-Dist: {each}" for each in PROJECT["dependencies"]]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("linkwise-0.dist-info/METADATA", "\n".join(lines) + "\n\n")
        archive.writestr("linkwise-0.dist-info/WHEEL", f"Root-Is-Purelib: true\nTag: {tag}\n")
        if extra:
            archive.writestr(extra, "")
    return path


def test_the_metadata_of_a_wheel_tell_the_truth(release, tmp_path):
    assert release.metadata_problems(wheel(tmp_path / "a.whl"), PROJECT) == []
    for given, problem in (
        ({"tag": "cp311-cp311-linux_x86_64"}, "not pure"),
        ({"extra": "linkwise/x.so"}, "contains linkwise/x.so"),
        ({"Version": "9"}, "its version is 9"),
        ({"Requires-Python": ">=3.8"}, "states Python >=3.8"),
        ({"Classifier": "Operating System :: OS Independent"}, "classifiers differ"),
        ({"Requires-Dist": "scipy"}, f"requires {len(PROJECT['dependencies']) + 1} packages"),
    ):
        (found,) = release.metadata_problems(wheel(tmp_path / "b.whl", **given), PROJECT)
        assert problem in found


def test_systems_that_are_only_simulated_are_not_promised():
    systems = [each for each in PROJECT["classifiers"] if each.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]


def test_numpy_for_new_versions_of_python():
    assert "numpy>=2.1; python_version >= '3.13'" in PROJECT["dependencies"]


def test_the_conda_recipe_agrees_with_the_project():
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'version: "{PROJECT["version"]}"' in recipe
    assert f"python {PROJECT['requires-python']}" in recipe
    wanted = [each.partition(";")[0] for each in PROJECT["dependencies"] if "python_version >=" not in each]
    for each in wanted:
        package, _, least = each.partition(">=")
        assert f"    - {package} >={least}\n" in recipe
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    assert run.count("\n") == len(wanted)
    assert f"linkwise = {PROJECT['scripts']['linkwise']}" in recipe
    assert PROJECT["description"] in recipe
