"""What commands print, write and refuse, for small robots, beside what is recorded."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.cli import main
from recorded import Scenarios, packed
from recorded_robots import coupled, touching, with_laws
from rich_files import FILES

scenarios = Scenarios("commands")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
VOLATILE = re.compile(r"\d+\.\d+(?:\.\d+)+\S*|\b[0-9a-f]{12,}\b|\d[\d.]* (?:ms|µs|s)\b")
"""Versions, digests and times."""


@contextlib.contextmanager
def folder() -> Iterator[None]:
    """With robots of several formats, a motion and a study."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, text in FILES.items():
            Path(name).write_text(text, encoding="utf-8")
        for name, make in (("laws", with_laws), ("coupled", coupled), ("touching", touching)):
            make().save(f"{name}.toml")
        t = np.linspace(0.0, 0.4, 9)[:, None]
        rows = np.hstack([t, 0.3 * np.sin(5.0 * t), 0.2 * np.cos(4.0 * t)])
        np.savetxt("motion.csv", rows, delimiter=",", header="t,q1,q2", comments="")
        yield


def content(text: str) -> dict[str, Any]:
    """The words of a text, and its numbers."""
    text = VOLATILE.sub("~", text.replace(str(Path.cwd()), "FOLDER"))
    numbers = [float(each) for each in NUMBER.findall(text)]
    words = re.sub(r"\s+", " ", NUMBER.sub("#", text)).replace("-", "")
    return packed({"numbers": np.array(numbers)}) | {"words": words, "lines": float(text.count("\n"))}


def ran(*arguments: str, files: tuple[str, ...] = ()) -> dict[str, Any]:
    """Exit status, output, messages and what was written."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(arguments))
    found = {"status": float(status), "out": content(out.getvalue()), "err": content(err.getvalue())}
    for name in files:
        text = Path(name).read_text("utf-8")
        if name.endswith("html"):
            text = " ".join(re.findall(r"<svg.*?</svg>", text, re.S))
        found[name] = content(text)
    return found


def _group(name: str, calls: list[tuple[str, ...]]) -> None:
    def scenario() -> dict[str, Any]:
        with folder():
            return {" ".join(call): ran(*call) for call in calls}

    scenario.__name__ = name
    scenarios(scenario)


TWO = ("two_link",)
QUINTIC = ("two_link", "--trajectory", "quintic", "--to", "40,-20", "--degrees", "--points", "5")
_group(
    "robots_and_what_is_in_them",
    [
        ("robots",),
        ("robots", "--json"),
        ("info", "two_link"),
        ("info", "laws.toml", "--json"),
        ("info", "arm.xml"),
        ("info", "odd.urdf", "--lock", "push=0.2", "--gravity", "0,1,-9", "--mimic", "independent"),
        ("info", "free.xml", "--json"),
        ("info", "table.toml", "--base", "floating"),
        ("info", "touching.toml"),
        ("operations", "two_link"),
        ("operations", "table.toml", "--function", "inverse_dynamics", "--stages"),
        ("operations", "two_link", "--no-friction", "--json"),
    ],
)
_group(
    "torques_and_accelerations",
    [
        ("inverse", *QUINTIC),
        ("inverse", *QUINTIC, "--algorithm", "gibbs_appell", "--no-friction", "--states"),
        ("inverse", *QUINTIC, "--json", "--out", "torques.csv"),
        ("inverse", "two_link", "--trajectory", "motion.csv"),
        ("inverse", *QUINTIC, "--time-optimal", "--acceleration", "3", "--out", "fast.csv"),
        ("inverse", "coupled.toml", "--trajectory", "quintic", "--to", "0.1,0.2,0.3", "--points", "3"),
    ],
)
_group(
    "simulations",
    [
        ("simulate", "two_link", "--to", "0.3,-0.2", "--move", "0.1", "--duration", "0.1", "--every", "20"),
        (
            *("simulate", "two_link", "--to", "0.3,-0.2", "--move", "0.1", "--duration", "0.1", "--every", "25"),
            "--json",
            *("--controller", "tracking", "--frequency", "7", "--damping", "0.8", "--payload", "0.4", "--delay", "1"),
            *("--noise", "0.001", "--resolution", "0.001", "--model-error", "0.1", "--out", "run.csv"),
        ),
        (
            *("simulate", "two_link", "--kp", "50", "--kd", "9", "--controller", "gravity_pd"),
            *("--duration", "0.05", "--every", "25"),
        ),
    ],
)  # fmt: skip
_group(
    "files_and_code",
    [
        ("convert", "odd.urdf", "odd.toml"),
        ("convert", "laws.toml", "laws.urdf", "--json"),
        ("convert", "arm.xml", "arm.urdf"),
        ("generate", "two_link", "inverse_dynamics", "--target", "python"),
        ("generate", "two_link", "mass_matrix", "--name", "inertia", "--no-fma"),
        ("generate", "two_link", "gravity_torques", "--target", "wasm", "--out", "g.js"),
        (
            "generate",
            "two_link",
            "computed_torque",
            "--frequency",
            "5,6",
            "--period",
            "0.01",
            "--fixed-gains",
        ),
        ("generate", "two_link", "safe_stop", "--stop", "ramp", "--stop-time", "0.3"),
    ],
)
_group(
    "bounds",
    [
        ("certify", "two_link", "gravity_torques", "--velocity", "2"),
        ("certify", "two_link", "--constants", "--json"),
    ],
)
_group(
    "refusals",
    [
        ("inf", "two_link"),
        ("info", "two_lnk"),
        ("info",),
        ("info", "nothing.urdf"),
        ("info", "two_link", "--lock", "elbow=1"),
        ("info", "two_link", "--gravity", "1,2"),
        ("info", "two_link", "--jsn"),
        ("inverse", "two_link", "--trajectory", "nothing.csv"),
        ("inverse", "two_link", "--trajectory", "quintic"),
        ("inverse", "two_link", "--trajectory", "quintic", "--to", "1,2,3"),
        ("inverse", "two_link", "--trajectory", "quintic", "--to", "a,b"),
        ("inverse", "table.toml", "--trajectory", "motion.csv"),
        ("inverse", *QUINTIC, "--algorithm", "newton"),
        ("inverse", *QUINTIC, "--jerk", "3"),
        ("forward", "two_link", "--torques", "motion.csv"),
        ("simulate", "two_link", "--controller", "tracker"),
        ("simulate", "two_link", "--kp", "3"),
        ("simulate", "two_link", "--step", "-1"),
        ("operations", "two_link", "--function", "inverse"),
        ("generate", "two_link", "inverse"),
        ("generate", "two_link", "pose", "--frame", "hand"),
        ("generate", "two_link", "inverse_dynamics", "--target", "fortran"),
        ("generate", "two_link", "inverse_dynamics", "--period", "0.1"),
        ("convert", "two_link", "two.obj"),
        ("plan", "two_link", "--from", "0,0", "--to", "1,1", "--world", "none.json"),
        ("excite", "two_link", "--duration", "-1"),
        ("identify", "two_link", "nothing.csv"),
        ("study", "run", "nothing.toml"),
        ("calibrate", "two_link", "nothing.csv"),
        ("payload", "two_link", "nothing.csv"),
    ],
)


@scenarios
def pages_and_pipes():
    with folder():
        inverse = ran(
            "inverse",
            *QUINTIC,
            "--states",
            "--out",
            "states.csv",
            "--report",
            "page.html",
            files=("page.html",),
        )
        forward = ran("forward", "two_link", "--torques", "states.csv", "--no-friction")
        same = ran(
            "forward", "two_link", "--torques", "states.csv", "--json", "--out", "a.csv", files=("a.csv",)
        )
        world = '{"obstacles": [{"type": "sphere", "centre": [1.2, 0.1, 0.0], "radius": 0.1}]}'
        Path("world.json").write_text(world, encoding="utf-8")
        plan = ran("plan", "two_link", "--from", "0.9,0.5", "--to", "0.4,0.4", "--rate", "20", "--out", "-")
        return {"inverse": inverse, "forward": forward, "same": same, "plan": plan}


@scenarios
def help_of_commands():
    commands = (
        "",
        "info",
        "inverse",
        "simulate",
        "generate",
        "identify",
        "study",
        "plan",
        "certify",
        "excite",
    )
    return {each: ran(*each.split(), "--help")["out"] for each in commands}


@scenarios
def robots_that_are_loaded_again():
    with folder():
        main(["convert", "odd.urdf", "odd.toml", "--quiet"])
        return {"mass": lw.load("./odd.toml").parameters}


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
