"""What a person starts from: README, example.c with the whole cycle, make help, tools that are missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.control import CONTROLLERS
from linkwise.embedded import ENTRIES, Options, Package
from linkwise.embedded.entries import LAWS
from linkwise.systems import Fmu, Ros2Controller

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wdouble-promotion -Werror"
WHOLE = ("trajectory", "safe_stop", "forward_dynamics")

pytestmark = pytest.mark.skipif(
    not (shutil.which("make") and shutil.which("gcc")), reason="no make or no gcc"
)


@pytest.fixture(autouse=True)
def without_measured_stack(monkeypatch):
    """The stack in headers is not what these tests are about, and gcc takes seconds to measure it."""
    monkeypatch.setattr("linkwise.embedded.stack.measured", lambda sources, **options: {})


def run(*command, cwd, code=0, **more):
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, timeout=240, **more
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_whole_cycle_of_an_example_runs_and_stops(tmp_path):
    """A move ends at its target; where sensors fail on the way, the arm rests. Another law for each robot."""
    laws = [name for name in CONTROLLERS if name not in ("feed_forward", "passive")]
    laws += ["guarded_controller", "switched_controller"]
    for k, name in enumerate(lw.robots()[1::2]):
        folder, kind = tmp_path / name, ("float64", "float32")[k % 2]
        made = Package(
            lw.load(name), [laws[(2 * k) % len(laws)], *WHOLE], Options(kind, frequency=20.0), count=1
        )
        made.write(folder)
        (header,) = folder.glob("include/*.h")
        prefix = header.stem
        assert f"# {prefix}\n" in (folder / "README.md").read_text()
        command = f"gcc -std=c99 -O0 {WARNINGS} -ffp-contract=off -Iinclude -Isrc example.c"
        sources = [str(each) for each in sorted((folder / "src").glob("*.c"))]
        run(*command.split(), *sources, "-lm", "-o", "example", cwd=folder)
        said = run("./example", cwd=folder)
        assert "running" in said
        assert float(said.split(": ")[1].split(" rad")[0]) < 0.05, (name, laws[(2 * k) % len(laws)], said)
        stopped = run("./example", "fault", cwd=folder)
        assert "stopped" in stopped
        assert stopped.split(", ")[-1].startswith("0 rad/s"), stopped


def test_every_controller_is_a_package_an_fmu_and_a_ros2_controller(tmp_path):
    """Rows of CONTROLLERS need nothing else: their settings are a structure, tunable parameters, parameters of ROS."""
    robot = lw.load("two_link")
    compile_only = f"gcc -std=c99 -fsyntax-only {WARNINGS} -Iinclude -Isrc".split()
    for name in (*CONTROLLERS, *LAWS):
        for fixed in (False, True):
            options = Options(fixed_gains=fixed)
            package = Package(robot, [name], options, count=1)
            (function,) = package.functions
            settings = function.entry.settings
            assert bool(settings) == (not fixed and name != "passive")
            if not fixed:
                package.write(tmp_path / name)
                sources = sorted((tmp_path / name / "src").glob("*.c"))
                run(*compile_only, "example.c", *sources, cwd=tmp_path / name)
            header = package.files[f"include/{package.prefix}.h"]
            assert (f"{function.name}_defaults" in header) == bool(settings)
            model = Fmu(robot, name, options).model
            tunable = {
                each.name.split(".")[0].split("[")[0]
                for each in model.variables
                if each.causality == "tunable"
            }
            assert tunable == set(settings)
            ros = Ros2Controller(robot, name, options).files
            for setting in settings:
                assert f'auto_declare<std::vector<double>>("{setting}"' in ros["src/controller.cpp"]
                assert f"    {setting}: [" in ros["config/controller.yaml"]
            assert "@" not in ros["src/controller.cpp"]


def test_a_program_without_a_controller_calls_every_function(tmp_path):
    """Also for robots with a floating base, and for all that has a name."""
    paths = [lw.load("two_link")]
    if (DATA / "mjcf/unitree_go2/go2.xml").exists():
        paths.append(lw.load(DATA / "mjcf/unitree_go2/go2.xml"))
    for robot in paths:
        made = Package(robot, ["mass_matrix", "gravity_torques"], count=1)
        made.write(tmp_path / robot.name)
        said = run("make", "-s", "example", "CFLAGS=-O0", cwd=tmp_path / robot.name)
        assert "gravity_torques: tau[0] = " in said
    large = ("mpc", "recursive_least_squares", "extended_kalman_filter", "policy", "whole_body")
    names = [name for name in ENTRIES if name not in large]
    text = Package(lw.load("two_link"), names, count=1).files["example.c"]
    assert "two_link_guarded_controller_with(&settings" in text


def test_an_example_follows_a_motion_of_a_file(tmp_path):
    robot, motion = lw.load("two_link"), lw.motion.quintic([0.1, 0.2], [0.5, -0.3], 1.5)
    made = Package(robot, ["tracking", *WHOLE], Options(trajectory=motion, period=2e-3), count=1)
    made.write(tmp_path / "pkg")
    said = run("make", "-s", "example", "CFLAGS=-O0", cwd=tmp_path / "pkg")
    assert float(said.split(": ")[1].split(" rad")[0]) < 0.01, said


def test_make_lists_its_goals_and_names_missing_tools(tmp_path):
    Package(lw.load("two_link"), ["gravity_torques"], count=1).write(tmp_path / "pkg")
    said = run("make", "-s", "help", cwd=tmp_path / "pkg")
    for goal in ("check", "example", "lint", "install", "check-cortex-m7"):
        assert goal in said
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("make", "sh", "mkdir"):
        (bare / tool).symlink_to(shutil.which(tool))
    for goal, tool in (("lint", "clang-tidy"), ("check-riscv64", "riscv64-linux-gnu-gcc"), ("all", "cc")):
        said = run("make", goal, cwd=tmp_path / "pkg", code=2, env={"PATH": str(bare)})
        lines = [line for line in said.splitlines() if "***" in line]
        assert len(lines) == 1
        assert f"needs {tool}, which is not installed" in lines[0]
    assert sys.platform != "win32"
