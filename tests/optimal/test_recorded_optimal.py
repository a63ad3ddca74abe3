"""Problems of optimal motion, their stages and their solutions, beside the results that are recorded."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import linkwise as lw
from four_legs import four_legs, round_feet
from linkwise import optimal
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import trace
from linkwise.optimal import gaits
from linkwise.optimal.path_integral import weights
from linkwise.optimal.walking import planner
from linkwise.optimal.walking.feet import feet_of
from recorded import Scenarios, everything, packed, told
from recorded_robots import chain, floating, limited, two_link, with_laws

scenarios = Scenarios("optimal")
POSE = lw.Transform.from_rpy((0.2, -0.3, 0.4), (0.5, 0.6, -0.7)).matrix


@cache
def two() -> lw.Robot:
    names = {"joint1.viscous_friction": 0.4, "joint2.coulomb_friction": 0.3, "joint1.rotor_inertia": 0.1}
    return limited(two_link()).with_parameters(names)


@cache
def legs() -> lw.Robot:
    """A body on two legs of one joint each, whose feet are links."""
    links = [lw.Link("body", lw.Inertia.from_com(5.0, (0.01, 0.02, 0.1), (0.1, 0.12, 0.05)))]
    joints = []
    for side, y in (("left", 0.1), ("right", -0.12)):
        parent, at = "body", (0.0, y, 0.0)
        for part in ("hip",):
            own = f"{side}_{part}"
            links.append(lw.Link(own, lw.Inertia.from_com(0.6, (0.01, 0.0, -0.1), (3e-3, 4e-3, 1e-3))))
            limits = lw.Limits(-2.0, 2.0, 7.0, 30.0)
            axis = (0.0, 1.0, 0.0)
            joints.append(
                lw.Joint(
                    f"{own}_joint", "revolute", parent, own, lw.Transform.from_rpy(at), axis, limits=limits
                )
            )
            parent, at = own, (0.0, 0.01, -0.2)
        links.append(lw.Link(f"{side}_foot"))
        joints.append(lw.Joint(f"{side}_end", "fixed", parent, f"{side}_foot", lw.Transform.from_rpy(at)))
    return lw.Robot("two legs", links, joints).with_base("floating")


STAND = np.array([0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0, 0.3, -0.2])


def own(q: Any, qd: Any, u: Any, factor: Any) -> Any:
    return factor[0] * lw.cos(q[0]) * q[1] + 0.5 * (qd @ qd) * q[0] + u[0] * u[1]


def problems() -> dict[str, Any]:
    robot, feet = two(), ["left_foot", "right_foot"]
    target = floating().random(np.random.default_rng(3))
    tip = [
        optimal.TipVelocity(1.0, 0.5),
        optimal.TipTracking(POSE, 2.0, 0.5),
        optimal.Smoothness(1e-3),
        optimal.Smoothness(2e-3, "torque", name="rate"),
        optimal.SphereAvoidance([0.3, 0.1, 0.2], margin=3.0),
        optimal.SphereClearance([[0.4, 0.1, 0.0], [0.1, 0.9, 0.0]], [0.1, 0.2], margin=0.7, weight=0.3),
    ]
    body = [
        optimal.JointTracking(target, 0.3, velocity=0.1, velocity_weight=0.7),
        optimal.Effort([1e-2, 2e-2, 3e-2], 0.4),
        optimal.CenterOfMass([0.1, 0.2, 0.3], [1.0, 2.0, 3.0]),
        optimal.TipTracking(POSE[:3, 3], [0.7, 0.2, 0.3], frame="link3"),
    ]
    step = [
        optimal.Effort(1e-3),
        optimal.JointTracking(STAND, 1.0, velocity=0.0),
        optimal.ContactForces(3.0, weight=1e-3),
        optimal.ConePenalty(0.3, 1e-3, facets=6),
        optimal.Smoothness(1e-4),
    ]
    held = optimal.ContactSchedule(feet, [[1, 1], [1, 0], [0, 1], [0, 0]], damping=30.0)
    sole = optimal.ContactSchedule(["left_foot"], surface=True, hold="acceleration")
    timed = [optimal.Smoothness(1e-3), optimal.Effort(0.1), optimal.Duration(0.7)]
    short = {"horizon": 4, "step": 0.013}
    return {
        "tip": lambda: optimal.Problem(
            robot,
            costs=tip,
            terminal=[optimal.TipTracking(POSE, 10.0, 5.0)],
            limits=[optimal.TipLimits(-0.1, 0.2), optimal.KeepOut([0.3, 0.2, 0.2], 0.1)],
            state_limits=True,
            **short,
        ),
        "own": lambda: optimal.Problem(robot, costs=[optimal.Own(own, {"factor": 2.0})], integrator="rk4", **short),
        "floating": lambda: optimal.Problem(floating(), costs=body, terminal=[optimal.CenterOfMass(0.3, 2.0)], **short),
        "laws": lambda: optimal.Problem(
            with_laws(), costs=[optimal.ScaledEffort(np.diag([1.0, 2.0, 3.0]), 0.2)], torque_limits=20.0, **short
        ),
        "timed": lambda: optimal.Problem(
            robot, costs=timed, timings=optimal.Timings(0.1, 3.0, phases=[0, 2]), horizon=4, integrator="rk4"
        ),
        "held": lambda: optimal.Problem(
            legs(), start=(STAND, np.zeros(8)), costs=step, limits=[optimal.FrictionCone(0.6)], contacts=held,
            friction=False, **short,
        ),
        "sole": lambda: optimal.Problem(
            legs(), start=(STAND, np.zeros(8)), costs=step[:2], limits=[optimal.FrictionCone(0.6, (0.1, 0.07))],
            contacts=sole, **short,
        ),
        "touching": lambda: optimal.Problem(
            legs().with_contacts([lw.Contact("left_foot", radius=0.01), lw.Ground(0.7)]),
            start=(STAND, np.zeros(8)), costs=step[:2], through_contact=optimal.ThroughContact(0.2), **short,
        ),
    }  # fmt: skip


def stages(problem: optimal.Problem, numbers: tuple[int, ...]) -> dict[str, Any]:
    """Values of stages and their derivatives, computed by the interpreter."""
    nm, n, nx, nu = problem.nm, problem.nx + problem.nu, problem.nx, problem.nu
    inputs = {"x": problem.ns, "u": nu, "p": problem.np} | ({"m": nm} if nm else {})

    def values(x: Any, u: Any, p: Any, m: Any = ()) -> tuple[Any, ...]:
        moved = problem.linearised(x, u, p)
        first, last = problem.stage_quadratic(x, u, p, m), problem.terminal_quadratic(x, p, m)
        limits = problem.stage_limits(x, p)
        limits = [*limits, *problem.force_limits(x, u, p)]
        costs = [problem.stage_cost(x, u, p), problem.terminal_cost(x, p)]
        parts = (*moved.matrices(), first.gradient, first.hessian, last.gradient, last.hessian)
        return (*parts, problem.next_state(x, u, p), costs, [*limits, 0.0])

    shapes = {"A": (nx, nx), "B": (nx, nu), "g": (n,), "H": (n, n), "g_end": (nx,), "H_end": (nx, nx)}
    at, row = problem.x0.tolist(), problem.p[0].tolist()
    count = len(problem.stage_limits(at, row)) + len(problem.force_limits(at, [1.0] * nu, row))
    shapes |= {"next": (problem.ns,), "costs": (2,), "limits": (count + 1,)}
    program = trace(values, inputs, shapes)
    found = {}
    for k in numbers:
        x, u, m = _given(problem, k)
        results = interpret.run(program, x, u, problem.p[k], *([m] if nm else []))
        found[f"stage {k}"] = packed(dict(zip(shapes, results, strict=True)))
    return found


def _given(problem: optimal.Problem, k: int) -> tuple[np.ndarray, ...]:
    """A state, torques and multipliers."""
    d, rng = problem.dynamics, np.random.default_rng(k + 1)
    near = problem.robot.integrate(problem.robot.neutral, 0.4 * rng.normal(size=d.dof))
    x = problem.state(near, rng.normal(size=d.dof))
    x[d.nq + d.dof : d.nq + d.dof + d.remembered] = rng.normal(size=d.remembered)
    u = rng.normal(size=problem.nu)
    if d.timed:
        x[-1], u[-1] = 0.3, 0.2
    return x, u, np.r_[rng.uniform(0, 1, max(0, problem.nm - 2)), 10.0, 0.1]


def _of_problem(name: str) -> Any:
    def scenario() -> dict[str, Any]:
        problem = problems()[name]()
        rng = np.random.default_rng(5)
        q, qd = 0.3 * rng.normal(size=(2, problem.robot.dof))
        at = problem.robot.integrate(problem.robot.neutral, q)
        u = 9.0 * rng.normal(size=problem.nu)
        x = problem.state(at, qd)
        found = stages(problem, (0, 1, 3) if name == "held" else (0,))
        sizes = [problem.nu, problem.nx, problem.ns, problem.np, problem.nm, problem.boxed]
        kept = problem.clamped(u.tolist(), problem.p[0].tolist()) if problem.boxed else []
        return found | {
            "sizes": [float(size) for size in sizes],
            "parameters": packed({key: problem.p[:, problem.where(key)] for key in problem.parameters}),
            "clamped": [float(value) for value in kept],
            "differences": problem.differences(x, problem.x0),
            "limits": " | ".join(str(words) for words in problem.limit_words)[:2000],
            "key": problem.key() != problem.with_barrier().key() if problem.nm else "no limits",
        }

    scenario.__name__ = f"stages_of_{name}"
    return scenario


for _name in ("tip", "own", "floating", "laws", "timed", "held", "sole"):
    scenarios(_of_problem(_name))


def reach(**options: Any) -> optimal.Problem:
    goal = optimal.JointTracking([0.5, -0.4], [20.0, 15.0], velocity=0.0, velocity_weight=[1.0, 0.7])
    given: dict[str, Any] = {
        "horizon": 8,
        "step": 0.03,
        "start": ([0.1, 0.2], [0.3, -0.1]),
        "torque_limits": [30.0, 8.0],
        "limits": [optimal.StateLimits(position=False, velocity=1.5)],
    }
    costs = [goal, optimal.Effort(1e-3), optimal.Smoothness(1e-4)]
    return optimal.Problem(two(), costs=costs, terminal=[goal], **(given | options))


def solution(found: Any) -> dict[str, Any]:
    numbers = {name: getattr(found, name) for name in ("q", "qd", "tau", "gains", "costs")}
    words = [str(each) for each in (*found.violations, *found.missed)]
    return packed(numbers) | {
        "state": [found.cost, float(found.converged), float(found.iterations), float(found.gap < 1e-8)],
        "words": " | ".join(words),
        "message": found.message,
    }


@scenarios(tolerance=1e-6)
def solutions():
    found = {
        "limits": solution(optimal.solve(reach())),
        "few": solution(optimal.solve(reach(), iterations=2)),
        "free": solution(optimal.solve(reach(limits=(), torque_limits=False))),
        "states": solution(optimal.solve(reach(limits=(), state_limits=True, horizon=4))),
        "timed": solution(
            optimal.solve(
                optimal.Problem(
                    two(), costs=[optimal.Effort(0.01), optimal.Duration(3.0)], horizon=6,
                    start=([0.1, 0.2], [0.0, 0.0]),
                    terminal=[optimal.JointTracking([0.5, -0.4], 300.0, velocity=0.0, velocity_weight=30.0)],
                    timings=optimal.Timings(0.05, 2.0),
                ),
                iterations=30,
            )
        ),
    }  # fmt: skip
    starts = (np.array([[0.1, 0.2], [0.3, -0.9]]), np.array([[0.3, -0.1], [0.0, 0.0]]))
    many = optimal.solve_many(
        reach(), start=starts, values={"effort.weight": [[1e-3, 2e-3], [2e-3, 1e-3]]}, iterations=20
    )
    names = ("states", "torques", "gains", "cost", "violation")
    numbers = {name: getattr(many, name) for name in names}
    return found | {"many": packed(numbers) | {"done": [many.converged, many.failed, many.steps_taken]}}


@scenarios(tolerance=1e-6)
def sampled_plans():
    problem = reach(limits=[optimal.StateLimits(position=False, velocity=3.0)])
    sampler = optimal.Mppi(problem, samples=40, temperature=5.0, noise=[1.5, 0.4], hold=2, seed=3)
    first = sampler.plan([0.1, 0.2], [0.3, -0.1])
    again = sampler.plan([0.1, 0.2], [0.3, -0.1], first.u, draw=1, iterations=2)
    return {
        "first": packed(everything(first)),
        "again": packed(everything(again)),
        "shifted": sampler.shifted(again.u, 0.05),
        "limited": sampler.limited(10.0 * again.u),
        "exponential": [weights.exponential(np.array([0.0, -1.0, -3.3, -50.0]))],
    }


@scenarios(tolerance=1e-6)
def predictive_control():
    law = optimal.Predictive(two(), horizon=8, step=0.02, frequency=9.0)
    law.aim({"joints.target": [0.4, -0.5]})
    q, qd, said, torques = np.array([0.0, 0.1]), np.zeros(2), [], []
    for k in range(8):
        tau = np.asarray(law(0.004 * k, q, qd), float)
        if k == 5:
            tau = np.asarray(law(0.004 * k + 0.001, q + np.nan, qd), float)
        torques.append(tau)
        said.append(f"{law.status} {law.reason}")
        q, qd = q + 0.004 * qd, qd + 0.03 * tau / 8.0
    counts = [float(law.failures), float(law.samples)]
    made = optimal.reaching(two(), horizon=5, step=0.03, frequency=7.0, tip=True)
    tables = {name: made.p[:, made.where(name)] for name in made.parameters}
    return {"tau": torques, "said": said, "counts": counts, "reaching": packed(tables)}


@scenarios
def gaits_and_feet():
    found: dict[str, Any] = {}
    times = np.linspace(0.0, 1.0, 11)
    for name in ("trot", "walk", "pace", "bound"):
        gait = optimal.Gait.named(name, swing=0.21, stance=0.07)
        held = [[float(gait.held(t, foot)) for foot in range(gait.feet)] for t in times.tolist()]
        since = [[float(gait.since_lift_off(t, foot)) for foot in range(gait.feet)] for t in times.tolist()]
        found[name] = {"held": held, "since": since, "period": gait.period}
    standing = legs().with_contacts(
        [lw.Contact("left_foot", radius=0.01), lw.Contact("right_foot", radius=0.01), lw.Ground(0.6)]
    )
    feet = feet_of(standing, None, STAND, None)
    found["feet"] = {
        name: value for name, value in vars(feet).items() if isinstance(value, np.ndarray | tuple | float)
    }
    timings = optimal.Timings([0.1, 0.3], [1.0, 2.0], phases=[0, 3])
    found["timings"] = [timings.begins(5), *timings.limits(5)]
    schedule = optimal.ContactSchedule(["left_foot", "right_foot"], [[1, 0], [0, 1]], hold="acceleration")
    found["schedule"] = [schedule.table(2), float(schedule.size), float(schedule.rows)]
    return found


@scenarios
def ready_made_problems():
    """All numbers of gaits' problems: targets, weights, which feet stand."""
    robot, found = four_legs().with_contacts([*round_feet(), lw.Ground(0.7)]), {}
    usual: dict[str, Any] = {"step": 0.04}
    for name, made in {
        "trot": gaits.trot(robot, (0.3, 0.1, 0.2), **usual, height=0.09, friction=0.6),
        "walk": gaits.walk(robot, (0.2, -0.1, 0.3), **usual, swing=0.16, stance=0.05, torque_limits=False),
        "timed": gaits.trot(robot, (0.3, 0.0, 0.0), **usual, cycles=2, timings=(0.5, 2.0), price=0.7),
    }.items():
        found[name] = packed(
            {key: made.p[:, made.where(key)] for key in made.parameters} | {"x0": made.x0}
        ) | {
            "sizes": [float(size) for size in (made.horizon, made.nu, made.ns, made.nm)],
            "costs": " ".join(
                f"{type(cost).__name__} {cost.label}" for cost in (*made.costs, *made.terminal)
            ),
            "limits": " | ".join(str(words) for words in made.limit_words)[:2000],
        }
    return found


@scenarios
def plans_of_walking_robots():
    """What every stage of a plan aims at, before anything is solved."""
    robot, found = lw.quadruped(), {}
    for name, velocity in (("trot", (0.3, 0.1, 0.4)), ("walk", (-0.2, 0.0, -0.3))):
        walk = optimal.Walking(robot, name, velocity, begin=0.1)
        orders = {"walks": (0.1, 0.9), "velocity": walk.velocity, "drift": (0.01, -0.02), "time": (0.13,)}
        orders |= {"path": (0.1, 0.2, 0.3), "trunk": (0.12, 0.18, 0.33), "feet": walk.feet.places.ravel()}
        table = planner.table_of(walk.problem, walk.stages, orders)
        _, torques = planner.guess_of(walk.problem, walk.feet.stand, table)
        problem = walk.problem
        found[name] = packed(
            {key: table[:, problem.where(key)] for key in problem.parameters} | {"torques": torques}
        )
        ways = [walk.stages.swung([0.1, 0.2, 0.0], [0.3, 0.1, 0.05], at) for at in (0.0, 0.3, 0.7, 1.0)]
        found[name]["swung"] = np.array(ways, float).ravel()
    return found


@scenarios
def refusals():
    robot, effort = two(), optimal.Effort(1.0)

    def problem(**options: Any) -> str:
        return told(optimal.Problem, **({"robot": robot, "costs": [effort], "horizon": 3} | options))

    return {
        "horizon": problem(horizon=0),
        "step": problem(step=-1.0),
        "start": problem(start=([0.1], [0.2])),
        "integrator": problem(integrator="euler"),
        "costs": problem(costs=[3.0]),
        "names": problem(costs=[effort, optimal.Effort(2.0)]),
        "weight": problem(costs=[optimal.Effort([1.0, 2.0, 3.0])]),
        "negative": problem(costs=[optimal.Effort(-1.0)]),
        "target": problem(costs=[optimal.JointTracking([1.0])]),
        "frame": problem(costs=[optimal.TipTracking(POSE, frame="tip")]),
        "pose": problem(costs=[optimal.TipTracking(np.ones((4, 4)))]),
        "of": problem(costs=[optimal.Smoothness(1.0, "jerk")]),
        "forces": problem(costs=[optimal.ContactForces()]),
        "cone": problem(limits=[optimal.FrictionCone()]),
        "torque": problem(torque_limits=[1.0, -2.0]),
        "friction": told(optimal.FrictionCone, -1.0),
        "duration": problem(costs=[optimal.Duration()]),
        "timings": told(optimal.Timings, 2.0, 1.0),
        "gait": told(optimal.Gait.named, "gallop"),
        "swing": told(optimal.Gait.named, "trot", swing=0.0),
        "smoothing": told(optimal.ThroughContact, -1.0),
        "contacts": problem(contacts=optimal.ContactSchedule(["foot"])),
        "hold": told(optimal.ContactSchedule, ["a"], hold="force"),
        "samples": told(optimal.Mppi, reach(limits=()), samples=0),
        "temperature": told(optimal.Mppi, reach(limits=()), temperature=0.0),
        "aim": told(optimal.Predictive(two(), horizon=4).aim, {"joints.targets": [0.1, 0.2]}),
        "values": told(reach().with_values, {"effort.weight": [1.0, 2.0, 3.0, 4.0, 5.0]}),
        "iterations": told(optimal.solve, reach(), iterations=0),
        "states": told(optimal.solve, reach(), states=np.zeros((2, 2))),
        "chain": told(optimal.reaching, chain(), frequency=-1.0),
    }


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
