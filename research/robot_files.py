"""Robot files of the world: which have impossible inertias, zero masses, wrong units, placeholder limits; and where.

    python -m research.robot_files NAME=FOLDER... [--out docs/robot_files.md] [--store STORE]

Every URDF and MJCF file below the folders is a point of a study (``linkwise.study``): what is found in it is counted
there, so that a run that was stopped goes on. The page lists each finding with the line of its element in the file.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.tour.odd import LIGHT, doubtful_bodies, same_limits

KINDS = {
    "unreadable": "refused, with a reason",
    "impossible": "inertias that no body can have",
    "massless": "moving links without mass or inertia that matter",
    "units": "numbers that look like another unit",
    "limits": "limits that are missing, crossed or look like placeholders",
}
SHOWN = 3  # findings of one kind that are listed of a file


@dataclass(frozen=True)
class Finding:
    """Something odd in a file: of which kind, about which element, in words."""

    kind: str
    element: str
    words: str


def robot_files(folders: Sequence[Path]) -> list[Path]:
    """URDF and MJCF files that describe a robot, by their root element."""
    found = []
    for folder in folders:
        for path in sorted([*folder.rglob("*.urdf"), *folder.rglob("*.xml")]):
            head = path.read_text(encoding="utf-8", errors="replace")[:20_000]
            if re.search(r"<robot\b", head) or (re.search(r"<mujoco\b", head) and "<body" in head):
                found.append(path)
    return found


def findings(path: Path) -> list[Finding]:
    """What is odd about one file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            robot = lw.load(path)
        except lw.LinkwiseError as error:
            if "mesh file" in str(error) and "is missing" in str(error):
                return []  # collections without their meshes: nothing is wrong with the file itself
            words = str(error).replace(f"{path}: ", "").replace(f"{path.parent}/", "")
            return [Finding("unreadable", "", words)]
        return [*_inertias(robot), *_limits(robot)]


def _inertias(robot: lw.Robot) -> Iterator[Finding]:
    moved = {joint.child for joint in robot.moving_joints}
    least = LIGHT * sum(link.inertia.mass for link in robot.links)
    for link in robot.links:
        body = link.inertia
        for words in body.violations():
            yield Finding("impossible", link.name, words)
        if link.name in moved and body.mass == 0 and not any(j.parent == link.name for j in robot.joints):
            yield Finding("massless", link.name, "a moving link at the end of a chain without mass")
        if link.name != robot.base and body.mass > least and not body.matrix_about_com.any():
            yield Finding("massless", link.name, f"{body.mass:.3g} kg without inertia, a point mass")
    for link, kind, size, reach in doubtful_bodies(robot):
        words = {
            "large": f"its inertia is that of a body of {size:.3g} m, the robot reaches {reach:.3g} m",
            "small": f"its inertia is that of a body of {size:.1g} m with {link.inertia.mass:.3g} kg",
            "far": f"its centre of mass is {size:.3g} m from its frame",
        }[kind]
        yield Finding("units", link.name, words)


def _limits(robot: lw.Robot) -> Iterator[Finding]:
    joints = [joint for joint in robot.coordinate_joints if not joint.free]
    for joint in joints:
        if joint.limits.lower > joint.limits.upper:
            yield Finding("limits", joint.name, "its lower limit is above the upper one")
        elif joint.limits.lower == joint.limits.upper:
            yield Finding(
                "limits", joint.name, f"both limits are {joint.limits.lower:g}: it cannot move within them"
            )
    first = next((joint.name for joint in joints if joint.revolute), "")
    for what, count, limit in same_limits(robot):
        yield Finding("limits", first, f"all {count} turning joints have the {what} limit {limit}")


def line_of(path: Path, element: str) -> int | None:
    """The line on which an element of this name begins; None if there is none."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.search(
        rf"<(?:link|joint|body|freejoint)\b[^>]*\bname\s*=\s*[\"']{re.escape(element)}[\"']", text
    )
    return None if found is None else text.count("\n", 0, found.start()) + 1


def counts(file: np.ndarray) -> np.ndarray:
    """The step of the study: numbers of findings by kind at every file, by its index in ``FILES``."""
    rows = []
    for index in np.asarray(file, dtype=int).reshape(-1):
        kinds = [each.kind for each in findings(FILES[index])]
        rows.append([float(kinds.count(kind)) for kind in KINDS])
    return np.array(rows)


FILES: list[Path] = []


def page(files: Sequence[Path], found: np.ndarray, roots: dict[str, Path]) -> str:
    """The page, in Markdown."""
    total = (found > 0).sum(axis=0)
    lines = [
        "# Robot files of the world",
        "",
        "Which robot files have numbers that no robot can have, and where: a study over files of public collections",
        "(`python -m research.robot_files NAME=FOLDER...`). *Moments* are principal moments of inertia of which one is",
        "negative or larger than the sum of the others. `linkwise tour FILE` says the same of a file of yours.",
        "",
        f"{len(files)} files; {int((found.sum(axis=1) == 0).sum())} without a finding.",
        "",
        "| what | files | findings |",
        "|---|--:|--:|",
        *(
            f"| {words} | {int(total[k])} | {int(found[:, k].sum())} |"
            for k, words in enumerate(KINDS.values())
        ),
        "",
    ]
    for name, root in roots.items():
        own = [k for k, path in enumerate(files) if path.is_relative_to(root) and found[k].any()]
        lines += [f"## {name}", ""]
        clean = sum(1 for path in files if path.is_relative_to(root)) - len(own)
        lines += [f"{len(own)} files with findings, {clean} without.", ""]
        lines += ["| file | line, element | what |", "|---|---|---|"] if own else []
        shown: dict[Path, list[tuple[str, str]]] = {}
        for k in own:
            shown[files[k]] = rows = list(_rows(files[k]))
            lines += _lines(files[k], root, rows, shown)
        lines += [""] if own else []
    return "\n".join(lines)


def _rows(path: Path) -> Iterator[tuple[str, str]]:
    """What is odd, with the first elements that have it; findings of the same elements are one row."""
    elements: dict[str, list[str]] = {}
    for each in findings(path):
        elements.setdefault(_short(each.words), []).append(each.element)
    rows: dict[str, list[str]] = {}
    for words, names in elements.items():
        places = [f"{line_of(path, name) or ''} {name}".strip() for name in names[:SHOWN]]
        more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
        rows.setdefault(", ".join(places + more), []).append(words)
    for places, words in rows.items():
        yield places, "; ".join(words).replace("; " + words[0].partition(" the ")[0] + " the", " and the")


def _lines(
    path: Path, root: Path, rows: list[tuple[str, str]], shown: dict[Path, list[tuple[str, str]]]
) -> list[str]:
    """Lines of the table: what an earlier file of the folder has on the same lines refers to that file."""
    file, lines = str(path.relative_to(root)), []
    for other, known in shown.items():
        shared = [row for row in rows if row in known]
        if other != path and other.parent == path.parent and len(shared) > 1:
            lines.append(f"| {file} | | as {other.name}: {len(shared)} rows |")
            rows, file = [row for row in rows if row not in known], ""
    for places, words in rows:
        lines.append(f"| {file} | {places} | {words} |")
        file = ""
    return lines


def _short(words: str) -> str:
    """Without what the head of the page says of all of them; fits a cell."""
    words = " ".join(words.split())
    words = re.sub(r"^principal (moments .*) violate the triangle inequality$", r"\1", words)
    words = re.sub(
        r"^inertia about .* is not positive semidefinite \(principal (moments .*)\)$", r"\1", words
    )
    return words[:160].replace("|", "\\|")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", metavar="NAME=FOLDER", help="folders with robot files")
    parser.add_argument("--out", type=Path, help="the page; by default it is printed")
    parser.add_argument("--store", type=Path, help="the store of the study, to go on with it")
    given = parser.parse_args()
    named = (text.rpartition("=")[::2] for text in given.folders)
    roots = {name or Path(folder).name: Path(folder).resolve() for name, folder in named}
    FILES[:] = robot_files(list(roots.values()))
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or Path(folder) / "files.study"
        study = lw.study(
            name="robot files",
            robot="two_link",
            vary={"file": {"grid": [float(k) for k in range(len(FILES))]}},
            compute={"found": counts},
            keep={"found": "raw"},
        )
        results = study.run(store, resume=store.exists(), threads=1, progress=False)
        found = np.asarray(results.dataset()["found"]).reshape(len(FILES), len(KINDS))
    text = page(FILES, found, roots)
    if given.out is None:
        print(text)
    else:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
