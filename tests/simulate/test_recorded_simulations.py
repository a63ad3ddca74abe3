"""Short simulations of small robots beside the results that are recorded."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, motion
from linkwise.functions.table import mechanism_of
from linkwise.simulate import (
    Drives,
    Moves,
    Plant,
    Push,
    Sensors,
    friction,
    noise,
    simulate,
    simulate_adaptive,
    source,
)
from linkwise.simulate.integrators import INTEGRATORS
from linkwise.simulate.loop import ClosedLoop
from linkwise.simulate.moving import Motion
from linkwise.simulate.python_loop import TouchingMotion
from recorded import Scenarios, packed, told, warned
from recorded_robots import (
    ROBOTS,
    chain,
    coupled,
    floating,
    linkage,
    odd_joints,
    states,
    touching,
    two_link,
    with_laws,
)

scenarios = Scenarios("simulate")


@cache
def two() -> lw.Robot:
    """Two joints with friction of every kind that jumps."""
    return two_link().with_parameters(
        {
            "joint1.viscous_friction": 0.4,
            "joint1.coulomb_friction_forward": 1.3,
            "joint1.coulomb_friction_backward": 0.9,
            "joint2.coulomb_friction_forward": 0.5,
            "joint2.coulomb_friction_backward": 0.7,
            "joint1.rotor_inertia": 0.11,
        }
    )


@cache
def law(robot: Any = None) -> control.Controller:
    return control.Tracking(two() if robot is None else robot, control.Gains(90.0, 17.0), torque_limits=40.0)


MOVE = motion.quintic([0.1, -0.2], [0.5, 0.4], 0.05)
SHORT: dict[str, Any] = {"duration": 0.06, "step": 2e-3, "warn": False}


def result(*args: Any, **options: Any) -> dict[str, Any]:
    found, warnings = warned(simulate, *args, **{**SHORT, **options})
    numbers = {"q": found.q, "qd": found.qd, "tau": found.tau, "t": found.t, "end": found.final_q}
    numbers |= {"rate": found.final_qd, **found.recorded}
    return {"numbers": packed(numbers), "warnings": warnings}


@scenarios
def loops_of_two_joints():
    robot = two()
    plant = Plant(
        robot,
        breakaway=1.7,
        sensors=Sensors(1e-3, 2e-2, velocity="measured"),
        drives=Drives([3.0, 2.0], volts=9.0, bits=9),
        push=Push([3.0, -2.0], begin=0.02, end=0.04),
    )
    counted = Plant(robot, sensors=Sensors(resolution=1e-3, velocity="difference", cutoff=40.0))
    wrench = Plant(robot, friction=False, push=Push(wrench=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], frame="link2"))
    recorded = ("command", "q_measured", "qd_measured")
    return {
        "plain": result(robot, law(), MOVE),
        "euler": result(robot, law(), MOVE, integrator="semi_implicit_euler", every=3),
        "plant": result(plant, law(), MOVE, control_period=4e-3, delay=1, record=recorded, seed=5, first=3),
        "counted": result(counted, law(), MOVE, record=recorded),
        "wrench": result(wrench, law(), MOVE, continuous=True),
        "moves": result(robot, law(), Moves(np.array([0.1, -0.2]), np.array([0.5, 0.4]), 0.05)),
        "varied": result(
            robot, law(), [0.3, 0.2], q=[[0.1, -0.2], [0.2, 0.4]], qd=[0.5, -0.3],
            vary={"kp": [[90.0, 80.0], [50.0, 40.0]], "payload": [[0.5, 0.1, 0.2, 0.3, 0.1, 0, 0, 0.1, 0, 0.1]] * 2},
        ),
        "several": result(robot, law(), [MOVE, motion.hold([0.2, 0.3])], q=[[0.1, -0.2], [0.2, 0.3]]),
        "python": result(robot, lambda t, q, qd, r: 9.0 * (r[0] - q) - qd + t, MOVE, torque_limits=3.0, delay=1),
        "slow": result(robot, law(), MOVE, fused=False, control_period=4e-3),
        "single": {k: v for k, v in result(robot, law(), MOVE, dtype="float32").items() if k == "warnings"},
        "held": result(robot, control.ConstantTorque(robot, [0.5, 0.1]), q=[0.0, 0.0], duration=0.02),
    }  # fmt: skip


@scenarios(tolerance=1e-7)
def falls_of_robots_of_every_shape():
    found = {}
    for name in ("with_laws", "floating", "planar", "odd_joints", "elastic", "swimmer"):
        robot = ROBOTS[name]()
        start = states(robot, 1)
        found[name] = result(
            robot, control.Passive(robot), q=start["q"][0], qd=start["qd"][0], duration=0.02, fused=False
        )
    return found


@scenarios(tolerance=1e-7)
def dry_friction_between_free_joints():
    """Joints that stick and slide, with joints before and between them that never stick."""
    rub = {
        "j2.coulomb_friction": 0.7,
        "j4.coulomb_friction_forward": 1.1,
        "j4.coulomb_friction_backward": 0.4,
    }
    robots = {
        "odd": odd_joints().with_parameters(rub),
        "planar": ROBOTS["planar"](),
        "floating": floating().with_parameters(
            {"joint2.coulomb_friction": 0.9, "joint3.coulomb_friction": 0.02}
        ),
    }
    found = {}
    for name, robot in robots.items():
        start = states(robot, 1)
        qd = start["qd"][0] * np.where(np.arange(robot.dof) == robot.dof - 1, 0.0, 0.3)
        for integrator in ("rk4", "semi_implicit_euler"):
            found[f"{name} {integrator}"] = result(
                robot,
                control.Passive(robot),
                q=start["q"][0],
                qd=qd,
                duration=0.012,
                integrator=integrator,
                fused=False,
            )
    return found


@scenarios(tolerance=1e-6)
def constraints_and_contacts():
    found: dict[str, Any] = {}
    robot = coupled()
    start = states(robot, 1)
    for label, options in {
        "": {},
        "euler": {"integrator": "semi_implicit_euler"},
        "rate": {"stabilization": 20.0},
    }.items():
        state = {"q": 0.3 * start["q"][0], "qd": start["qd"][0]}
        found[f"coupled {label}"] = result(robot, control.Passive(robot), duration=0.02, **state, **options)
    loop = linkage()
    q = np.array([0.3, -0.4, 0.5, 0.2, -0.6])
    found["linkage"] = result(loop, control.Passive(loop), q=q, duration=0.02, fused=False)
    found["not met"] = told(simulate, loop, control.Passive(loop), q=q + 0.3, duration=0.02)
    arm = touching()
    low = control.Passive(arm)
    done, warnings = warned(
        simulate, arm, low, q=[0.3, 1.2, -0.5], qd=[0.0, 2.0, 0.0], duration=0.03, step=2e-3
    )
    found["touching"] = packed({"q": done.q, "qd": done.qd, "points": done.contact_points}) | {
        "warnings": warnings
    }
    return found


@scenarios(tolerance=1e-6)
def robots_that_are_too_large_for_a_kernel():
    """The loops of such robots, on small ones."""
    arm, found = touching(), {}
    low = {"q": [[0.3, 1.2, -0.5], [0.2, 0.9, -0.4]], "qd": [0.0, 2.0, 0.0]}
    high = [[0.08, -0.14], [0.03, -0.15]]
    kinds: dict[str, Any] = {
        "touching": (arm, low | {"vary": {"ground_height": high, "contact_friction": [0.2, 0.9]}}),
        "falling": (chain(), {"q": [0.3, 0.1, -0.2], "qd": [0.5, -0.3, 0.2]}),
        "coupled": (coupled(), {"q": [0.1, 0.05, -0.1], "qd": [0.5, -0.3, 0.2]}),
        "free": (
            odd_joints(),
            {"q": states(odd_joints(), 1)["q"][0], "qd": 0.3 * states(odd_joints(), 1)["qd"][0]},
        ),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClosedLoop, "fits_a_kernel", property(lambda self: False))
        for name, (robot, options) in kinds.items():
            found[name] = result(robot, control.Passive(robot), duration=0.006, fused=False, **options)
    plain = Motion.of(arm, mechanism_of(arm, base_parameters=True), True, 0.0)
    step = TouchingMotion(plain.links, True, plain.held, 0.0, plain.scene, plain.accuracy)
    object.__setattr__(step, "robot", arm)
    q, rest = np.array(low["q"][0]), np.zeros(3)
    touch = [np.float64(0.1 * k) for k in range(6)] + [
        np.float64(0.5)
    ]  # the worst residual so far is the last one
    new_q, new_qd, after = step.touched({"ground_height": high[0]}, rest, q, rest, np.float64(2e-3), touch)
    found["step"] = [np.array([*new_q, *new_qd], float), np.array(after, float).ravel()]
    low |= {"vary": {"ground_height": high}}
    done = simulate(arm, control.Passive(arm), duration=0.01, step=2e-3, warn=False, **low)
    names = ("contact_forces", "contact_gaps", "penetration", "slip", "residual", "contact_arrows")
    return found | {"contacts": packed({name: getattr(done, name) for name in names})}


@scenarios
def numbers_of_results():
    robot = two()
    found = simulate(
        robot, law(), [0.3, 0.2], q=[0.1, -0.2], qd=[3.0, 9.0], duration=0.1, step=2e-3, warn=False
    )
    return {
        "energy": found.energy(),
        "error": found.error,
        "excursions": [str(each) for each in found.excursions()],
        "beyond": found.beyond_range(),
        "text": repr(found)[:200].replace("\n", " "),
        "wild": warned(
            simulate, robot, lambda t, q, qd, r: 1e9 * np.sign(q), duration=0.3, step=5e-3, q=[0.1, 0.2]
        )[1],
    }


@scenarios(tolerance=1e-6)
def adaptive():
    found = {}
    for name, robot in (("chain", chain()), ("odd", odd_joints())):
        start = states(robot, 1)
        done = simulate_adaptive(
            robot, duration=0.1, q=start["q"][0], qd=start["qd"][0], rows=5, smoothing=0.05
        )
        found[name] = packed({"q": done.q, "qd": done.qd})
    done = simulate_adaptive(two(), law(), MOVE, duration=0.06, rows=4, rtol=1e-8, friction=False)
    return found | {"law": packed({"q": done.q, "tau": done.tau})}


@scenarios
def friction_in_steps():
    """The rule on plain numbers: joints that stick, slide and turn back, with friction that jumps and that does not."""
    robot, found = with_laws(), {}
    smooth = robot.with_parameters({f"joint{k}.friction_speed": 0.05 for k in (1, 2, 3)})
    sharp = robot.with_parameters({f"joint{k}.friction_speed": 0.0 for k in (1, 2, 3)})
    here = states(robot, 4)
    M = robot.mass_matrix(here["q"])
    for label, each in (("", robot), ("smooth ", smooth), ("sharp ", sharp)):
        links = mechanism_of(each, base_parameters=True)
        for k in range(4):
            for size in (0.0, 0.01, 1.0):
                v, free = (size * here["qd"][k]).tolist(), (size * here["qdd"][k] + 0.002).tolist()
                done = friction.dry_friction(
                    links, M[k].tolist(), v, free, 2e-3, 1.3, here["tau"][k].tolist()
                )
                parts = [*done.torques, *done.sliding, *done.gradual, float(bool(done.resolved))]
                found[f"{label}{k} {size}"] = [float(x) for x in parts]
    return found


@scenarios
def random_numbers():
    found = {}
    for dtype in ("float64", "float32"):
        stream = noise.streams(7, 5, dtype)
        steps = np.arange(6, dtype=dtype)[:, np.newaxis]
        drawn = [np.asarray(noise.normal([*stream.T], steps, float(c), dtype), float) for c in range(3)]
        found[dtype] = {"streams": np.asarray(stream, float), "drawn": drawn}
    return found


@scenarios
def sensors_and_drives():
    sensors = Sensors([1e-3, 2e-3], 0.03, [1e-3, 0.0], "difference", 40.0)
    drives = Drives([3.0, 2.0], volts=9.0, bits=7)
    values = {name: list(map(float, x)) for name, x in drives.numbers(2).items()}
    given = {name: list(map(float, x)) for name, x in sensors.numbers(2, 0.004).items()}
    rng = np.random.default_rng(3)
    memory, measured = sensors.memory(np.array([0.3, 0.2])).tolist(), []
    for _ in range(4):
        drawn = rng.normal(size=4).tolist()
        q, qd, memory = sensors.measured(
            given, rng.normal(size=2).tolist(), [0.5, -0.4], memory, 0.004, drawn
        )
        measured.append([float(x) for x in (*q, *qd, *memory)])
    return {
        "numbers": {"sensors": given, "drives": values},
        "measured": measured,
        "driven": [[float(x) for x in drives.driven(values, tau)] for tau in ([1.0, -2.0], [50.0, -90.0])],
        "ideal": [
            bool(drives.ideal),
            bool(Drives().ideal),
            bool(sensors.noisy),
            bool(sensors.counts),
            bool(sensors.differs),
        ],
        "integrators": sorted(INTEGRATORS),
    }


@scenarios
def code_of_loops():
    """How much of what stands in the code of a loop: the numbers are those of the other scenarios."""
    found = {}
    for target in ("c", "python"):
        text = told(source, two(), law(), MOVE, target=target)
        if text == "no error":
            code = source(two(), law(), MOVE, target=target, control_period=2e-3, delay=1)
            found[target] = {sign: code.count(sign) for sign in "+-*/=<>[;("} | {"lines": code.count("\n")}
        else:
            found[target] = text
    return found


@scenarios
def refusals():
    robot, passive = two(), control.Passive(two())
    call: dict[str, Any] = {"duration": 0.01, "q": [0.1, 0.2]}
    return {
        "duration": told(simulate, robot, passive, duration=0.0),
        "step": told(simulate, robot, passive, **call, step=-1.0),
        "period": told(simulate, robot, passive, **call, control_period=1.5e-3),
        "integrator": told(simulate, robot, passive, **call, integrator="euler"),
        "every": told(simulate, robot, passive, **call, every=0),
        "delay": told(simulate, robot, passive, **call, delay=-1),
        "sampled": told(simulate, robot, passive, **call, continuous=True, delay=1),
        "vary": told(simulate, robot, law(), **call, vary={"kq": [1.0, 2.0]}),
        "shape": told(simulate, robot, law(), **call, vary={"kp": [1.0, 2.0, 3.0]}),
        "record": told(simulate, robot, passive, **call, record=("commands",)),
        "dtype": told(simulate, robot, passive, **call, dtype="float16"),
        "q": told(simulate, robot, passive, duration=0.1, q=[0.1]),
        "qd": told(simulate, robot, passive, **call, qd=[[0.1]]),
        "reference": told(simulate, robot, law(), [0.1, 0.2, 0.3], duration=0.1),
        "none": told(simulate, robot, law(), duration=0.1),
        "stabilization": told(simulate, robot, passive, **call, stabilization="none"),
        "accuracy": told(simulate, robot, passive, **call, accuracy=1e-3),
        "law": told(simulate, chain(), passive, duration=0.1, q=[0.1, 0.2, 0.3]),
        "free": told(simulate, floating(), passive, duration=0.1),
        "noise": told(Sensors, -1.0),
        "velocity": told(Sensors, velocity="estimated"),
        "cutoff": told(Sensors, cutoff=0.0),
        "bits": told(Drives, 1.0, bits=0),
        "volts": told(Drives, 1.0, volts=-1.0),
        "push": told(Push),
        "wrench": told(Push, wrench=[1.0, 2.0]),
        "times": told(Push, [1.0, 2.0], begin=1.0, end=0.0),
        "moves": told(Moves, np.zeros(2), np.zeros(3)),
        "breakaway": told(Plant, robot, breakaway=0.5),
        "target": told(source, robot, passive, target="fortran"),
    }


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
