"""What a distribution must contain besides code: licences of bundled data, and pinned versions of what tests need."""

import importlib
import json
import re
import tomllib
import zipfile
from datetime import date
from pathlib import Path

import pytest
import yaml

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
    assert len(release.version_problems("9.9.9")) == len(release.STATED)


def test_one_command_states_a_version_everywhere(release, tmp_path):
    for name in (*release.STATED, *release.DATED, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "CHANGELOG.md").write_text(
        READY.replace("[Unreleased]\n", "[Unreleased]\n\n### Added\n\n- y\n")
    )
    assert set(release.state_version("9.8.7", date(2031, 2, 3), tmp_path)) >= set(release.STATED)
    assert release.version_problems("9.8.7", tmp_path) == []
    changelog = (tmp_path / "CHANGELOG.md").read_text()
    assert release.changelog_problems(changelog, "9.8.7") == []
    assert changelog.index("[9.8.7] - 2031-02-03") < changelog.index("- y") < changelog.index("[1.2.0]")
    assert tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["version"] == "9.8.7"
    assert json.loads((tmp_path / ".zenodo.json").read_text())["version"] == "9.8.7"
    (tmp_path / "CITATION.cff").write_text((ROOT / "CITATION.cff").read_text())
    assert len(release.version_problems("9.8.7", tmp_path)) == 2  # another version, another date
    with pytest.raises(SystemExit, match="expected a version"):
        release.state_version("next", date(2031, 2, 3), tmp_path)


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


def test_one_setting_states_the_repository_everywhere(release, tmp_path):
    for name in release.ADDRESSED:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for address in ("https://example.org/people/linkwise", "https://example.com/others/linkwise"):
        assert release.state_repository(address, tmp_path) == list(release.ADDRESSED)
        texts = {name: (tmp_path / name).read_text(encoding="utf-8") for name in release.ADDRESSED}
        assert all(address in text for text in texts.values())
        project = tomllib.loads(texts["pyproject.toml"])
        assert project["tool"]["linkwise"]["repository"] == project["project"]["urls"]["Source"] == address
        assert project["project"]["scripts"] == PROJECT["scripts"]
        assert json.loads(texts[".zenodo.json"])["related_identifiers"][0]["identifier"] == address
    assert "example.org/people" not in "".join(texts.values())
    with pytest.raises(SystemExit, match="expected an address"):
        release.state_repository("github.com/linkwise", tmp_path)


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_workflows_are_valid_and_every_command_in_them_exists():
    targets = set(
        re.findall(r"^([a-z\-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    seen = set()
    assert len(WORKFLOWS) >= 2
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"name", True, "permissions", "jobs"} <= set(workflow)  # YAML 1.1 reads "on" as true
        for job in workflow["jobs"].values():
            assert job["runs-on"]
            assert set([job["needs"]] if "needs" in job else []) <= set(workflow["jobs"])
            for step in job["steps"]:
                assert ("uses" in step) != ("run" in step)
                assert re.fullmatch(r"[\w\-]+/[\w\-]+@[\w./]+", step.get("uses", "a/b@c"))
                for line in step.get("run", "").splitlines():
                    command, *words = line.split()
                    seen.add(command)
                    if command == "make":
                        assert words[0] in targets
                    elif command == "python":
                        assert words[:2] in (["-m", "pip"], ["-m", "pytest"])
                        assert all((ROOT / each).exists() for each in words if each.startswith("tests/"))
                    elif command != "rm":
                        assert (ROOT / command).stat().st_mode & 0o111
    assert {"make", "python", ".ci/run"} <= seen


def test_the_paper_has_what_a_journal_asks_for():
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(yaml.safe_load(head))
    assert 250 < len(body.split()) < 1100
    cited = set(re.findall(r"@([a-z]+\d*)", body))
    listed = set(
        re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert cited == listed
    for figure in re.findall(r"\]\(([^)]+\.svg)\)", body):
        assert (ROOT / "paper" / figure).exists()


@pytest.mark.parametrize("name", ["recipe.yaml", "meta.yaml"])
def test_the_conda_recipe_agrees_with_the_project(name):
    recipe = (ROOT / "recipe" / name).read_text(encoding="utf-8")
    assert re.search(rf'version(:| =) "{re.escape(PROJECT["version"])}"', recipe)
    assert f"python {PROJECT['requires-python']}" in recipe
    wanted = [each.partition(";")[0] for each in PROJECT["dependencies"] if "python_version >=" not in each]
    for each in wanted:
        package, _, least = each.partition(">=")
        assert f"    - {package} >={least}\n" in recipe
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    assert run.count("\n") == len(wanted)
    assert f"linkwise = {PROJECT['scripts']['linkwise']}" in recipe
    assert PROJECT["description"] in recipe


def test_rattler_build_renders_the_recipe():
    rattler = pytest.importorskip("rattler_build", reason="py-rattler-build is not installed")
    text = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    (variant,) = rattler.Stage0Recipe.from_yaml(text).render()
    assert variant.recipe.package.version == PROJECT["version"]
    assert len(variant.recipe.requirements.run) == 1 + len(
        [each for each in PROJECT["dependencies"] if "python_version >=" not in each]
    )


def test_the_recipe_of_conda_build_is_read_as_conda_reads_it():
    """A template of Jinja that becomes YAML, with a source at an address and a checksum."""
    import jinja2

    text = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(
        jinja2.Template(text).render(PYTHON="python", environ={"LINKWISE_SHA256": "ab" * 32})
    )
    assert recipe["source"]["url"].endswith(f"/linkwise-{PROJECT['version']}.tar.gz")
    assert recipe["source"]["sha256"] == "ab" * 32
    assert recipe["build"]["noarch"] == "python"
