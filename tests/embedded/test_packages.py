"""C packages: their files, their self-test, the compilers and linters that they satisfy, the folders they replace."""

import json
import re
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import Program
from linkwise.control import CONTROLLERS, Policy, StateObserver
from linkwise.embedded import ENTRIES, Options, Package, entries, stack
from linkwise.embedded.arguments import typical
from linkwise.embedded.reference import states
from linkwise.errors import LinkwiseError, UnknownNameError
from linkwise.files.outputs import OutputError
from linkwise.model.inertia import Inertia

WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wdouble-promotion -Wmissing-prototypes -Werror"
NAMES = {
    "float32": ("gravity_torques", *CONTROLLERS, *ENTRIES),
    "float64": (
        "gravity_torques",
        "forward_dynamics",
        "integral_tracking",
        "state_observer",
        "rollout",
        "two_rate",
    ),
}
ALLOWED_CALLS = {"memcpy", "fma", "fmaf", "sqrt", "sqrtf", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]

pytestmark = pytest.mark.skipif(not (shutil.which("make") and COMPILERS), reason="no make or no C compiler")


def run(*command, cwd, fails=False):
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, timeout=240
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module", params=["float32", "float64"])
def built(request, tmp_path_factory):
    """A package, its folder, and what its check said. That in float32 has everything that has a name."""
    weights = tmp_path_factory.mktemp("weights") / "policy.npz"
    Policy.random((4, 6, 2)).save(weights)
    made = Package(
        lw.load("two_link"),
        NAMES[request.param],
        Options(dtype=request.param, weights=str(weights)),
        constant_time=request.param == "float64",
        count=8,
    )
    folder = tmp_path_factory.mktemp(request.param) / "arm"
    made.write(folder)
    quick = "-O1 -march=native" if request.param == "float32" else "-O2 -march=native"
    said = run(
        "make", "check", "all", f"CC={COMPILERS[0]}", f"CFLAGS={quick}", f"WARNINGS={WARNINGS}", cwd=folder
    )
    return made, folder, said


def test_the_check_passes_without_a_warning(built):
    made, folder, said = built
    total = int(re.search(r"(\d+) states, all bits equal", said)[1])
    assert total >= 2 * len(made.functions)
    for compiler in COMPILERS:
        options = (
            f"CC={compiler}",
            f"BUILD=build/{compiler}",
            "CFLAGS=-O0 -march=native",
            f"WARNINGS={WARNINGS}",
        )
        if compiler != COMPILERS[0]:
            assert f"{total} states, all bits equal" in run("make", "check", *options, cwd=folder)
        run("make", "runtime", *options, cwd=folder)


def test_the_check_fails_for_one_wrong_bit(built, tmp_path):
    _, folder, _ = built
    shutil.copytree(folder, tmp_path / "arm")
    check = tmp_path / "arm" / "check" / "check.c"
    text = check.read_text()
    place = re.search(r"expected_tau\[\d+\]\[\d+\] = \{\s+\{0x[0-9a-f]+?([0-9a-f])u", text)
    flipped = format(int(place[1], 16) ^ 1, "x")
    check.write_text(text[: place.start(1)] + flipped + text[place.end(1) :])
    said = run("make", "check", "CFLAGS=-O0 -march=native", cwd=tmp_path / "arm", fails=True)
    assert "1 of the numbers" in said
    assert "state 0: element 0 is" in said


def test_nothing_is_allocated_and_no_function_calls_itself(built):
    made, folder, _ = built
    for f in made.functions:
        symbols = run("nm", "-u", f"build/{f.name}.o", cwd=folder).split()
        assert set(symbols) - {"U"} <= ALLOWED_CALLS
        body = f.text[f.text.rindex(f"{f.name}(") :]
        assert f"{f.name}(" not in body[1:]


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
def test_the_stack_is_within_the_bound_of_the_header():
    made = Package(lw.load("puma560"), ["computed_torque", "pose"], Options("float32"), count=1)
    sources = {
        name.split("/")[-1]: text
        for name, text in made.files.items()
        if name.startswith(("src/", "include/"))
    }
    header = made.files["include/puma560.h"]
    for flags in (("-O0", "-mfma"), ("-O3", "-mfma")):
        if not (found := stack.measured(sources, flags=flags)):
            pytest.skip("this gcc measures no stack")
        for f in made.functions:
            bound = int(re.search(rf"#define {f.name.upper()}_STACK (\d+)", header)[1])
            assert found[f.name] <= bound
    assert "bytes of stack" in header
    assert "measured: " in header


def test_the_header_says_order_units_and_sizes(built):
    made, _, _ = built
    header = made.files["include/two_link.h"]
    for k, name in enumerate(made.robot.joint_names):
        assert re.search(rf"\b{k}  {name} \[rad, N\*m\]", header)
    assert "#define TWO_LINK_N 2" in header
    assert "joint positions [rad or m]" in header
    for f in made.functions:
        assert f"{'void' if f.function.status is None else 'int'} {f.name}(" in header
    assert header.isascii()
    joints, text = made.robot.coordinate_joints, made.files["src/two_link_limits.c"]
    for name, values in (
        ("lower", [joint.limits.lower for joint in joints]),
        ("upper", [joint.limits.upper for joint in joints]),
        ("effort", made.robot.effort_limits),
    ):
        listed = re.search(rf"two_link_{name}\[TWO_LINK_N\] = {{([^}}]*)}}", text)[1]
        found = [float(number.strip().rstrip("f")) for number in listed.split(",")]
        np.testing.assert_allclose(found, np.clip(values, -1e30, 1e30), rtol=1e-6)


@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_wrapper_is_cpp(built, standard, tmp_path):
    _, folder, _ = built
    spans = "std::span<const real, 2>(q), std::span<real, 2>(tau)" if standard == "c++20" else None
    program = f"""
        #include "two_link.hpp"
        using two_link::real;
        int main() {{
            const std::array<real, 2> q{{real(0.1), real(0.2)}};
            std::array<real, 2> tau{{}}, other = two_link::gravity_torques(q);
            const auto found = two_link::state_observer(q, q, q, q);
            static_assert(two_link::n == 2);
            {f"two_link::gravity_torques({spans});" if spans else "two_link_gravity_torques(q.data(), tau.data());"}
            return tau == other && found.next_q[0] > 0 ? 0 : 1;
        }}"""
    (tmp_path / "main.cpp").write_text(program)
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{folder / 'include'}"]
    run(
        "g++",
        f"-std={standard}",
        *flags,
        "main.cpp",
        folder / "build/libtwo_link.a",
        "-o",
        "main",
        cwd=tmp_path,
    )
    run("./main", cwd=tmp_path)


@pytest.mark.skipif(not shutil.which("cargo"), reason="no Rust")
def test_the_crate_gives_the_same_bits(tmp_path):
    made = Package(lw.load("two_link"), ["gravity_torques", "state_observer"], Options("float32"), count=1)
    made.write(tmp_path / "arm")
    q, bits = np.array([0.1, 0.2], np.float32), lambda x: np.asarray(x, np.float32).view(np.uint32)
    expected = bits(made.functions[0].entry.kernel(q)), bits(made.functions[1].entry.kernel(q, q, q, q)[1])
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_text(
        "fn main() {\n    let q = [0.1, 0.2];\n"
        "    let words = |x: [two_link::Real; two_link::N]| x.map(two_link::Real::to_bits);\n"
        "    let tau = words(two_link::gravity_torques(&q));\n"
        "    let next = words(two_link::state_observer(&q, &q, &q, &q).next_qd);\n"
        '    println!("{} {} {} {}", tau[0], tau[1], next[0], next[1]);\n}\n'
    )
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n\n'
        '[dependencies]\ntwo_link = { path = "arm/rust" }\n'
    )
    said = run("cargo", "run", "--offline", "--quiet", cwd=tmp_path)
    assert said.split() == [str(x) for x in np.concatenate(expected)]
    assert made.files["rust/lib.rs"].count("#![no_std]") == 1


def test_the_crate_compiles_as_the_makefile_does():
    """Code in constant time must not set errno; pointers to inputs are constant, others are not."""
    for constant_time in (False, True):
        made = Package(lw.load("two_link"), ["gravity_torques"], constant_time=constant_time, count=1)
        for name in ("Makefile", "rust/build.rs"):
            assert ("-fno-math-errno" in made.files[name]) == constant_time, name
        assert "gravity_torques(q: *const Real, tau: *mut Real)" in made.files["rust/lib.rs"]


@pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("pkg-config")), reason="no CMake or no pkg-config"
)
def test_cmake_and_pkg_config(tmp_path):
    Package(lw.load("two_link"), ["gravity_torques"], count=2).write(tmp_path / "arm")
    run("cmake", "-S", "arm", "-B", "built", f"-DCMAKE_INSTALL_PREFIX={tmp_path}/there", cwd=tmp_path)
    run("cmake", "--build", "built", cwd=tmp_path)
    assert "100% tests passed" in run("ctest", "--test-dir", "built", cwd=tmp_path)
    run("cmake", "--install", "built", cwd=tmp_path)
    (found,) = (tmp_path / "there").rglob("two_link.pc")
    flags = run("pkg-config", "--cflags", "--libs", found, cwd=tmp_path)
    assert f"-I{tmp_path}/there/include" in flags
    assert "-ltwo_link" in flags


@pytest.mark.skipif(
    not (shutil.which("clang-tidy") and shutil.which("cppcheck")), reason="no clang-tidy or no cppcheck"
)
def test_linters_find_only_what_is_listed(tmp_path):
    made = Package(
        lw.load("two_link"), ["integral_tracking", "rollout"], Options("float32"), constant_time=True, count=2
    )
    made.write(tmp_path / "arm")
    said = run("make", "lint", cwd=tmp_path / "arm")
    assert "misra" not in said.replace("--addon=misra", "").replace("check/misra.txt", "")


# -- the bits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fma", [True, False])
def test_reference_states_are_those_of_the_interpreter(fma):
    """The definition of all results; the tables of the check come from compiled code."""
    from linkwise.compiler.emit import c

    made = Package(
        lw.load("two_link"), ["integral_tracking", "trajectory"], Options("float32"), fma=fma, count=3
    )
    for f in made.functions:
        found = states(made.robot, f.entry, 3, fma)
        program = f.entry.program if fma else c.unfused(f.entry.program)
        assert isinstance(program, Program)
        for k in range(3):
            exact = interpret.run(program, *(values[k].tolist() for values in found.given.values()))
            for values, expected in zip(found.expected.values(), exact, strict=True):
                assert np.array_equal(values[k], np.ravel(expected))


@pytest.mark.parametrize("form", ["", "-DLW_CONSTANT_TIME"])
def test_the_software_fma_is_exact(tmp_path, form):
    """What processors without the instruction compute, beside the machine's own fma, on hard operands."""
    made = Package(lw.load("two_link"), ["gravity_torques"], count=1)
    (tmp_path / "lw_fma.h").write_text(made.files["src/lw_fma.h"])
    (tmp_path / "main.c").write_text(FMA)
    flags = ["-O2", "-ffp-contract=off", *form.split()]
    run(COMPILERS[0], *flags, "main.c", "-lm", "-o", "main", cwd=tmp_path)
    assert run("./main", cwd=tmp_path) == "0 of 200000\n"


FMA = r"""
#include <math.h>
#include <stdio.h>
#undef __GLIBC__
#undef __FMA__
#undef __aarch64__
#include "lw_fma.h"
#if LW_EXACT_FMA || LW_EXACT_FMAF
#error "the software is not used"
#endif
static uint64_t state = 88172645463325252u;
static uint64_t draw(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state * 2685821657736338717u;
}
int main(void)
{
    int wrong = 0, count = 200000;
    for (int i = 0; i < count; ++i) {
        double d[3];
        float f[3];
        for (int k = 0; k < 3; ++k) {
            uint64_t bits = draw();
            uint32_t word = (uint32_t)(bits >> 32);
            if (i % 4 == 1)  /* near one */
                bits = (bits & 0x800fffffffffffffu) | ((uint64_t)(1023 - 30 + draw() % 60) << 52);
            if (i % 4 == 2)  /* products that are subnormal */
                bits = (bits & 0x800fffffffffffffu) | ((uint64_t)((k < 2 ? 463 : 0) + draw() % 100) << 52);
            if (i % 4 == 3)  /* few digits: ties */
                bits = (bits & 0x800ffff000000000u) | ((uint64_t)(1020 + draw() % 6) << 52), word &= 0xfffff000u;
            memcpy(&d[k], &bits, 8);
            memcpy(&f[k], &word, 4);
        }
        if (i % 8 == 5)  /* cancellation */
            d[2] = -d[0] * d[1], f[2] = -f[0] * f[1];
        double a = fma(d[0], d[1], d[2]), b = lw_fma(d[0], d[1], d[2]);
        float x = fmaf(f[0], f[1], f[2]), y = lw_fmaf(f[0], f[1], f[2]);
        wrong += (memcmp(&a, &b, 8) != 0 && a == a) || (a != a) != (b != b);
        wrong += (memcmp(&x, &y, 4) != 0 && x == x) || (x != x) != (y != y);
    }
    printf("%d of %d\n", wrong, count);
    return 0;
}
"""


# -- trajectories, payloads --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spline():
    rng = np.random.default_rng(0)
    return motion.quintic_spline(np.cumsum(rng.uniform(0.1, 1, 12)), rng.normal(size=(12, 2)))


@pytest.mark.parametrize(("dtype", "fma"), [("float32", True), ("float64", False)])
@pytest.mark.parametrize("constant_time", [False, True])
def test_a_table_is_the_motion_at_all_times(spline, dtype, fma, constant_time, tmp_path):
    """Also before and after it, where pieces begin, at infinite times, and for NaN."""
    made = Package(
        lw.load("two_link"),
        ["trajectory"],
        Options(dtype=dtype, trajectory=spline),
        fma=fma,
        constant_time=constant_time,
        count=16,
    )
    (f,) = made.functions
    t = np.concatenate([spline.times, np.linspace(-1, spline.end + 1, 20)]).astype(dtype)
    for found, expected in zip(f.entry.kernel(t[:, None]), spline.at(t.astype(float)), strict=True):
        error = 2e-5 if dtype == "float32" else 1e-13
        np.testing.assert_allclose(found, expected, rtol=0, atol=error * np.abs(expected).max())
    assert np.isnan(f.entry.kernel(np.full((1, 1), np.nan))).all()
    for time, end in ((np.inf, spline.end), (1e30, spline.end), (-np.inf, spline.begin)):
        position, *rest = f.entry.kernel(np.full((1, 1), time))
        np.testing.assert_array_equal(position, f.entry.kernel(np.full((1, 1), end))[0])
        np.testing.assert_array_equal(rest, 0.0)
    assert ("halves" in f.text) != constant_time
    assert ("fma" in f.text.split("{", 1)[1]) == fma
    made.write(tmp_path / "arm")
    said = run("make", "check", "CFLAGS=-O1 -march=native", f"WARNINGS={WARNINGS}", cwd=tmp_path / "arm")
    assert "16 states, all bits equal" in said


def test_other_motions_are_formulas_or_pieces(spline):
    robot, rng = lw.load("two_link"), np.random.default_rng(1)
    series = motion.FourierSeries([0.1, 0.2], *rng.normal(size=(2, 3, 2)), 2.0)
    bent = motion.PiecewisePolynomial([0.4, 0.9, 1.2, 1.5], rng.normal(size=(3, 4, 2)))  # ends in full motion
    t = np.linspace(0.05, 1.95, 7)
    for given, error in (
        (series, 1e-13),
        (motion.hold([1.0, 2.0]), 0.0),
        (Slow(series), 1e-3),
        (bent, 1e-13),
    ):
        (entry,) = entries(robot, ["trajectory"], Options(trajectory=given))
        for found, expected in zip(entry.kernel(t[:, None]), given.at(t), strict=True):
            np.testing.assert_allclose(found, expected, atol=error)
    (entry,) = entries(robot, ["trajectory"])
    ends, times = ([0.1, 0.2], [1.0, -1.0]), np.array([-0.2, 0.0, 0.3, 1.9, 2.0, 2.5])
    for t, *expected in zip(times, *motion.quintic(*ends, 2.0).at(times), strict=True):
        np.testing.assert_allclose(entry.kernel([t], [2.0], *ends), expected, atol=1e-14)
    for wrong, why in (
        (motion.hold([1.0]), "a motion of 1 joints, two_link has 2"),
        (spline.stretched(1e-7), "are the same in float32"),
    ):
        with pytest.raises(LinkwiseError, match=why):
            entries(robot, ["trajectory"], Options(dtype="float32", trajectory=wrong))


def test_inverse_kinematics_is_that_of_the_frame():
    """In closed form and by iteration, of the tool and of a frame before it."""
    for robot, frame in (
        (lw.load("ur10e"), None),
        (lw.load("stanford"), "link4"),
        (lw.load("two_link"), "link1"),
    ):
        (entry,) = entries(robot, ["inverse_kinematics"], Options(frame=frame))
        given, kernel = entry.states(6), entry.kernel
        found = kernel(*(given[key] for key, _ in kernel.inputs))
        q = found[[key for key, _ in kernel.outputs].index("q")]
        away = np.abs(np.asarray(robot.pose(q, frame))[:, :3].reshape(6, 12) - given["target"])
        assert (away.max(axis=1) < 1e-6).sum() >= 2, (robot.name, away.max(axis=1))


def test_reference_states_may_have_special_numbers():
    """With and without fused multiply-adds, of functions and of loops."""
    robot = lw.load("two_link")
    for name, title in (("inverse_dynamics", "qdd"), ("rollout", "tau")):
        (entry,) = entries(robot, [name])
        for fma in (True, False):
            made = states(robot, entry, 8, fma, special=True)
            assert np.isnan(made.given[title][0]).all()
            assert np.isinf(made.given[title][1]).all()
            assert np.isnan(next(iter(made.expected.values()))[0]).all()
            ordinary = states(robot, entry, 8, fma)
            assert all(np.isfinite(values).all() for values in ordinary.given.values())


class Slow(motion.Trajectory):
    """Some other kind of motion."""

    dof, begin, end = 2, 0.0, 2.0

    def __init__(self, of):
        self.of = of

    def _inside(self, t):
        return self.of.at(t)


def test_a_closed_loop_takes_the_motion_step_by_step(spline):
    (entry,) = entries(lw.load("two_link"), ["closed_loop"], Options(trajectory=spline))
    assert entry.kernel.interface.feeds["reference"].length(3) == 18
    assert "as trajectory computes it" in entry.summary


@pytest.mark.parametrize("name", lw.robots())
def test_a_closed_loop_along_a_table_has_reference_states(name, tmp_path):
    """For tables of any size, from the command line's file on; their references are those of the table."""
    from linkwise.motion.files import read_csv

    robot = lw.load(name)
    for rows in (2, 3, 72):
        times = np.linspace(0.0, 0.01, rows)
        table = np.column_stack([times, 0.3 * np.sin(times[:, None] + np.arange(robot.dof))])
        labels = ",".join(["t", *(f"q{k + 1}" for k in range(robot.dof))])
        np.savetxt(tmp_path / "motion.csv", table, delimiter=",", header=labels, comments="", fmt="%.17g")
        given = read_csv(tmp_path / "motion.csv")
        options = Options(trajectory=given, integrator="semi_implicit_euler")
        (entry,) = entries(robot, ["closed_loop"], options)
        found = states(robot, entry, 8)
        expected = np.concatenate(given.at(np.arange(4) * 1e-3), axis=-1)
        np.testing.assert_array_equal(found.given["reference"][0], expected.ravel())
        alone = {key: values[1] for key, values in found.given.items()}
        final, _ = entry.kernel(alone, steps=4)
        np.testing.assert_array_equal(found.expected["q"][1], final["q"])
        assert np.isfinite(final["q"]).all()


def test_a_payload_is_at_the_frame_that_was_named():
    robot = lw.load("two_link")
    frame, load = robot.link_names[1], np.array([0.7, 0.01, 0.02, 0.03, 0.02, 0.0, 0.0, 0.02, 0.0, 0.02])
    loaded = robot.with_payload(0.7, load[1:4] / 0.7, Inertia.from_parameters(load).matrix_about_com, frame)
    q, qd, a = np.random.default_rng(0).normal(size=(3, 2))
    given = Options(payload=True, frame=frame, fixed_gains=True)
    found = {
        e.name: e.kernel for e in entries(robot, ["computed_torque", "state_observer", "rollout"], given)
    }
    plain = {e.name: e.kernel for e in entries(loaded, list(found), Options(fixed_gains=True))}
    state = (q, qd, q + 0.1, qd, a)
    with_load, loaded_law = found["computed_torque"](*state, load), plain["computed_torque"](*state)
    np.testing.assert_allclose(with_load[0], loaded_law[0], atol=1e-12)
    observed = found["state_observer"](q, a, q, qd, load), plain["state_observer"](q, a, q, qd)
    np.testing.assert_allclose(*observed, atol=1e-12)
    values = {"q": q, "qd": qd, "step": [1e-3], "tau": a}
    end, path = found["rollout"]({**values, "payload": load}, steps=1)
    np.testing.assert_allclose(end["qd"], plain["rollout"](values, steps=1)[0]["qd"], atol=1e-12)
    np.testing.assert_array_equal([path["path_q"][0], path["path_qd"][0]], [q, qd])  # before the step
    known = StateObserver(robot, 100.0).kernel(1e-3)
    (observer,) = entries(robot, ["state_observer"])
    np.testing.assert_array_equal(observer.kernel(q, a, q, qd), known(q, a, q, qd))
    for name in ("two_rate", "extended_kalman_filter"):
        with pytest.raises(LinkwiseError, match=f"{name} takes no payload at run time"):
            entries(robot, [name], given)


def test_a_safe_stop_brings_the_arm_to_rest():
    """With feedback in the simulated loop; without it from the last good state, whatever is measured since."""
    robot, at, speed = lw.load("two_link"), np.array([0.3, -0.4]), np.array([1.0, -2.0])
    made = {
        mode: entries(robot, ["safe_stop"], Options(stop=mode, stop_time=0.4, torque_limits=(60.0, 30.0)))[0]
        for mode in ("hold", "ramp")
    }
    assert "end with the torques that hold it" in made["hold"].summary
    assert "end with no torques" in made["ramp"].summary
    broken = np.full(2, np.nan)
    for feedback in (1.0, 0.0):
        q, qd, h = at, speed, 1e-3
        for cycle in range(600):
            seen = (q, qd) if feedback else (broken, broken)
            tau = made["hold"].kernel([cycle * h], at, speed, *seen, [feedback])
            q, qd = simulated_step(robot, q, qd, tau, h)
        assert np.abs(qd).max() < (1e-3 if feedback else 0.05)
        np.testing.assert_allclose(q, at + speed * 0.1, atol=1e-3 if feedback else 0.02)
        if feedback:
            np.testing.assert_allclose(tau, robot.gravity_torques(q), atol=1e-2)
    hold, ramp = (made[mode].kernel([0.3], at, speed, at, speed, [1.0]) for mode in ("hold", "ramp"))
    np.testing.assert_allclose(ramp, hold * 0.25, rtol=1e-12)
    assert (made["ramp"].kernel([0.4], at, speed, at, speed, [1.0]) == 0.0).all()
    blind = made["hold"].kernel([0.1], at, speed, broken, broken, [0.0])
    assert np.abs(blind).min() > 1.0
    np.testing.assert_array_equal(made["hold"].kernel([0.1], at, speed, broken, speed, [1.0]), blind)
    assert (made["hold"].kernel([0.1], broken, speed, at, speed, [1.0]) == 0.0).all()
    limited = made["hold"].kernel([0.1], at, speed, at + 50.0, speed, [1.0])
    np.testing.assert_array_equal(np.abs(limited), [60.0, 30.0])


def simulated_step(robot, q, qd, tau, h):
    qd = qd + h * robot.forward_dynamics(q, qd, tau)
    return q + h * qd, qd


# -- the folder --------------------------------------------------------------------------------------------------------


def test_only_an_unchanged_package_is_replaced(tmp_path):
    made = Package(lw.load("two_link"), ["gravity_torques"], count=1)
    folder = tmp_path / "arm"
    made.write(folder)
    (folder / "build").mkdir()
    assert made.write(folder)
    assert not (folder / "build").exists()
    source = folder / "src" / "two_link_gravity_torques.c"
    source.write_text("mine")
    with pytest.raises(OutputError, match=r"two_link_gravity_torques\.c.*--force"):
        made.write(folder)
    assert source.read_text() == "mine"
    (folder / "notes.txt").write_text("mine, too")
    made.write(folder, force=True)
    assert source.read_text() != "mine"
    assert (folder / "notes.txt").read_text() == "mine, too"
    (folder / "notes.txt").unlink()
    made.write(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "more").symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(OutputError, match="more"):
        made.write(folder)
    (folder / "more").unlink()
    elsewhere.rmdir()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arm"]


def test_places_that_are_no_folders_are_refused(tmp_path):
    made = Package(lw.load("two_link"), ["gravity_torques"], count=1)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "no" / "arm"):
        with pytest.raises(OutputError):
            made.write(place)


def test_an_estimator_forgets_within_about_a_second():
    for period, factor in ((0.001, "0.999"), (0.01, "0.99"), (0.25, "0.75"), (2.0, "0.5")):
        (made,) = entries(lw.load("two_link"), ["recursive_least_squares"], Options(period=period))
        assert f"forgetting factor {factor} per sample" in made.summary


def test_names_are_checked():
    robot = lw.load("two_link")
    with pytest.raises(UnknownNameError, match="did you mean 'computed_torque'"):
        Package(robot, ["computed_torq"])
    with pytest.raises(LinkwiseError, match="cannot begin"):
        Package(robot, ["pose"], prefix="1x")
    with pytest.raises(LinkwiseError, match="it has no constraints"):
        Package(robot, ["constraint_forces"])
    with pytest.raises(LinkwiseError, match="ball or floating"):
        Package(lw.load("two_link", base="floating"), ["trajectory"])
    with pytest.raises(LinkwiseError, match="time depends on data"):
        _ = Package(robot, ["iterated_forward_dynamics"], constant_time=True).files


def test_long_chains_are_loops_with_memory_of_the_caller(tmp_path):
    made = Package(lw.general_chain(60), ["inverse_dynamics"], Options("float32"), count=2)
    (f,) = made.functions
    assert f.room > 0
    assert f"_ROOM {f.room}" in made.files[f"include/{made.prefix}.h"]
    made.write(tmp_path / "chain")
    said = run("make", "check", f"WARNINGS={WARNINGS}", cwd=tmp_path / "chain")
    assert "2 states, all bits equal" in said


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_writes_a_package(tmp_path, monkeypatch, capsys):
    from linkwise.cli import main

    monkeypatch.chdir(tmp_path)
    command = [
        "generate",
        "two_link",
        "computed_torque",
        "gravity_torques",
        "--dtype",
        "float32",
        "--payload",
    ]
    assert main([*command, "--states", "4", "--torque-limits", "50,20", "--out", "pkg", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["function"] for row in said["functions"]] == [
        "two_link_computed_torque",
        "two_link_gravity_torques",
    ]
    assert "8 states, all bits equal" in run("make", "check", cwd=tmp_path / "pkg")
    assert "payload" in (tmp_path / "pkg/include/two_link.h").read_text()
    assert "50.0f, 20.0f" in (tmp_path / "pkg/src/two_link_computed_torque_defaults.c").read_text()
    motion.write_csv("motion.csv", motion.quintic([0, 0], [1, 2], 1.0), rate=10)
    planned = ["generate", "two_link", "trajectory", "--trajectory", "motion.csv"]
    assert main([*planned, "--out", "plan", "--states", "1"]) == 0
    assert "motion of 10 pieces from 0 s to 1 s" in (tmp_path / "plan/include/two_link.h").read_text()
    capsys.readouterr()
    assert main(["generate", "two_link", "computed_torque"]) == 0
    assert "int two_link_computed_torque(" in capsys.readouterr().out
    for wrong, why in (
        (["pose", "jacobian"], "give --out DIR"),
        (["pose", "--force", "--out", "x.c"], "--force is for packages"),
        (["pose", "--period", "0.1"], "--period is for controllers"),
        (["two_rate"], "several functions"),
        (["pose", "jacobian", "--header", "--out", "other"], "--header is for one function"),
        (["pose", "jacobian", "--target", "cuda", "--out", "other"], "a package is C"),
        (["pose", "--controller", "tracking"], "--controller is for closed_loop"),
        (["pose", "--stop", "hold"], "--stop and --stop-time are for safe_stop"),
        (["pose", "--trajectory", "motion.csv"], "--trajectory is for trajectory and closed_loop"),
        (["trajectory", "--trajectory", "none.csv"], "none.csv"),
    ):
        assert main(["generate", "two_link", *wrong]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert why in line
    assert sorted(p.name for p in tmp_path.iterdir()) == ["motion.csv", "pkg", "plan"]


def test_typical_inputs_make_sense():
    """States of the self-test: positions within limits, times before and after a move, bodies that can exist."""
    for name in ("two_link", "panda", "puma560"):
        robot = lw.load(name)
        n, count = robot.dof, 60
        entry = SimpleNamespace(
            settings={"kp": [4.0]}, parameters={"mass": [2.0]}, examples={"way": [1.0, 2.0]}
        )
        sizes = dict.fromkeys(("q", "q_d", "start", "end", "stop_q", "qd", "tau", "way"), n)
        sizes |= dict.fromkeys(
            ("time", "duration", "rate", "breakaway", "restitution", "number", "kp", "mass"), 1
        )
        given = typical(robot, entry, {**sizes, "inertia": n * n, "payload": 10}, count)
        assert {key: x.shape for key, x in given.items()} == {
            key: (count, size) for key, size in {**sizes, "inertia": n * n, "payload": 10}.items()
        }
        for key in ("q", "q_d", "start", "end", "stop_q"):
            for k, joint in enumerate(robot.coordinate_joints):
                assert (given[key][:, k] >= joint.limits.lower).all()
                assert (given[key][:, k] <= joint.limits.upper).all()
            assert np.ptp(given[key], axis=0).min() > 0.1
        assert given["time"].min() < 0.0
        assert given["time"].max() > 1.0
        assert all((given[key] == 1.0).all() for key in ("duration", "rate", "breakaway"))
        assert (given["number"] == 0.0).all()
        assert (given["mass"] == 2.0).all()
        assert given["restitution"].min() >= 0.0
        assert given["restitution"].max() <= 1.0
        assert np.abs(given["tau"]).max() > 5.0
        assert np.abs(given["qd"]).max() <= 1.0
        assert given["kp"].min() >= 2.0
        assert given["kp"].max() <= 6.0
        assert np.array_equal(given["way"][0], np.resize([1.0, 2.0], n))
        assert np.linalg.eigvalsh(given["inertia"].reshape(count, n, n)).min() > 0.0
        assert not any(Inertia.from_parameters(numbers).violations() for numbers in given["payload"].tolist())


def test_functions_of_frames_are_those_of_the_frame_that_was_named():
    """And others need none, also where a robot has several leaves and so no frame by default."""
    robot = lw.random_robot(5, 6)
    q = np.random.default_rng(0).normal(size=robot.dof)
    names = ["pose", "jacobian", "inverse_dynamics", "mass_matrix"]
    for frame in robot.link_names[2:4]:
        found = {entry.name: entry.kernel for entry in entries(robot, names, Options(frame=frame))}
        for name in names[:2]:
            np.testing.assert_allclose(found[name](q), getattr(robot, name)(q, frame), atol=1e-14)
        assert found["mass_matrix"].content() == entries(robot, names[3:])[0].kernel.content()
