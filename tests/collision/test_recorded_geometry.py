"""Shapes, distances, checks of collisions and the geometry of files beside the results that are recorded."""

from __future__ import annotations

import contextlib
import re
import struct
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import collision
from linkwise.collision import Box, Cuboid, HalfSpace, HeightField, PointCloud, Rod, Sphere, World, fit
from linkwise.collision.heights import lowest_points
from linkwise.collision.spheres import _Triangles
from linkwise.geometry import simplify, solids
from linkwise.geometry.keyframes import keyframe_position
from linkwise.geometry.posture import bent_position, first_position, up_of
from linkwise.geometry.skeleton import held_points, skeleton
from linkwise.geometry.visuals import read_looks
from recorded import Scenarios, everything, packed, told, warned
from recorded_robots import chain, floating, limited, odd_joints, states, tree
from rich_files import ARM, FREE

scenarios = Scenarios("geometry")
TURNED = lw.Transform.from_rpy((0, 0, 0), (0.3, -0.2, 0.5)).rotation


@cache
def arm() -> lw.Robot:
    return limited(lw.random_robot(53, 4, joints="R"))


@cache
def world() -> World:
    heights = 0.1 * np.sin(np.arange(12.0)).reshape(3, 4)
    return World(
        [
            Box((0.4, -0.3, 0.1), (0.7, 0.2, 0.5), None),
            Cuboid((-0.5, 0.4, 0.2), (0.3, 0.2, 0.4), TURNED, "turned"),
            Sphere((0.1, 0.6, 0.4), 0.15, "ball"),
            Rod((0.2, -0.6, 0.0), (0.4, -0.5, 0.6), 0.05),
            HalfSpace((0.1, 0.0, 1.0), -0.4),
            HeightField(heights, 0.2, (-0.3, -0.4), 0.3),
            PointCloud([[0.3, 0.3, 0.6], [0.31, 0.33, 0.6], [-0.2, 0.1, 0.9]], 0.03),
        ]
    )


@scenarios
def fits():
    """Capsules around points, balls and meshes, and what is left where there are fewer of them."""
    rng = np.random.default_rng(5)
    points, radii = rng.normal(size=(23, 3)) * (1.0, 0.4, 0.2), rng.uniform(0.0, 0.2, 23)
    pieces = [fit.enclosing_capsule(points[k : k + 5] + 0.1 * k, radii[k : k + 5]) for k in range(0, 20, 4)]
    bent = np.concatenate([[[x, 0.0, z], [x, 0.1, z]] for x, z in ((0.0, 0.0), (1.0, 0.02), (1.03, 1.1))])
    faces = np.array([[0, 1, 2], [1, 3, 2], [2, 3, 4], [3, 5, 4]])
    mesh = solids.Mesh(bent, faces)
    robot = tree()
    return {
        "points": everything(fit.enclosing_capsule(points)),
        "balls": everything(fit.enclosing_capsule(points, radii)),
        "pieces": [everything(each) for each in pieces],
        "joined": everything(fit.joined(pieces)),
        "fewer": [everything(each) for each in fit.reduced(pieces, 2)],
        "wasteful": [everything(each) for each in fit.reduced(pieces, 5, 3.0)],
        "volumes": [fit.volume(each) for each in pieces],
        "contains": [
            float(fit.contains(a, b)) for a in (fit.joined(pieces), *pieces[:2]) for b in pieces[:2]
        ],
        "mesh": [everything(each) for each in fit.mesh_capsules(mesh, 3)],
        "whole": [everything(each) for each in fit.mesh_capsules(mesh, 1)],
        "edges": fit.divided_edges(bent[faces], 0.3),
        "lowest": lowest_points(robot, states(robot, 4)["q"]),
    }


@scenarios
def distances_of_shapes():
    rng = np.random.default_rng(3)
    found: dict[str, Any] = {}
    for k in range(6):
        a, b, c, d = rng.normal(size=(4, 3)).tolist()
        first, second = collision.Segment(a, b, _square(b)), collision.Segment(c, d, _square(d))
        half = np.abs(rng.normal(size=3)).tolist()
        found[str(k)] = [
            float(collision.box_distance(a, half)),
            float(collision.plane_distance(a, b, 0.3)),
            float(collision.sphere_distance(a, b)),
            float(collision.segment_distance(first, second)),
            float(collision.segment_box_distance(first, half)),
            *(float(x) for x in first.at(0.3)),
        ]
    found["parallel"] = float(
        collision.segment_distance(
            collision.Segment([0, 0, 0], [1, 0, 0], 1.0), collision.Segment([3, 1, 0], [2, 0, 0], 4.0)
        )
    )
    return found


def _square(x: Any) -> float:
    return float(sum(each * each for each in x))


@scenarios(tolerance=1e-7)
def checks_of_robots():
    found: dict[str, Any] = {}
    for robot in (arm(), tree()):
        q = states(robot, 6)["q"]
        checks = collision.validity_of(robot)
        away = checks.clearances(q, world())
        near, slopes = checks.distance_gradient(q, world())
        found[robot.name] = {
            "touching": robot.in_collision(q, world()).astype(float),
            "near": robot.in_collision(q, world(), clearance=0.2).astype(float),
            "alone": robot.in_collision(q).astype(float),
            "world": away.world,
            "itself": away.itself,
            "distance": checks.distance(q, world()),
            "gradient": packed({"near": near, "slopes": slopes}),
            "words": " | ".join(str(each) for each in checks.words)[:3000],
            "speeds": packed(dict(enumerate(checks.speed_factors_between(q[0] - 0.2, q[0] + 0.3)))),
        }
    spheres = collision.spheres_of(arm(), count=5, margin=0.02)
    found["spheres"] = packed(
        {"b": spheres.body, "c": spheres.centre, "r": spheres.radius, "e": spheres.excess}
    )
    return found


@scenarios(tolerance=1e-7)
def clearances():
    robot = arm()
    room = collision.Room(0.05, Box((-2, -2, 0), (2, 2, 2)), [Box((0.2, 0.2, 0.0), (0.5, 0.5, 0.9))], 0.03)
    found: dict[str, Any] = {}
    q = states(robot, 4)["q"]
    for name, clearance in {
        "alone": collision.Clearance(robot),
        "room": collision.Clearance(robot, room),
        "tool": collision.Clearance(robot, collision.Room(None, links=False, tool=collision.Tool(0.05, 0.2))),
    }.items():
        contact = clearance.contact(q)
        found[name] = {
            "distances": packed({"": clearance.distances(q)}),
            "least": clearance.least(q),
            "words": " | ".join(str(each) for each in clearance.words)[:3000],
            "contact": "none"
            if contact is None
            else f"{contact.first} {contact.second} {contact.distance:.6f}",
            "kinds": {k: each.distance for k, (each, _) in clearance.by_kind(q).items()},
        }
        if found[name]["words"]:
            weights = np.ones(np.shape(clearance.distances(q)))
            found[name]["gradient"] = clearance.gradient(q, weights)
    shapes = collision.shapes_of(robot, radius=0.04)
    found["shapes"] = packed(everything(shapes))
    return found


@scenarios
def worlds():
    made = world()
    found: dict[str, Any] = {
        name: packed({key: np.asarray(value) for key, value in made.rounded(name).items()})
        for name in ("float64", "float32")
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "world.toml"
        found["written"] = told(collision.write_world, made, file)
        if file.is_file():
            again = collision.read_world(file)
            found["read"] = packed(
                {key: np.asarray(value) for key, value in again.rounded("float64").items()}
            )
            found["lines"] = float(file.read_text("utf-8").count("\n"))
    found["errors"] = [
        told(Sphere, (0, 0, 0), -1.0),
        told(Cuboid, (0, 0), (1, 1, 1)),
        told(Cuboid, (0, 0, 0), (1, -1, 1)),
        told(Cuboid, (0, 0, 0), (1, 1, 1), np.ones((3, 3))),
        told(HalfSpace, (0, 0, 0)),
        told(Rod, (0, 0, 0), (0, 0, 1), -0.1),
        told(HeightField, [1.0, 2.0], 0.1),
        told(PointCloud, [[1.0, 2.0]]),
        told(World, [3.0]),
        told(Box, (1, 0, 0), (0, 1, 1)),
        told(collision.Room, clearance=-1.0),
        told(collision.validity_of(arm()).in_collision, [0.1, 0.2]),
    ]
    return found


@scenarios
def meshes_of_solids():
    made = {
        "capsule": solids.capsule(
            np.array([0.1, 0.2, 0.3]), np.array([0.3, -0.2, 0.5]), 0.1, sides=6, rings=2
        ),
        "cylinder": solids.cylinder(0.2, 0.7, bevel=0.02, sides=8),
        "sphere": solids.sphere(0.3, sides=8),
        "ring": solids.ring(0.4, 0.05, sides=8),
        "box": solids.box((0.1, 0.2, 0.3)),
        "turned": solids.turned(np.array([0.1, 0.3, 0.2]), np.array([0.0, 0.2, 0.5]), 5),
    }
    found = {name: packed(_arrays(mesh)) for name, mesh in made.items()}
    many = solids.joined(list(made.values()))
    found["joined"] = packed(_arrays(many))
    found["simpler"] = packed(_arrays(simplify.simplified(solids.sphere(1.0), 100)))
    found["shared"] = [float(x) for x in simplify.shared_out(list(made.values()), 60)]
    turned = solids.from_z_to(np.array([0.1, 0.2, -0.9]), (1.0, 2.0, 3.0))
    return found | {"turn": turned.matrix, "down": solids.from_z_to(np.array([0.0, 0.0, -1.0])).matrix}


def _arrays(value: Any) -> dict[str, np.ndarray]:
    return {
        name: np.asarray(each, float) for name, each in vars(value).items() if isinstance(each, np.ndarray)
    }


@scenarios
def postures_and_skeletons():
    found: dict[str, Any] = {}
    for make in (arm, chain, tree, floating, odd_joints):
        robot = make()
        model = robot
        bones = skeleton(model)
        parts = [_arrays(each) for each in (*bones.capsules, *bones.hubs)]
        found[make.__name__] = {
            "bent": bent_position(model),
            "first": first_position(model),
            "up": up_of(model),
            "bones": packed(parts) if parts else "none",
            "held": [place.matrix for _, place in held_points(model)],
        }
    return found


KEYS = """
  <keyframe>
    <key name="other" qpos="0.1 0.2 0.3 0.4 0.01 0.02"/>
    <key name="home" qpos="0.5 0.1 -0.3 0.2 0.03 0.04"/>
  </keyframe>
</mujoco>"""


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        yield


@scenarios
def geometry_of_files():
    """Looks, shapes that touch, and positions of keyframes."""
    found: dict[str, Any] = {}
    with folder():
        _stl("part.stl")
        for name, text in {
            "arm.xml": ARM.replace("</mujoco>", KEYS),
            "free.xml": FREE,
            "looks.urdf": LOOKS,
        }.items():
            Path(name).write_text(text, encoding="utf-8")
            robot, said = warned(lw.load, f"./{name}")
            looks = {}
            for purpose in ("visual", "collision"):
                read, more = warned(read_looks, f"./{name}", purpose=purpose)
                looks[purpose] = {"parts": packed(_parts(read)), "said": more}
            found[name] = {"said": said, "looks": looks, "key": _or_none(keyframe_position(robot))}
            Path(name).write_text(re.sub(r"<collision>.*missing.*", "", text), encoding="utf-8")
            touching, warnings = warned(lw.load, f"./{name}", contact=True)
            found[name] |= {"contacts": everything(touching), "warnings": warnings}
            solid, said = warned(_Triangles, robot, ())
            parts = {"surfaces": solid.surfaces, "triangles": solid.triangles, "balls": solid.balls}
            found[name] |= {"solids": packed(parts), "lacking": str(sorted(solid.lacking)), "problems": said}
    return found


def _or_none(value: Any) -> Any:
    return "none" if value is None else value


def _parts(looks: Any) -> list[Any]:
    return [(_arrays(visual.part.mesh), visual.link, visual.pose.matrix) for visual in looks.visuals]


def _stl(name: str) -> None:
    mesh = solids.box((0.2, 0.1, 0.3))
    triangles = mesh.vertices[mesh.faces]
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *each.ravel(), 0) for each in triangles)
    Path(name).write_bytes(bytes(80) + struct.pack("<I", len(triangles)) + rows)


LOOKS = """<robot name="looks">
  <material name="red"><color rgba="0.9 0.1 0.2 1"/></material>
  <link name="base">
    <visual><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><geometry><box size="0.1 0.2 0.3"/></geometry>
      <material name="red"/></visual>
    <collision><geometry><cylinder radius="0.1" length="0.4"/></geometry></collision>
  </link>
  <link name="a"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><mesh filename="part.stl" scale="1 2 0.5"/></geometry></visual>
    <visual><geometry><sphere radius="0.07"/></geometry><material name="own"><color rgba="0 1 0 1"/></material></visual>
    <collision><origin xyz="0 0 0.1"/><geometry><sphere radius="0.05"/></geometry></collision>
    <collision><geometry><mesh filename="missing.stl"/></geometry></collision>
  </link>
  <joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
</robot>
"""

test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
