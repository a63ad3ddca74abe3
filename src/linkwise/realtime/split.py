"""Torque error of the two-rate structure: coefficients that are out of date, compared with exact inverse dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.algorithms import coordinates
from linkwise.functions.table import mechanism_of
from linkwise.motion import Trajectory
from linkwise.robot.robot import Robot


def split_torques(
    robot: Robot, trajectory: Trajectory, t, background_period: float, *, latency: float = 0.0
) -> np.ndarray:
    """Torques [N·m or N], shape (times, n), that the two-rate structure computes along a trajectory at the
    times t [s].

    Inertia, gravity and velocity terms are those of the last multiple of ``background_period`` [s], and
    become available ``latency`` [s] later (Izaguirre's background took a whole period of 20 ms);
    accelerations and friction are current.

    Args:
        robot: the robot.
        trajectory: the motion.
        t: times [s], shape (times,).
        background_period: [s].
        latency: time from sampling to availability of the background's results [s].
    """
    t = np.asarray(t, dtype=float)
    q, qd, qdd = trajectory.at(t)
    ticks = np.floor((t - latency) / background_period * (1 + 1e-12)) * background_period
    old_q, old_qd, _ = trajectory.at(np.maximum(ticks, trajectory.begin))
    D = robot.mass_matrix(old_q)
    bias = robot.bias_torques(old_q, old_qd)
    links = mechanism_of(robot)
    columns = [list[Any](np.moveaxis(x, -1, 0)) for x in (q, qd)]
    torques: list[Any] = coordinates.friction(links, *columns)
    friction = np.stack(np.broadcast_arrays(*torques), axis=-1)
    return np.einsum("...ij,...j->...i", D, qdd) + bias + friction


def split_error(
    robot: Robot,
    trajectory: Trajectory,
    background_period: float,
    *,
    latency: float = 0.0,
    rate: float = 1000.0,
):
    """Largest error of the split's torques along a trajectory, per joint (n,), relative to the largest exact
    torque.

    Args:
        robot: the robot.
        trajectory: the motion.
        background_period: [s].
        latency: time from sampling to availability of the background's results [s].
        rate: samples per second [Hz].
    """
    samples = trajectory.sampled(rate)
    exact = robot.inverse_dynamics(samples.q, samples.qd, samples.qdd)
    found = split_torques(robot, trajectory, samples.t, background_period, latency=latency)
    return np.abs(found - exact).max(axis=0) / np.abs(exact).max(axis=0)
