"""A robot as the model of another engine, joint by joint: for robots that no file of that engine describes."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.bench.peers.base import Refusal
from linkwise.compat import inertia_to_mujoco, quaternion_from_matrix
from linkwise.model.joint import Joint
from linkwise.model.transform import Transform
from linkwise.robot.robot import Robot


def pinocchio_model(pin: Any, robot: Robot) -> Any:
    """A ``pinocchio.Model`` with the robot's moving joints, followers too."""
    model = pin.Model()
    for joint in robot.moving_joints:
        parent, place = robot.carrier(joint.parent)
        at = place @ joint.origin
        model.addJoint(
            parent + 1, _pinocchio_joint(pin, joint), pin.SE3(at.rotation, at.translation), joint.name
        )
    for link in robot.links:
        number, place = robot.carrier(link.name)
        if number >= 0:
            body = pin.Inertia(link.inertia.mass, link.inertia.com, link.inertia.matrix_about_com)
            model.appendBodyToJoint(number + 1, body, pin.SE3(place.rotation, place.translation))
    return model


def _pinocchio_joint(pin: Any, joint: Joint) -> Any:
    axis = np.array(joint.axis)
    if joint.type == "floating":
        return pin.JointModelFreeFlyer()
    if joint.type == "ball":
        return pin.JointModelSpherical()
    if joint.screws:
        return pin.JointModelHelicalUnaligned(axis, joint.pitch)
    return pin.JointModelRevoluteUnaligned(axis) if joint.revolute else pin.JointModelPrismaticUnaligned(axis)


def mujoco_model(mujoco: Any, robot: Robot) -> Any:
    """A ``mujoco.MjModel`` with the robot's moving joints, followers too."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    bodies = {robot.base: spec.worldbody}
    for joint in robot.joints:  # parents first
        parent = bodies[joint.parent]
        if _shares_body(robot, joint):
            bodies[joint.child] = body = parent
        else:
            quaternion = quaternion_from_matrix(joint.origin.rotation)
            bodies[joint.child] = body = parent.add_body(pos=joint.origin.translation, quat=quaternion)
        if joint.moves:
            body.add_joint(
                name=joint.name,
                type=_mujoco_type(mujoco, joint),
                axis=joint.axis,
                armature=joint.rotor_inertia,
            )
        inertia = next(link.inertia for link in robot.links if link.name == joint.child)
        if inertia.mass > 0.0:
            body.mass, body.ipos, body.iquat, body.inertia = inertia_to_mujoco(inertia)
            body.explicitinertial = True
    try:
        return spec.compile()
    except ValueError as error:
        raise Refusal(f"does not take the robot: {' '.join(str(error).split())}") from None


def _shares_body(robot: Robot, joint: Joint) -> bool:
    """Whether the joint follows a link without mass, origin or other children: several joints of one body there."""
    if joint.parent == robot.base:
        return False
    link = next(link for link in robot.links if link.name == joint.parent)
    alone = sum(other.parent == joint.parent for other in robot.joints) == 1
    here = np.allclose(joint.origin.matrix, Transform.identity().matrix, atol=0.0)
    return (
        alone and here and link.inertia.mass == 0.0 and joint.type in ("revolute", "continuous", "prismatic")
    )


def _mujoco_type(mujoco: Any, joint: Joint) -> Any:
    kinds = mujoco.mjtJoint
    if joint.screws:
        raise Refusal("has no helical joints")
    if joint.free:
        return kinds.mjJNT_FREE if joint.type == "floating" else kinds.mjJNT_BALL
    return kinds.mjJNT_HINGE if joint.revolute else kinds.mjJNT_SLIDE
