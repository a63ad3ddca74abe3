"""Motions, inverse kinematics and plans of small robots beside the results that are recorded."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import motion
from linkwise.collision import Box, Sphere, World
from linkwise.motion.online import kernels
from recorded import Scenarios, everything, packed, told, warned
from recorded_robots import chain, coupled, elastic, limited, linkage, odd_joints, tree

scenarios = Scenarios("motion")
A, B, C = np.array([0.3, -0.4, 0.2]), np.array([-0.5, 0.7, 0.9]), np.array([0.1, 0.2, -0.3])


@cache
def arm() -> lw.Robot:
    """Three joints that turn, with limits."""
    return limited(lw.random_robot(47, 3, joints="R", friction=True))


@cache
def six() -> lw.Robot:
    return limited(lw.random_robot(53, 6, joints="R", friction=True))


def samples_of(found: Any, points: int = 13) -> dict[str, Any]:
    size = found.duration if np.isfinite(found.duration) else 3.0
    t = np.linspace(-0.1 * size, 1.1 * size, points)
    q, qd, qdd = found.at(t)
    return {"duration": found.duration} | packed({"q": q, "qd": qd, "qdd": qdd, "corners": found.corners()})


@scenarios
def polynomials_and_profiles():
    times, points = [0.0, 0.4, 1.1, 1.7], np.array([A, B, C, A + 0.2])
    ends = (np.array([0.3, -0.2, 0.1]), np.array([-0.4, 0.5, 0.2]))
    made = {
        "quintic": motion.quintic(A, B, 1.3, velocity=ends, acceleration=(ends[1], ends[0]), begin=0.2),
        "nonic": motion.nonic(A, B, 1.3, begin=-0.1),
        "ramp": motion.ramp(A, B, 0.7, begin=0.1),
        "hold": motion.hold(A, 0.8),
        "cubic": motion.cubic_spline(times, points, velocity=ends),
        "natural": motion.cubic_spline(times, points, velocity=None),
        "quintic spline": motion.quintic_spline(times, points, velocity=ends, acceleration=ends),
        "trapezoidal": motion.trapezoidal(A, B, velocity=[1.0, 0.9, 3.0], acceleration=2.1),
        "slower": motion.trapezoidal(A, B, velocity=1.1, acceleration=2.0, duration=3.1),
        "jerk": motion.jerk_limited(A, B, velocity=0.9, acceleration=2.0, jerk=[9.0, 7.0, 11.0]),
        "jerk slower": motion.jerk_limited(A, B, velocity=0.9, acceleration=2.0, jerk=9.0, duration=2.9),
        "short": motion.jerk_limited(A, A + 0.02, velocity=0.9, acceleration=2.0, jerk=9.0),
        "fourier": motion.FourierSeries(A, [B, C], [C, A], 2.3),
    }
    found: dict[str, Any] = {name: samples_of(each) for name, each in made.items()}
    quintic = made["quintic"]
    found["slowed"] = samples_of(motion.slowed(quintic, 1.7))
    found["stretched"] = samples_of(quintic.stretched(0.6))
    found["pieces"] = samples_of(motion.pieces(made["jerk"], 1e-3))
    found["endless"] = told(motion.pieces, made["fourier"])
    sampled = made["jerk"].sampled(20.0)
    found["sampled"] = packed(everything(sampled))
    found["by points"] = packed(everything(made["cubic"].sampled(points=7)))
    found["through samples"] = samples_of(motion.through_samples(sampled))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "motion.csv"
        motion.write_csv(file, quintic, rate=11.0)
        found["file"] = samples_of(motion.read_csv(file))
        found["head"] = file.read_text("utf-8").split("\n")[0]
    return found


@scenarios
def limits_and_fastest():
    fast = motion.quintic(A, B, 0.4)
    found: dict[str, Any] = {}
    for name, robot in (("arm", arm()), ("coupled", coupled())):
        move = fast if robot.dof == 3 else motion.quintic(np.zeros(robot.dof), 0.7 * np.ones(robot.dof), 0.4)
        found[f"{name} check"] = [everything(each) for each in motion.check(move, robot, acceleration=9.0)]
        found[f"{name} texts"] = " | ".join(str(each) for each in motion.check(move, robot, acceleration=9.0))
        for options in ({}, {"velocity": False}, {"speed_up": False}, {"torque": 60.0, "points": 301}):
            found[f"{name} {options}"] = samples_of(motion.fastest(move, robot, **options))
    found["require"] = told(motion.require, fast, arm(), acceleration=9.0)
    found["kept"] = told(motion.require, motion.slowed(fast, 20.0), arm(), torque=False)
    return found


@scenarios
def rotations():
    angles = np.array([[0.3, 0.2, -0.4], [0.1, 3.0, 0.2], [0.3, 0.0, 0.2], [-2.0, 1e-9, 0.1]])
    turned = motion.euler_zyz(angles)
    vectors = np.array(
        [[0.3, -0.2, 0.4], [0.0, 0.0, 0.0], [3.0, 0.5, 0.2], [1e-9, 0.0, 0.0], [0.0, np.pi, 0.0]]
    )
    return {
        "zyz": turned,
        "angles": [motion.zyz_angles(each) for each in turned[:3]],
        "about": motion.turn_about(vectors),
        "vectors": [motion.rotation_vector(each) for each in motion.turn_about(vectors)[:4]],
    }


@scenarios(tolerance=1e-7)
def straight_and_round_moves():
    robot = six()
    q = np.array([0.2, -0.3, 0.4, 0.1, -0.5, 0.6])
    at = robot.pose(q, "link6")
    there = at.copy()
    there[:3, 3] += (0.05, -0.03, 0.04)
    turned = at[:3, :3] @ motion.turn_about([0.1, 0.2, -0.1])
    made = {
        "line": motion.line(robot, at, there, speed=0.1, frame="link6", q=q),
        "profile": motion.line(robot, at, there, duration=0.9, profile="constant", frame="link6", q=q),
        "turned": motion.line(robot, at[:3, 3], there[:3, 3], duration=0.9, rotation=turned, frame="link6", q=q),
        "arc": motion.arc(
            robot, at, centre=at[:3, 3] + (0.05, 0.0, 0.0), axis=(0.1, 0.2, 1.0), angle=0.7, duration=1.1,
            end_rotation=turned, frame="link6", q=q,
        ),
    }  # fmt: skip
    found = {name: samples_of(each, 5) for name, each in made.items()}
    found["pose"] = made["arc"].pose(np.array([0.0, 0.3, 1.1]))
    return found


@scenarios
def inverse_kinematics():
    robot, q = six(), np.array([0.2, -0.3, 0.4, 0.1, -0.5, 0.6])
    target = robot.pose(q, "link6")
    far = target.copy()
    far[:3, 3] += 9.0
    loose = {"frame": "link6", "starts": 4, "tolerance": 1e-11}
    found = {
        "near": everything(motion.inverse_kinematics(robot, target, start=q + 0.1, **loose)),
        "position": everything(
            motion.inverse_kinematics(robot, target[:3, 3], start=q + 0.1, task="position", **loose)
        ),
        "several": everything(
            motion.inverse_kinematics(robot, np.array([target, target]), start=q - 0.1, limits=False, **loose)
        ),
        "far": told(motion.inverse_kinematics, robot, far, start=q, iterations=9, **loose),
        "frames": everything(
            motion.reach_frames(
                tree(), {"link5": tree().pose(0.2 * np.ones(5), "link5")[:3, 3]}, start=np.zeros(5), starts=2
            )
        ),
    }
    return {name: packed(value) if not isinstance(value, str) else value for name, value in found.items()}


@scenarios
def closed_forms():
    found: dict[str, Any] = {}
    q = {"puma560": [0.3, -0.4, 0.5, 0.6, 0.7, -0.8], "panda": [0.2, 0.3, -0.1, -1.5, 0.2, 1.4, 0.3]}
    for name, place in q.items():
        robot = lw.load(name)
        frame = robot.moving_joints[-1].child
        place = np.array([*place, *robot.neutral[len(place) :]])
        target = robot.pose(place, frame)
        branches = motion.closed_form_inverse_kinematics(
            robot, target, frame=frame, locked=None if len(place) == 6 else place[6]
        )
        found[name] = [
            np.sort(np.where(np.isfinite(branches), branches, 9.0), axis=0),
            motion.locked_joint(robot, frame),
        ]
        loose = {"frame": frame, "starts": 4, "start": place + 0.1}
        near = motion.inverse_kinematics(robot, target, **loose)
        found[f"{name} near"] = [
            near.q,
            float(np.max(near.position_error)) < 1e-9,
            bool(np.all(near.converged)),
        ]
    found["refused"] = told(motion.closed_form_inverse_kinematics, chain(), np.eye(4))
    return found


def time_optimal(robot: lw.Robot, path: Any, **options: Any) -> dict[str, Any]:
    found, warnings = warned(motion.time_optimal, robot, path, **options)
    t = np.linspace(0.0, found.duration, 9)
    usage = {name: np.asarray(value).max(axis=-1) for name, value in found.usage(t).items()}
    return samples_of(found, 9) | {"usage": packed(usage), "warnings": warnings}


@scenarios(tolerance=1e-6)
def shortest_times():
    robot, points = arm(), np.array([A, B, C])
    slow = {"cells": 20}
    return {
        "torque": time_optimal(robot, points, **slow),
        "frictionless": time_optimal(robot, points, friction=False, velocity=1.1, **slow),
        "acceleration": time_optimal(robot, points, acceleration=[3.0, 4.0, 2.0], torque=np.inf, **slow),
        "jerk": time_optimal(robot, points, acceleration=4.0, jerk=50.0, torque=np.inf, **slow),
        "tip": time_optimal(
            robot, points, tip_speed=0.3, frame="link3", start_speed=0.1, end_speed=0.05, **slow
        ),
        "path": time_optimal(robot, motion.quintic(A, B, 1.0), torque=[41.0, 43.0, 47.0], **slow),
        "too weak": told(motion.time_optimal, robot, points, torque=0.1, **slow),
    }


TASK = {
    "q": [0.3, -0.2, 0.9],
    "qd": [0.5, -1.7, 0.1],
    "qdd": [0.2, 1.0, -2.6],
    "target": [1.0, -0.4, 0.85],
    "velocity": [0.2, 0.0, -0.3],
    "acceleration": [0.0, 0.3, 0.1],
}


@scenarios
def online_moves():
    found: dict[str, Any] = {}
    for name, options in {
        "together": {},
        "alone": {"together": False},
        "one-sided": {"lowest_velocity": [-0.3, -0.9, -1.4], "lowest_acceleration": -1.7},
    }.items():
        online = motion.Online([1.1, 1.5, 0.7], [2.0, 3.1, 2.7], [7.0, 9.0, 31.0], **options)
        plan = online.plan(**{key: np.array([value, np.negative(value)]) for key, value in TASK.items()})
        times = [plan.duration, plan.durations, plan.jerks]
        found[name] = {"plan": packed(dict(enumerate(times))), "at": packed(dict(enumerate(plan.at(0.37))))}
        found[f"{name} move"] = samples_of(online.move(**TASK))
        found[f"{name} longer"] = samples_of(online.move(**TASK, duration=9.0))
        through = online.through([[0.5, 0.1, 0.8], [0.9, 0.4, 0.3], [1.0, 0.5, 0.1]], blend=0.2, q=TASK["q"])
        found[f"{name} through"] = samples_of(through) | {"times": through.times}
    online = motion.Online(1.0, 2.0, 5.0, dof=3)
    found["far"] = samples_of(online.move([0.0, 0.0, 0.0], target=[9.0, -4.0, 1e-4]))
    return found


@scenarios
def earliest_arrivals_of_many_states():
    rng = np.random.default_rng(3)
    count = 300

    def limit() -> np.ndarray:
        return 10.0 ** rng.uniform(-0.5, 0.5, count)

    high_v, low_v, high_a, low_a, jerk = limit(), -limit(), limit(), -limit(), 3.0 * limit()
    lanes = [
        rng.normal(size=count),
        1.5 * rng.uniform(low_v, high_v),
        1.5 * rng.uniform(low_a, high_a),
        rng.normal(size=count),
        np.where(rng.random(count) < 0.6, rng.uniform(low_v, high_v), 0.0),
        np.zeros(count),
        *(high_v, low_v, high_a, low_a, jerk),
        np.where(rng.random(count) < 0.5, rng.uniform(0.0, 5.0, count), 0.0),
    ]
    return {"T": kernels.earliest_kernel()(*(each[:, None] for each in lanes))}


@scenarios
def motions_of_elastic_joints():
    plan = motion.nonic(A, B, 1.3)
    made = motion.ElasticMotion(elastic(), plan)
    t = np.linspace(0.1, 1.2, 7)  # dry friction jumps where it rests
    return samples_of(made) | {"torques": made.torques(t), "refused": told(motion.ElasticMotion, arm(), plan)}


@scenarios(tolerance=1e-6)
def plans():
    robot = lw.load("two_link")
    world = World([Box((1.2, -0.3, -0.5), (1.5, 0.2, 0.5)), Sphere((-1.2, 0.9, 0.0), 0.2)])
    goal = robot.pose(np.array([1.4, 0.6]), robot.moving_joints[-1].child)
    found: dict[str, Any] = {}
    for name, end, options in (
        ("free", [0.4, 0.4], {"acceleration": 9.0, "torque": 90.0, "velocity": 2.0}),
        ("around", [-1.3, -0.4], {"timing": False, "clearance": 0.03}),
        ("colliding", [0.02, 0.0], {"timing": False}),
        ("pose", goal, {"timing": False}),
    ):
        start = [0.9, 0.5]
        plan = motion.plan(robot, start, end, world, seed=3, rounds=200, **options)
        found[name] = {
            "status": plan.status,
            "message": plan.message,
            "waypoints": np.zeros(0) if plan.waypoints is None else plan.waypoints,
            "clearance": plan.clearance,
            "duration": plan.motion.duration if plan.motion is not None else 0.0,
        }
    return found


@scenarios(tolerance=1e-6)
def plans_that_keep_a_direction_and_free_positions():
    robot, world = six(), World([Sphere((0.9, 0.1, 0.2), 0.15)])
    q = np.array([0.2, -0.3, 0.4, 0.1, -0.5, 0.6])
    at = robot.pose(q, "link6")
    keep = motion.Keep(axis=(0.0, 0.0, 1.0), direction=tuple(at[:3, 2]), tilt=0.2)
    here = at.copy()
    here[:3, 3] += (0.03, -0.02, 0.02)
    end = motion.inverse_kinematics(robot, here, start=q, frame="link6", starts=4).q
    made = motion.plan(robot, q, end, world, constraint=keep, timing=False, seed=2, rounds=200)
    reached = motion.inverse_kinematics(
        robot, here, start=q, frame="link6", starts=4, world=world, clearance=0.01
    )
    return {
        "status": f"{made.status} {made.message}",
        "waypoints": np.zeros(0) if made.waypoints is None else made.waypoints,
        "error": keep.error(robot, np.array([q, end, q + 0.3])),
        "level": motion.Keep(normal=(0.0, 0.6, 0.8), height=0.1).error(robot, np.array([q, end, q + 0.3])),
        "free": packed(everything(reached)),
    }


@scenarios
def refusals():
    robot = arm()
    return {
        "duration": told(motion.quintic, A, B, 0.0),
        "sizes": told(motion.quintic, A, B[:2], 1.0),
        "velocity": told(motion.trapezoidal, A, B, velocity=0.0, acceleration=1.0),
        "short": told(motion.trapezoidal, A, B, velocity=1.0, acceleration=1.0, duration=0.1),
        "times": told(motion.cubic_spline, [0.0, 0.0], [A, B]),
        "jerk": told(motion.jerk_limited, A, B, velocity=1.0, acceleration=1.0, jerk=-1.0),
        "factor": told(motion.slowed, motion.hold(A), 0.0),
        "limits": told(motion.fastest, motion.quintic(A, B, 1.0), chain()),
        "constraints": told(motion.check, motion.ramp(np.zeros(5), np.ones(5), 1.0), linkage()),
        "fastest constraints": told(motion.fastest, motion.ramp(np.zeros(5), np.ones(5), 1.0), linkage()),
        "points": told(motion.check, motion.hold(A), robot, points=1),
        "torque": told(motion.check, motion.hold(A), robot, torque="no"),
        "still": told(motion.fastest, motion.hold(A), robot),
        "joints": told(motion.fastest, motion.hold(A[:2]), robot),
        "task": told(motion.inverse_kinematics, six(), np.eye(4), task="poses"),
        "target": told(motion.inverse_kinematics, six(), np.eye(3)),
        "path": told(motion.time_optimal, robot, np.array([A])),
        "same": told(motion.time_optimal, robot, np.array([A, A])),
        "cells": told(motion.time_optimal, robot, np.array([A, B]), cells=0),
        "free": told(motion.time_optimal, odd_joints(), np.zeros((2, odd_joints().nq))),
        "online": told(motion.Online, 1.0, 2.0, 0.0, dof=2),
        "target velocity": told(
            motion.Online(1.0, 2.0, 3.0, dof=1).move, [0.0], target=[1.0], velocity=[2.0]
        ),
        "blend": told(motion.Online(1.0, 2.0, 3.0, dof=1).through, [[1.0]], blend=-1.0, q=[0.0]),
        "profile": told(motion.line, six(), np.eye(4), np.eye(4), duration=1.0, profile="cubic"),
        "plan": told(motion.plan, robot, A[:2], B),
        "keep": told(motion.Keep),
        "file": told(motion.read_csv, "nothing.csv"),
    }


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
