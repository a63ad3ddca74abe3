"""Make the files of a release, check and sign them, and stop before anything is uploaded.

    python benchmarks/release.py [--out dist] [--key KEY] [--rehearse]
    python benchmarks/release.py --set-version 0.3.1 | --repository https://…

Steps, each of which ends the run when it fails: the changelog has a dated section for the version of pyproject.toml and
nothing is left under [Unreleased]; all files state the same version; no file of the checkout is changed; the source
archive and the wheel are built; the wheel is pure, has its files, and its metadata agree with pyproject.toml; ``twine
check`` accepts both; they are signed if a key of GnuPG is given; SHA256SUMS is written. ``--rehearse`` only reports
what the first three steps find. ``--set-version`` writes a version into all files that state it, with today's date, and
gives what stood under [Unreleased] its heading; ``--repository`` writes the address of the project.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from datetime import date
from pathlib import Path

from distribution import checked, run

ROOT = Path(__file__).parents[1]
BUILD = "import sys, hatchling.build as b; b.build_sdist(sys.argv[1]); b.build_wheel(sys.argv[1])"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the files; must be empty")
    parser.add_argument("--key", help="sign with this key of GnuPG")
    parser.add_argument("--rehearse", action="store_true", help="report only: changelog, changed files")
    parser.add_argument(
        "--repository", help="address of the repository: write it into all files that state it, and stop"
    )
    parser.add_argument("--set-version", help="write this version into all files that state it, and stop")
    given = parser.parse_args()
    if given.set_version:
        changed = state_version(given.set_version, date.today())
        print(f"{given.set_version} is in {', '.join(changed)}: commit that, then make the release")
        return 0
    if given.repository:
        changed = state_repository(given.repository)
        print(f"{given.repository} is in {', '.join(changed)}: commit that, then make the release")
        return 0
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = [
        *changelog_problems(changelog, project["version"]),
        *version_problems(project["version"]),
        *repository_problems(),
        *changed_files(),
    ]
    for line in found:
        print(f"not ready: {line}")
    if found and not given.rehearse:
        return 1
    given.out.mkdir(parents=True, exist_ok=True)
    if any(given.out.iterdir()):
        raise SystemExit(f"{given.out}: not empty; remove what is there")
    files = built(given.out)
    (wheel,) = (path for path in files if path.suffix == ".whl")
    found = metadata_problems(checked(wheel), project)
    if found:
        raise SystemExit(f"{wheel.name}: " + "; ".join(found))
    for path in files:
        print(f"{path.name} in an empty environment: {installed(path)}")
    if given.key:
        for path in files:
            run("gpg", "--batch", "--yes", "--local-user", given.key, "--armor", "--detach-sign", path)
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (given.out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(sums, end="")
    print(f"{'signed' if given.key else 'not signed'}; nothing was uploaded: twine upload {given.out}/*")
    return 0


def changelog_problems(text: str, version: str) -> list[str]:
    """What a changelog lacks for the release of a version."""
    sections = dict(re.findall(r"^## \[([^]]+)\](.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL))
    problems: list[str] = []
    if re.search(r"^\s*- ", sections.get("Unreleased", ""), flags=re.MULTILINE):
        problems.append("CHANGELOG.md: there are entries under [Unreleased]")
    if version not in sections:
        problems.append(f"CHANGELOG.md: no section [{version}]")
    elif not re.match(r" - \d{4}-\d{2}-\d{2}\n", sections[version]):
        problems.append(
            f"CHANGELOG.md: the section [{version}] has no date, such as ## [{version}] - 2030-01-31"
        )
    elif not re.search(r"^\s*- ", sections[version].partition("\n")[2], flags=re.MULTILINE):
        problems.append(f"CHANGELOG.md: the section [{version}] is empty")
    return problems


# where the version stands: a file, and the text around the number
STATED = {
    "pyproject.toml": ('\nversion = "', '"\n'),
    "src/linkwise/version.py": ('__version__ = "', '"\n'),
    "CITATION.cff": ("\nversion: ", "\n"),
    "recipe/recipe.yaml": ('  version: "', '"\n'),
    "recipe/meta.yaml": ('set version = "', '"'),
    ".zenodo.json": ('"version": "', '"'),
}
DATED = {"CITATION.cff": ("date-released: ", "%Y-%m-%d"), "paper/paper.md": ("\ndate: ", "%-d %B %Y")}


def version_problems(version: str, root: Path = ROOT) -> list[str]:
    """Files that state another version, or another date than the changelog."""
    texts = {name: (root / name).read_text(encoding="utf-8") for name in (*STATED, *DATED)}
    problems = [
        f"{name}: expected {(before + version).strip()!r}"
        for name, (before, after) in STATED.items()
        if before + version + after not in texts[name]
    ]
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", changelog, flags=re.MULTILINE)
    if dated:
        problems += [
            f"{name}: it does not state the date of the changelog, {dated[1]}"
            for name, (before, form) in DATED.items()
            if before + date.fromisoformat(dated[1]).strftime(form) not in texts[name]
        ]
    return problems


def state_version(version: str, day: date, root: Path = ROOT) -> list[str]:
    """Write a version and its date into all files that state them, and give the entries of [Unreleased] their heading.

    Args:
        version: such as 0.3.1.
        day: of the release.
        root: of the checkout.

    Returns:
        Names of the files.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        raise SystemExit(f"{version}: expected a version such as 0.3.1 or 0.4.0rc1")
    for name, (before, after) in STATED.items():
        text = (root / name).read_text(encoding="utf-8")
        text = re.sub(
            re.escape(before) + r"[\w.]+" + re.escape(after), before + version + after, text, count=1
        )
        (root / name).write_text(text, encoding="utf-8")
    for name, (before, form) in DATED.items():
        text = (root / name).read_text(encoding="utf-8")
        text = re.sub(re.escape(before) + ".+", before + day.strftime(form), text, count=1)
        (root / name).write_text(text, encoding="utf-8")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    if f"## [{version}]" not in text:
        text = text.replace(
            "## [Unreleased]\n", f"## [Unreleased]\n\n## [{version}] - {day.isoformat()}\n", 1
        )
        changelog.write_text(text, encoding="utf-8")
    return [*STATED, *(name for name in DATED if name not in STATED), "CHANGELOG.md"]


def repository() -> str:
    """The address in ``[tool.linkwise]`` of pyproject.toml; empty as long as there is none."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["linkwise"]
    return settings["repository"]


def repository_problems() -> list[str]:
    """Whether the files of a release state where the project is."""
    if not repository():
        return [
            "pyproject.toml: [tool.linkwise] has no repository; make release REPOSITORY=https://… sets it"
        ]
    return [
        f"{name}: it does not state {repository()}"
        for name in ADDRESSED
        if repository() not in (ROOT / name).read_text(encoding="utf-8")
    ]


ADDRESSED = ("pyproject.toml", "CITATION.cff", "recipe/meta.yaml", "mkdocs.yml", ".zenodo.json")
_URLS = """[project.urls]
Homepage = "{0}"
Source = "{0}"
Issues = "{0}/issues"
Changelog = "{0}/blob/main/CHANGELOG.md"

"""


def state_repository(address: str, root: Path = ROOT) -> list[str]:
    """Write the address of the repository into all files that state it; a second call replaces the first address.

    Args:
        address: such as https://example.org/linkwise.
        root: of the checkout.

    Returns:
        Names of the files.
    """
    if not re.fullmatch(r"https://[\w.\-]+(/[\w.\-]+)+", address):
        raise SystemExit(f"{address}: expected an address such as https://example.org/people/linkwise")
    old = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["linkwise"][
        "repository"
    ]
    for name in ADDRESSED:
        path = root / name
        text = path.read_text(encoding="utf-8")
        if old:
            text = text.replace(old, address)
        elif name == "pyproject.toml":
            text = text.replace('repository = ""', f'repository = "{address}"')
            text = text.replace("[project.scripts]\n", _URLS.format(address) + "[project.scripts]\n")
        elif name == "CITATION.cff":
            text += f"repository-code: {address}\n"
        elif name == "recipe/meta.yaml":
            text = text.replace("https://example.org/linkwise", address)
        elif name == "mkdocs.yml":
            text = text.replace("docs_dir: docs\n", f"repo_url: {address}\ndocs_dir: docs\n")
        else:
            known = json.loads(text)
            known["related_identifiers"] = [
                {"identifier": address, "relation": "isSupplementTo", "scheme": "url"}
            ]
            text = json.dumps(known, indent=2, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")
    return list(ADDRESSED)


def changed_files() -> list[str]:
    ran = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True)
    if ran.returncode:
        return ["this is no checkout of git"]
    lines = ran.stdout.splitlines()
    return [f"{len(lines)} files differ from the last commit"] if lines else []


def built(out: Path) -> list[Path]:
    """The source archive and the wheel, built and checked by tools in an environment of their own."""
    with tempfile.TemporaryDirectory() as name:
        venv.create(name, with_pip=True)
        python = Path(name) / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "hatchling", "twine")
        ran = subprocess.run(
            [python, "-c", BUILD, out.resolve()], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            raise SystemExit(f"the build failed: {ran.stderr.strip()}")
        files = sorted(out.iterdir())
        print(run(python, "-m", "twine", "check", "--strict", *(path.resolve() for path in files)), end="")
    return files


def installed(file: Path) -> str:
    """Install a file of the release into an empty environment, run a tour there, and give the version it states."""
    with tempfile.TemporaryDirectory() as name:
        venv.create(name, with_pip=True)
        python = Path(name) / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", file.resolve())
        command = python.with_name("linkwise")
        page = Path(name) / "tour.html"
        run(command, "tour", "two_link", "--out", page, "--no-open")
        assert page.stat().st_size > 10_000
        return run(command, "--version").strip()


def metadata_problems(wheel: Path, project: dict) -> list[str]:
    """What the metadata of a wheel say differently from the project, or wrongly about the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (head,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        (kind,) = (name for name in names if name.endswith(".dist-info/WHEEL"))
        says, about = (email.message_from_bytes(archive.read(name)) for name in (head, kind))
    problems: list[str] = []
    if about["Root-Is-Purelib"] != "true" or about.get_all("Tag") != ["py3-none-any"]:
        problems.append("the wheel is not pure")
    native = [name for name in names if name.endswith((".so", ".pyd", ".dll", ".dylib"))]
    if native:
        problems.append(f"it contains {native[0]}")
    if says["Version"] != project["version"]:
        problems.append(f"its version is {says['Version']}, that of pyproject.toml {project['version']}")
    if says["Requires-Python"] != project["requires-python"]:
        problems.append(f"it states Python {says['Requires-Python']}")
    if set(says.get_all("Classifier", [])) != set(project["classifiers"]):
        problems.append("its classifiers differ from those of pyproject.toml")
    plain = [line for line in says.get_all("Requires-Dist", []) if "extra ==" not in line]
    if len(plain) != len(project["dependencies"]):
        problems.append(f"it requires {len(plain)} packages, pyproject.toml {len(project['dependencies'])}")
    return problems


if __name__ == "__main__":
    sys.exit(main())
