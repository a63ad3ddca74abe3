"""coal on the collision meshes of a URDF file, and Pinocchio's torques: an independent check."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.collision import World, validity_of
from linkwise.geometry.solids import from_z_to


class Meshes:
    """The meshes of a robot among the obstacles of a world.

    Args:
        file: the URDF file.
        robot: the same robot, with joints locked as wanted.
        world: the obstacles.
    """

    def __init__(self, file: Path, robot: lw.Robot, world: World):
        import pinocchio as pin

        self.pin, self.robot = pin, robot
        self.model = pin.buildModelFromUrdf(str(file))
        folders = [
            str(parent) for parent in file.parents if parent.name in ("share", "robots", "example-robot-data")
        ]
        self.geometry = pin.buildGeomFromUrdf(
            self.model, str(file), pin.GeometryType.COLLISION, package_dirs=[*folders, str(file.parent)]
        )
        self.geometry.removeAllCollisionPairs()
        own = list(self.geometry.geometryObjects)
        bodies = [self._body(each) for each in own]
        compared = set(validity_of(robot).pairs.compared)
        for i, first in enumerate(bodies):
            for k in range(i):
                if tuple(sorted((first, bodies[k]))) in compared:
                    self.geometry.addCollisionPair(pin.CollisionPair(k, i))
        self._add(world, [k for k, body in enumerate(bodies) if body >= 0])
        self.data, self.placed = self.model.createData(), self.geometry.createData()

    def _body(self, shape) -> int:
        link = self.model.frames[shape.parentFrame].name
        return self.robot.carrier(link)[0]

    def _add(self, world: World, moving: list[int]) -> None:
        import coal

        tables = world.solids
        shapes = [(coal.Sphere(r), np.eye(3), [x, y, z]) for x, y, z, r in tables["spheres"]]
        shapes += [(coal.Box(*(2 * row[3:])), np.eye(3), row[:3]) for row in tables["boxes"]]
        shapes += [
            (coal.Box(*(2 * row[12:])), row[3:12].reshape(3, 3).T, row[:3]) for row in tables["turned_boxes"]
        ]
        for row in tables["rods"]:
            pose = from_z_to(row[3:6], row[:3] + row[3:6] / 2)
            size = float(np.linalg.norm(row[3:6]))
            shapes.append((coal.Capsule(row[6], size), pose.rotation, pose.translation))
        shapes += [(coal.Halfspace(row[:3], row[3]), np.eye(3), np.zeros(3)) for row in tables["planes"]]
        for number, (shape, turn, place) in enumerate(shapes):
            pose = self.pin.SE3(np.asarray(turn, float), np.asarray(place, float))
            added = self.geometry.addGeometryObject(
                self.pin.GeometryObject(f"obstacle{number}", 0, pose, shape)
            )
            for k in moving:
                self.geometry.addCollisionPair(self.pin.CollisionPair(k, added))

    def positions(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio's positions, (states, nq)."""
        full = np.tile(self.pin.neutral(self.model), (len(q), 1))
        fixed = {joint.name: joint for joint in self.robot.joints}
        names = list(self.robot.joint_names)
        for joint, name in enumerate(self.model.names):
            if joint == 0:
                continue
            place, size = self.model.joints[joint].idx_q, self.model.joints[joint].nq
            value = q[:, names.index(name)] if name in names else np.full(len(q), LOCKED.get(name, 0.0))
            assert name in fixed
            if size == 1:
                full[:, place] = value
            else:  # a joint without limits: its cosine and sine
                full[:, place], full[:, place + 1] = np.cos(value), np.sin(value)
        return full

    def collide(self, q: np.ndarray) -> np.ndarray:
        """Whether the meshes touch each other or the world, shape (states,)."""
        rows = self.positions(q)
        return np.array(
            [
                self.pin.computeCollisions(self.model, self.data, self.geometry, self.placed, x, True)
                for x in rows
            ]
        )

    def touching_along(self, q: np.ndarray) -> int:
        """How many positions of a motion (points, n), close to each other, collide.

        coal is asked whether all pairs are farther apart than a margin; that holds for all following positions until
        points of the robot have moved by as much, ``levers`` times the motion of the joints.
        """
        rows, levers = self.positions(q), self.levers()
        found, here, level = 0, 0, 0
        while here < len(rows):
            while level < len(MARGINS) and self._nearer(rows[here], MARGINS[level]):
                level += 1
            if level == len(MARGINS):
                found += self._nearer(rows[here], 0.0)
                here, level = here + 1, level - 1
                continue
            moved = np.abs(q[here:] - q[here]) @ levers
            here += int(np.append(moved > 0.99 * MARGINS[level], True).argmax())
            level = max(0, level - 1)
        return found

    def _nearer(self, row: np.ndarray, margin: float) -> bool:
        for request in self.placed.collisionRequests:
            request.security_margin = margin
        return self.pin.computeCollisions(self.model, self.data, self.geometry, self.placed, row, True)

    def levers(self) -> np.ndarray:
        """How far a unit of each joint moves points of the robot at most, by lengths of the links (n,)."""
        size = np.zeros(self.model.njoints)  # of the geometry of a joint's body, from its origin
        for shape in self.geometry.geometryObjects:
            if shape.parentJoint > 0:
                shape.geometry.computeLocalAABB()
                box = shape.geometry.aabb_center, shape.geometry.aabb_radius
                far = np.linalg.norm(shape.placement.act(np.asarray(box[0]))) + box[1]
                size[shape.parentJoint] = max(size[shape.parentJoint], far)
        reach = size.copy()
        for joint in range(self.model.njoints - 1, 0, -1):
            parent = self.model.parents[joint]
            slide = 0.0
            if self.model.joints[joint].shortname().startswith("JointModelP"):
                place = self.model.joints[joint].idx_q
                slide = max(
                    abs(self.model.lowerPositionLimit[place]), abs(self.model.upperPositionLimit[place])
                )
            step = np.linalg.norm(self.model.jointPlacements[joint].translation) + slide
            reach[parent] = max(reach[parent], reach[joint] + step)
        names = list(self.model.names)
        found = np.array([reach[names.index(name)] for name in self.robot.joint_names])
        slides = np.array([joint.type == "prismatic" for joint in self.robot.moving_joints])
        return np.where(slides[: len(found)], 1.0, found)

    def torques(self, motion) -> np.ndarray:
        """Torques of the moving joints along samples of a motion, with the damping and dry friction of the file."""
        names = list(self.robot.joint_names)
        columns = [self.model.joints[self.model.getJointId(name)].idx_v for name in names]
        full = self.positions(motion.q)
        found = np.zeros((len(full), len(names)))
        for k, q in enumerate(full):
            v, a = np.zeros(self.model.nv), np.zeros(self.model.nv)
            v[columns], a[columns] = motion.qd[k], motion.qdd[k]
            rigid = self.pin.rnea(self.model, self.data, q, v, a)
            rubbing = self.model.damping * v + self.model.upperDryFrictionLimit * np.sign(v)
            found[k] = (rigid + rubbing)[columns]
        return found


MARGINS = (0.04, 0.015, 0.005, 0.0015)  # [m] that coal is asked about
LOCKED = {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02}
MOVING = {  # joints that are planned: both arms of Baxter, arm and torso of Fetch; others stay where they are
    "panda": "panda_joint",
    "baxter": "right_|left_",
    "fetch": "torso|shoulder|upperarm|elbow|forearm|wrist",
    "tiago_no_hand": "torso|arm_",
}


def loaded(name: str, file: Path) -> lw.Robot:
    """A robot of which the joints of ``MOVING`` move.

    Args:
        name: of the robot.
        file: its URDF file.
    """
    robot = lw.load(file)
    if name not in MOVING:
        return robot
    still = [joint for joint in robot.joint_names if not re.match(MOVING[name], joint)]
    return lw.load(file, lock={joint: LOCKED.get(joint, 0.0) for joint in still})
