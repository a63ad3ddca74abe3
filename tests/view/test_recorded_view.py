"""What pages show of robots, as data, beside what is recorded."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import motion
from linkwise.geometry.skeleton import skeleton
from linkwise.simulate import simulate
from linkwise.view import bars, dials, live, motions, page_file, parts, placing
from linkwise.view.player import Recording
from recorded import Scenarios, packed, told
from recorded_robots import chain, coupled, floating, limited, odd_joints, touching, tree

scenarios = Scenarios("view")
ROBOTS = (chain, tree, coupled, odd_joints, floating, touching)


def robots() -> dict[str, lw.Robot]:
    made = {make.__name__: make() for make in ROBOTS}
    return made | {"limits": limited(lw.random_robot(53, 3, joints="R", friction=True))}


@scenarios
def sliders_and_bars():
    found: dict[str, Any] = {}
    for name, robot in robots().items():
        rows = dials.dials_of(robot)
        rng = np.random.default_rng(3)
        values = rng.uniform(-1.0, 1.0, len(rows))
        q = dials.positions(robot, values)
        torques, scale = rng.uniform(-9.0, 9.0, robot.dof), rng.uniform(3.0, 12.0, robot.dof)
        text = told(bars.bars, robot.coordinate_joints, torques[: len(robot.coordinate_joints)], scale)
        if text == "no error" or robot.dof == len(robot.coordinate_joints):
            text = bars.bars(robot.coordinate_joints, torques, scale, "torques")
        found[name] = {
            "dials": " ".join(f"{each.name} {each.symbol}" for each in rows),
            "ranges": [[each.lower, each.upper, *each.shown, each.inside(0.7)] for each in rows],
            "q": q,
            "back": dials.values_of(robot, q),
            "bars": text,
            "home": live.home(robot),
            "slider ranges": list(live.ranges(robot)),
        }
    found["tints"] = [list(bars.tint(part)) for part in (0.0, 0.3, 0.8, 1.0, 1.7)]
    return found


@scenarios
def loads_and_torques():
    found: dict[str, Any] = {"ball": [live.ball_radius(mass) for mass in (0.1, 1.0, 7.0)]}
    for name in ("limits", "chain", "tree"):
        robot = robots()[name]
        shown = live.Live(robot, robot.moving_joints[-1].child)
        shown.load = 0.7
        rng = np.random.default_rng(4)
        q, qd, qdd = rng.uniform(-0.6, 0.6, (3, robot.dof))
        shown.q = q
        found[name] = {
            "gravity": shown.gravity(),
            "torques": shown.torques(q, qd, qdd),
            "payload": [shown.payload(), shown.payload_torques(q)],
            "scale": shown.scale,
            "heaviest": live.heaviest_load(shown),
            "tip": shown.tip_pose(),
            "random": shown.random(3),
            "holding": shown.holding(),
        }
    return found


@scenarios
def motions_and_scenes():
    found: dict[str, Any] = {}
    for name in ("limits", "chain", "tree"):
        robot = robots()[name]
        q = np.full(robot.dof, 0.1)
        made = {"to and fro": motions.to_and_fro(robot, q), "points": motions.random_points(robot, q, seed=2)}
        moments = {}
        for key, each in made.items():
            t = np.linspace(0.0, each.duration, 9)
            moments[key] = packed(dict(enumerate(each.at(t)))) | {"duration": each.duration}
        bones = skeleton(robot)
        low, high = placing.scene_box(robot, bones, [], q)
        look, distance = placing.camera_of(low, high, 1.3)
        drawn = [
            *parts.skeleton_parts(robot, bones),
            *parts.mass_parts(robot, 1.0),
            *parts.held_parts(robot, 1.0),
        ]
        found[name] = moments | {
            "speeds": motions.easy_speeds(robot),
            "box": [low, high, look, distance, placing.floor_of(low, high, np.array([0.0, 0.0, 1.0]), 1.3)],
            "parts": packed([np.asarray(each.mesh.vertices) for each in drawn if hasattr(each, "mesh")]),
            "count": len(drawn),
            "labels": str(parts.group_labels(robot, 1.0, True)),
            "ellipsoid": parts.ellipsoid_scale(robot, 1.0),
        }
    t = np.array([0.0, 0.1, 0.3])
    run = Recording(t, np.outer(t, [1.0, 2.0]), np.outer(t, [3.0, 4.0]) + 1.0)
    found["recording"] = [list(run.at(moment)[:2]) for moment in (-1.0, 0.05, 0.2, 9.0)]
    return found


def _page(robot: lw.Robot, **options: Any) -> dict[str, Any]:
    """What a page holds; of code only how much there is."""
    text = page_file(robot, **options)
    packed_data = max(re.findall(r"[A-Za-z0-9+/=]{400,}", text), key=len)
    data = json.loads(gzip.decompress(base64.b64decode(packed_data)))
    for volatile in ("version", "modules", "file"):
        data.pop(volatile)
    data["sources"] = {
        name: {sign: code.count(sign) for sign in "+-*/=;"} for name, code in data["sources"].items()
    }
    return _numbers(data)


def _numbers(value: Any) -> Any:
    """Arrays of numbers from base64 and from lists; other long texts by their length."""
    if isinstance(value, dict):
        return {str(key): _numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(each, int | float) for each in value):
            return np.asarray(value, float)
        return {str(k): _numbers(each) for k, each in enumerate(value)}
    return float(len(value)) if isinstance(value, str) and len(value) > 200 else value


@scenarios
def pages():
    robot = lw.load("two_link")
    move = motion.quintic([0.0, 0.0], [0.4, 0.3], 0.5)
    arm = touching()
    run = simulate(arm, lambda t, q, qd, r: 0.0 * q, q=[0.3, 1.2, -0.5], duration=0.02, step=2e-3, warn=False)
    return {
        "moved": packed(_page(robot, motion=move, dark=True)),
        "tree": packed(_page(tree(), frame=tree().moving_joints[-1].child)),
        "free": packed(_page(floating())),
        "simulated": packed(_page(arm, result=run)),
        "frame": told(page_file, robot, frame="hand"),
    }


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
