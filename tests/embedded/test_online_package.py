"""The move of all joints of a package: the bits of ``motion.Online``, with joints as lanes of vectors and without."""

import ctypes
import platform
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.embedded import Options, Package

JOINTS = 9  # more than a vector has lanes
X86 = platform.machine().lower() in ("x86_64", "amd64")
FLAGS = [("gcc", ""), ("gcc", "-march=native"), ("clang", "-march=native")]
FLAGS += [("gcc", "-mavx2 -mfma")] if X86 else []


@pytest.fixture(scope="module")
def package():
    return Package(lw.random_robot(1, JOINTS), ["online"], Options(), prefix="arm", count=1).files


@pytest.mark.parametrize(("compiler", "flags"), FLAGS)
def test_moves_of_all_joints_have_the_bits_of_the_library(package, compiler, flags, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    if "avx2" in flags and not _runs_avx2():
        pytest.skip("no AVX2")
    for name, text in package.items():
        if name.startswith(("src/", "include/")):
            (tmp_path / name.rsplit("/", 1)[1]).write_text(text, encoding="utf-8")
    sources = sorted(path.name for path in tmp_path.glob("*.c"))
    options = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", *flags.split()]
    command = [
        compiler,
        "-O1",
        *options,
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        "-o",
        "arm.so",
        *sources,
        "-lm",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    move = ctypes.CDLL(str(tmp_path / "arm.so")).arm_online_move
    rng = np.random.default_rng(2)
    limits = (rng.uniform(1.0, 3.0, JOINTS), rng.uniform(2.0, 5.0, JOINTS), rng.uniform(5.0, 50.0, JOINTS))
    online = motion.Online(*limits)
    faults = 0
    for turn in range(30):
        state = rng.uniform(-2.0, 2.0, (3, JOINTS)) * np.array([1.0, 0.5, 2.0])[:, None]
        goal = rng.uniform(-2.0, 2.0, (3, JOINTS)) * np.array([1.0, 0.3, 0.5])[:, None]
        goal[1] = np.nan if turn == 29 else goal[1]
        keys = ("target", "velocity", "acceleration")
        wanted = None if turn == 29 else online.plan(*state, **dict(zip(keys, goal, strict=True)))
        speed, strength, jerk = limits
        given = [*state, *goal, speed, -speed, strength, -strength, jerk, np.zeros(1)]
        made = [np.zeros(1), np.zeros((JOINTS, 20)), np.zeros((JOINTS, 20)), np.zeros(JOINTS)]
        rows = [np.ascontiguousarray(each) for each in given] + made
        fault = move(*(ctypes.c_void_p(each.ctypes.data) for each in rows))
        if wanted is None:
            assert fault == 1
            continue
        assert fault == int(np.any(wanted.fault))
        faults += fault
        if not fault:
            assert made[0][0] == np.max(wanted.duration)
            for found, name in zip(made[1:], ("durations", "jerks", "weight"), strict=True):
                assert np.array_equal(found.ravel(), np.ravel(getattr(wanted, name)))
    assert faults < 15


def _runs_avx2() -> bool:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return " avx2 " in file.read()
    except OSError:
        return False
