"""Reads an entry with the key ``identify``: least squares, or all of ``linkwise.identify``."""

from __future__ import annotations

from linkwise.robot.robot import Robot
from linkwise.study.schema import StudySettings, numbers
from linkwise.study.steps.identification import METHODS, ExcitingMotion, IdentificationStep
from linkwise.study.steps.pipeline import PipelineStep, frictions
from linkwise.study.steps.robot_parameters import RobotParameters


def read(
    name: str, table: StudySettings, robot: Robot, parameters: RobotParameters, seed: int
) -> IdentificationStep:
    """The step of an entry with the key ``identify``."""
    method = table.choice("identify", METHODS)
    motion = _motion(StudySettings(table.get("motion", dict, {}), table.where("motion")), robot)
    noise = _torque_noise(table, robot)
    if not parameters.takes and not isinstance(noise, str):
        raise table.fail(
            "", "nothing varies that it depends on; vary a parameter of the robot, or torque_noise by name"
        )
    if method == "least_squares":
        return IdentificationStep(name, robot, motion, noise, parameters, seed)
    shaking, friction = table.get("position_noise", float, 0.0), table.choice("friction", frictions(), "auto")
    if shaking < 0.0:
        raise table.fail("position_noise", f"expected a standard deviation of at least 0, got {shaking:g}")
    return PipelineStep(name, robot, motion, noise, parameters, seed, shaking, friction)


def _motion(inner: StudySettings, robot: Robot) -> ExcitingMotion:
    amplitude = numbers(inner.raw("amplitude", 1.0), inner.where("amplitude"))
    if len(amplitude) not in (1, robot.dof):
        raise inner.fail("amplitude", f"expected 1 or {robot.dof} numbers, got {len(amplitude)}")
    motion = ExcitingMotion(
        inner.get("period", float, 10.0),
        inner.whole("harmonics", 1, 5),
        tuple(amplitude * robot.dof if len(amplitude) == 1 else amplitude),
        inner.get("seed", int, 0),
        inner.whole("rows", 2, 200),
    )
    inner.finish()
    if not motion.period > 0:
        raise inner.fail("period", f"expected a positive time in seconds, got {motion.period:g}")
    return motion


def _torque_noise(table: StudySettings, robot: Robot) -> str | tuple[float, ...]:
    """The name of a variable, or standard deviations [N·m or N]: one for all joints, or one for each."""
    noise = table.raw("torque_noise", 0.0)
    if not isinstance(noise, str):
        given = numbers(noise, table.where("torque_noise"))
        if len(given) not in (1, robot.dof) or min(given) < 0:
            raise table.fail(
                "torque_noise", f"expected 1 or {robot.dof} numbers, none negative; got {noise!r}"
            )
        noise = tuple(given)
    return noise
