"""Functions of C packages: their bits, trajectories, payloads, safe stops, and the states that check them."""

from types import SimpleNamespace

import numpy as np
import pytest
from packages_built import COMPILERS, WARNINGS, needs_make, run

import linkwise as lw
from linkwise import motion
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import Program
from linkwise.control import StateObserver
from linkwise.embedded import Options, Package, entries
from linkwise.embedded.arguments import typical
from linkwise.embedded.reference import states
from linkwise.errors import LinkwiseError
from linkwise.model.inertia import Inertia

pytestmark = needs_make

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
