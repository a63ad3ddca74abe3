"""Every script of ``benchmarks/`` runs to its end, with small numbers: what is documented must not rot.

A new script needs a line in ``SMOKE`` (or in ``ELSEWHERE``, if a test of its own runs it). Scripts for GPUs run with a
CuPy made of NumPy, ``gpu/pretended_cupy.py``.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))
PARTS = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))  # of scripts with several files
DATA = Path(os.environ.get("LINKWISE_DATA", ROOT.parent / "shared" / "data"))
PRETENDED = str(ROOT / "tests" / "gpu" / "pretended_cupy.py")

SMOKE = {  # script -> command lines
    "aarch64.py": ["--dry-run"],
    "campaign.py": ["--robots two_link --runs 2 --through 1 --duration 4"],
    "closed_loop.py": ["--quick"],
    "compile_times.py": ["two_link:forward_dynamics --text {out}"],
    "controllers.py": [
        "--quick --robots two_link,floating:stanford --controllers computed_torque,cartesian_impedance"
    ],
    "crossovers.py": ["--joints 2,3 --states 8 --repeats 1 --out {out}"],
    "damaged_recordings.py": ["--quick"],
    "wrong_recordings.py": ["--quick"],
    "splits.py": ["--simulated"],
    "distribution.py": ["--wheel-only"],
    "contact_physics.py": ["--quick --only sticks slides spins"],
    "contact_solutions.py": ["--robots box stack --problems 40 --sweeps 20"],
    "contact.py": ["--quick --robots legs gripper"],
    "contact_files.py": ["--only no_such_file"],
    "collision.py": ["--robots stanford --states 100 --rounds 1"],
    "environments.py": ["--envs 64 --steps 3", "--bits 5 --steps 12", "--c 3 --steps 5"],
    "walk_in_mujoco.py": ["--help"],
    "certified_fixed_point.py": ["--robot two_link --function gravity_torques --states 4 --bits 15"],
    "sine_errors.py": ["--every 100003"],
    "evidence.py": [
        "--robots two_link --functions gravity_torques --states 1000 --sub-boxes 3",
        "--robots two_link --constants",
    ],
    "walking_identification.py": ["--seconds 3"],
    "walking.py": ["--seconds 0.2 --simulations linkwise --robots solo12"],
    "excitation.py": [
        "--robots two_link --starts 1 --iterations 5",
        "--robots two_link --starts 1 --iterations 5 --rooms",
    ],
    "first_call.py": [
        "--robot two_link --function pose --function mass_matrix",
        "--robot chain:2 --function pose --batch 4 --json",
    ],
    "planning.py": [
        "validity plans check --robots ur10e --problems 1 --scenes table --states 64 --repeats 1"
    ],
    "first_picture.py": ["--dry-run"],
    "fixed_point.py": ["--robots two_link --functions gravity_torques --states 20"],
    "float32_errors.py": ["--states 5 --robots stanford --json {out}/errors.json"],
    "frameworks.py": ["--robot two_link --quick --json {out}/times.json"],
    "generated_code.py": ["special --quick", "compilers --quick", "loops --quick"],
    "gpu.py": [
        "--quick --robot two_link --tune --json {out}/gpu.json",
        "--quick --robot two_link --small 2 --peers",
    ],
    "mpc_realtime.py": ["--robot two_link --horizon 5 --seconds 0.1 --json"],
    "gpu_control.py": ["--states 32 --problems 2 --plans 2 --calls 1"],
    "gpu_validity.py": ["--robot two_link --states 64 --calls 1"],
    "gpu_contact.py": ["--states 600 --calls 1 --robots legs --mjx 4"],
    "gpu_mppi.py": ["--robot two_link --samples 64 --horizon 4 --calls 1"],
    "gpu_warps.py": ["--quick --robot two_link --json {out}/warps.json"],
    "gpu_long_chains.py": ["--links 8 --batches 1 --json {out}/long.json"],
    "identification.py": ["--only ur10e --no-speed"],
    "intervals.py": ["--only simulated --runs 2"],
    "online_moves.py": ["--targets 20 --joints 1 2"],
    "inverse_kinematics.py": [
        "two_link --poses 2",
        "puma560 --poses 2 --peer",
        "puma560 --poses 2 --peers 2",
    ],
    "kept_models.py": ["--only campaigns --arms 1 --laws 1"],
    "mutation_by_name.py": ["--sample 1 --parts solve --files 1 --seconds 0.1 --minutes 1"],
    "optimal.py": [
        "--robot two_link --horizon 4 --problems 8 --iterations 1 --rounds 1",
        "--robot two_link --horizon 4 --iterations 1 --gpu --text",
        "--large double_pendulum --horizon 2 --rounds 1",
    ],
    "kernel_speed.py": ["--joints 2 --states 64"],
    "large_robots.py": ["--quick"],
    "long_chains.py": ["--links 3 --repeats 1 --longest-straight 3"],
    "mjcf_attributes.py": ["--only connect --every 3 --pairs 4"],
    "mjcf_fuzz.py": ["--files 20 --reasons", "--files 1 --seed 1 --show"],
    "moving_bases.py": ["--quick", "--quick --gpu --json {out}/gpu.json"],
    "optimal_peers.py": ["--problems swing_up trot --short --no-times --json {out}/optimal.json"],
    "optimal_starts.py": [
        "--problems acrobot trot --starts 2 --horizon 8 --iterations 3 --json {out}/starts.json"
    ],
    "payload.py": ["--quick"],
    "held_torques.py": ["--quick --robots ur10e"],
    "guard_limits.py": ["--robots two_link --runs 3 --seconds 0.4"],
    "predictive_robots.py": ["--robots two_link --runs 2"],
    "predictive_steps.py": ["--robots two_link --starts 1"],
    "result_memory.py": ["--function mass_matrix --states 3000 --rounds 2"],
    "run_time_gains.py": ["--robots two_link --repeats 2 --calls 100 --allowed 1000"],
    "processors.py": [
        "--robots two_link --dtypes float32 --functions gravity_torques --processors cortex-m7 --states 3 "
        "--constant-states 3 --policy 3,4,2 --write {out}/processors.md"
    ],
    "realtime.py": ["--seconds 0.3"],
    "sizes.py": [""],
    "soak.py": ["--calls 4000 --threads 4"],
    "simulation.py": ["--robots 8 --steps 5 --repeats 1"],
    "limits.py": ["--robot two_link --function inverse_dynamics --states 64 --rounds 1"],
    "motion_limits.py": ["--quick --classes clamped,line --json {out}/limits.json"],
    "time_optimal.py": ["--robots two_link --paths 1 --cells 20 --many 4 --repeats 1"],
    "task_space.py": ["--quick --robots two_link --json {out}/task_space.json"],
    "threads.py": ["--robot two_link --states 100,5000 --threads 1,2 --rounds 1"],
    "versions.py": ["--quick"],
    "study.py": [
        "throughput --points 1e5 --rounds 1",
        "raw --points 1e5 --rounds 1 --folder {out}",
        "kill --trials 1 --quick",
        "flips --trials 5",
        "power --quick",
    ],
    "whole_body.py": ["--quick"],
    "learning_curve.py": ["--out {out}/learning.svg"],
    "whole_body_processors.py": ["--robot two_link --states 1"],
    "whole_body_quadruped.py": [""],
}
ELSEWHERE = {
    "habits.py": "tests/test_habits.py",
    "mutation.py": "tests/test_mutation.py",
    "release.py": "tests/test_distribution.py",
}
PACKAGES = {  # what a script needs beyond the package itself
    "crossovers.py": ["matplotlib"],
    "frameworks.py": ["jax", "torch"],
    "mjcf_attributes.py": ["mujoco"],
    "mjcf_fuzz.py": ["mujoco"],
    "moving_bases.py": ["pinocchio"],
    "simulation.py": ["mujoco"],
}
MEASURED = ("identification.py", "payload.py")  # these read recordings that are not part of the repository
OFFLINE = re.compile(
    r"No matching distribution|Could not find a version|Failed to establish|ConnectionError|hatchling"
)


def test_every_script_is_run_by_a_test():
    assert sorted([*SMOKE, *ELSEWHERE]) == SCRIPTS
    for test in ELSEWHERE.values():
        assert (ROOT / test).exists()


@pytest.mark.parametrize("script", [*SCRIPTS, *PARTS])
def test_a_script_hides_no_package(script):
    """Python looks into the folder of a script first: a script called packaging.py breaks matplotlib."""
    found = find_spec(Path(script).stem)
    if found is None or found.loader is None:  # without a loader: a folder of tests of that name
        return
    # another test may have imported the script itself
    assert Path(found.origin or "").is_relative_to(FOLDER), found


@pytest.mark.parametrize(
    ("script", "line"), [(script, line) for script, lines in SMOKE.items() for line in lines]
)
def test_smoke(script, line, tmp_path):
    for package in PACKAGES.get(script, ()):
        pytest.importorskip(package)
    if script in MEASURED and not (DATA / "ur10e").is_dir():
        pytest.skip(f"no recordings under {DATA}")
    arguments = line.format(out=tmp_path).split()
    if script in MEASURED:
        arguments += ["--data", str(DATA)]
    runner = [PRETENDED] if script.startswith("gpu") or "--gpu" in arguments else []
    ran = subprocess.run(
        [sys.executable, *runner, str(FOLDER / script), *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    if script == "distribution.py" and ran.returncode and OFFLINE.search(ran.stderr):
        pytest.skip("the wheel cannot be built here: no package index")
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout, "a script says what it found"


def test_without_recordings_a_script_says_so(tmp_path):
    for script in MEASURED:
        ran = subprocess.run(
            [sys.executable, str(FOLDER / script), "--data", str(tmp_path / "nowhere")],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
        )
        assert ran.returncode
        assert "nowhere" in ran.stderr
        assert "Traceback" not in ran.stderr
