"""Faults put into recordings of real arms: is each named, and is nothing said of correct ones?

    python benchmarks/wrong_recordings.py [--data FOLDER] [--only ur10e,panda] [--further] [--third] [--quick]

Fifteen faults are put into each of five recordings (found as by benchmarks/identification.py), and the diagnosis of
``identify`` is asked for causes and remarks; where it says nothing, the warnings of a whole identification count. Five
seconds of the correct recording are judged as well: nothing may be said of them that is not said of the whole. A fault
is *named* if what is said first contains its words, *wrong* if something else is said, and *silent* if nothing is;
silent ones are listed with the reason why torques do not show them. ``--further`` puts six others into each, and
``--third`` fifteen, which were written down before they were tried.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import identification
import numpy as np

import linkwise as lw
from linkwise.errors import LinkwiseError
from linkwise.identify import IdentificationWarning, Log, condition, identify
from linkwise.identify.judging.diagnosis import diagnose

SAMPLES = 6000  # of a recording that are used
CUTOFF = 8.0
ALIKE = 40  # characters by which a sentence is recognised that is said of the correct recording as well
NUMBER = re.compile(r"(?<!\w)[-−]?\d[\d.]*(e[+-]\d+)?")


def exchanged(log: Log) -> Log:
    order = list(range(log.dof))
    order[1], order[2] = 2, 1
    qd = None if log.qd is None else log.qd[:, order]
    return replace(log, q=log.q[:, order], qd=qd, tau=log.tau[:, order])


def reversed_torques(log: Log) -> Log:
    return replace(log, tau=-log.tau)


def one_torque_reversed(log: Log) -> Log:
    signs = np.ones(log.dof)
    signs[1] = -1.0
    return replace(log, tau=log.tau * signs)


def one_position_reversed(log: Log) -> Log:
    signs = np.ones(log.dof)
    signs[1] = -1.0
    return replace(log, q=log.q * signs, qd=None if log.qd is None else log.qd * signs)


def other_zero(log: Log) -> Log:
    q = log.q.copy()
    q[:, 1] += np.pi / 2
    return replace(log, q=q)


def slow_stamps(log: Log) -> Log:
    return replace(log, t=2.0 * log.t)


def saturated(log: Log) -> Log:
    limit = np.quantile(np.abs(log.tau), 0.85, axis=0)
    return replace(log, tau=np.clip(log.tau, -limit, limit))


def held(log: Log) -> Log:
    step = max(8, round(0.04 * log.rate))
    return replace(log, tau=log.tau[np.arange(len(log)) // step * step])


def doubled(log: Log) -> Log:
    rows = np.arange(len(log)) // 2 * 2
    qd = None if log.qd is None else log.qd[rows]
    return replace(log, q=log.q[rows], qd=qd, tau=log.tau[rows])


def no_torque(log: Log) -> Log:
    tau = log.tau.copy()
    tau[:, -1] = 0.0
    return replace(log, tau=tau)


def amperes(log: Log) -> Log:
    return replace(log, tau=log.tau / np.linspace(14.0, 9.0, log.dof))


def offset(log: Log) -> Log:
    tau = log.tau.copy()
    tau[:, 1] += 0.6 * np.sqrt((tau[:, 1] ** 2).mean())
    return replace(log, tau=tau)


def same(log: Log) -> Log:
    """See ``changed``."""
    return log


# change, words of which one must be said, what makes it invisible in torques where it is
FAULTS: dict[str, tuple[Callable[[Log], Log], tuple[str, ...], str]] = {
    "two joints exchanged": (
        exchanged,
        ("exchanged", "cannot reach"),
        "both joints have parallel axes and similar loads",
    ),
    "torques of all joints reversed": (
        reversed_torques,
        ("all joints look counted in the opposite",),
        "no friction",
    ),
    "torque of one joint reversed": (one_torque_reversed, ("opposite direction",), "no friction"),
    "positions of one joint reversed": (
        one_position_reversed,
        ("opposite direction",),
        "a mirrored arm has the torques",
    ),
    "another zero of one joint": (
        other_zero,
        ("another zero", "cannot reach"),
        "other first moments cause the same torques",
    ),
    "stamps twice as long": (
        slow_stamps,
        ("time stamps", "multiplying times"),
        "slow motion: torques of gravity and friction alone",
    ),
    "torques cut off": (saturated, ("cut off",), ""),
    "torques held": (held, ("held",), ""),
    "rows doubled": (doubled, ("repeat the one before",), ""),
    "amperes instead of N·m": (
        amperes,
        ("times those of the masses",),
        "the file has no masses, or wrong ones",
    ),
    "another robot": (same, ("another robot",), ""),
    "a torque is zero": (no_torque, ("never change",), ""),
    "compensated for gravity": (same, ("compensated for gravity",), ""),
    "compensated by the file's masses": (same, ("compensated for gravity",), ""),
    "a constant added to one torque": (
        offset,
        ("constant part",),
        "weight of a joint that moves little is a constant as well",
    ),
}


def degrees(log: Log) -> Log:
    qd = None if log.qd is None else np.degrees(log.qd)
    return replace(log, q=np.degrees(log.q), qd=qd)


def torques_exchanged(log: Log) -> Log:
    order = list(range(log.dof))
    order[1], order[2] = 2, 1
    return replace(log, tau=log.tau[:, order])


def dead_encoder(log: Log) -> Log:
    q, qd = log.q.copy(), None if log.qd is None else log.qd.copy()
    q[:, 2] = q[0, 2]
    if qd is not None:
        qd[:, 2] = 0.0
    return replace(log, q=q, qd=qd)


def missing_rows(log: Log) -> Log:
    """Half a second is missing about the middle, at the highest speed there, and stamps go on."""
    half = len(log) // 2
    begin = half + int(np.argmax(np.abs(np.gradient(log.q[half : -half // 2], axis=0)).max(axis=1)))
    rows = np.r_[:begin, begin + round(0.5 * log.rate) : len(log)]
    qd = None if log.qd is None else log.qd[rows]
    return replace(log, t=log.t[: len(rows)], q=log.q[rows], qd=qd, tau=log.tau[rows])


def fast_stamps(log: Log) -> Log:
    return replace(log, t=1e-3 * log.t)


FURTHER: dict[str, tuple[Callable[[Log], Log], tuple[str, ...], str]] = {
    "degrees taken for radians": (degrees, ("degrees", "look like deg"), ""),
    "torques of two joints exchanged": (torques_exchanged, ("exchanged",), "similar loads"),
    "mounted upside down": (same, ("gravity looks directed",), "the base turns about a vertical axis"),
    "a dead encoder": (dead_encoder, ("never change",), ""),
    "half a second of rows is missing": (missing_rows, ("positions jump",), "the robot stood"),
    "stamps a thousand times too short": (fast_stamps, ("time stamps",), ""),
}


def with_rows(log: Log, rows: np.ndarray, t: np.ndarray) -> Log:
    """Some rows of a recording under other stamps."""
    return replace(log, t=t, q=log.q[rows], qd=None if log.qd is None else log.qd[rows], tau=log.tau[rows])


def wrist_exchanged(log: Log) -> Log:
    order = list(range(log.dof))
    order[-2], order[-3] = order[-3], order[-2]
    qd = None if log.qd is None else log.qd[:, order]
    return replace(log, q=log.q[:, order], qd=qd, tau=log.tau[:, order])


def scaled(log: Log, joint: int, positions: float = 1.0, torques: float = 1.0) -> Log:
    of_positions, of_torques = np.ones(log.dof), np.ones(log.dof)
    of_positions[joint], of_torques[joint] = positions, torques
    qd = None if log.qd is None else log.qd * of_positions
    return replace(log, q=log.q * of_positions, qd=qd, tau=log.tau * of_torques)


def same_stamps(log: Log) -> Log:
    """Of every ten rows the last has the stamp of the one before."""
    t = log.t.copy()
    t[9::10] = t[8::10][: len(t[9::10])]
    return replace(log, t=t)


def late_torques(log: Log) -> Log:
    late = round(0.1 * log.rate)
    return with_rows(
        replace(log, tau=np.roll(log.tau, late, axis=0)), np.arange(late, len(log)), log.t[late:]
    )


def dropped(log: Log) -> Log:
    """A fifth of the rows is missing, anywhere, and the stamps go on as if none were."""
    rows = np.flatnonzero(np.random.default_rng(1).random(len(log)) > 0.2)
    return with_rows(log, rows, log.t[: len(rows)])


def one_cut_off(log: Log) -> Log:
    tau = log.tau.copy()
    limit = 0.5 * np.abs(tau[:, 1]).max()
    tau[:, 1] = np.clip(tau[:, 1], -limit, limit)
    return replace(log, tau=tau)


def encoder_offset(log: Log) -> Log:
    q = log.q.copy()
    q[:, 2] += np.radians(20.0)
    return replace(log, q=q)


def joined_with_another(log: Log) -> Log:
    """The second half has torques of a motion that was another: those of the first half."""
    half = len(log) // 2
    tau = log.tau.copy()
    tau[half : 2 * half] = tau[:half]
    return replace(log, tau=tau)


def noise_for_torque(log: Log) -> Log:
    tau = log.tau.copy()
    tau[:, 2] = tau[:, 2].std() * np.random.default_rng(2).normal(size=len(tau))
    return replace(log, tau=tau)


THIRD: dict[str, tuple[Callable[[Log], Log], tuple[str, ...], str]] = {
    "two joints of the wrist exchanged": (
        wrist_exchanged,
        ("exchanged", "cannot reach"),
        "torques of the wrist are small, and friction most of them",
    ),
    "degrees at one joint": (
        lambda log: scaled(log, 2, positions=180 / np.pi),
        ("degrees", "look like deg", "cannot reach", "turns"),
        "",
    ),
    "one torque before its gear": (
        lambda log: scaled(log, 2, torques=0.01),
        ("times too small",),
        "",
    ),
    "one joint counted the other way round": (
        lambda log: scaled(log, 2, -1.0, -1.0),
        ("opposite direction", "cannot reach"),
        "a mirrored arm has the torques",
    ),
    "mounted on a wall": (same, ("gravity looks directed",), "the first axis stays vertical"),
    "a load that the file has not": (
        same,
        ("times those of the masses", "load"),
        "a heavier last link has the same torques: it is identified",
    ),
    "every tenth stamp doubled": (same_stamps, ("stamp",), ""),
    "torques 0.1 s late": (late_torques, ("lag", "later", "late"), ""),
    "milliamperes": (lambda log: replace(log, tau=100.0 * log.tau), ("times those of the masses",), ""),
    "one torque cut off": (one_cut_off, ("cut off",), "the torque never was that large"),
    "a fifth of the rows dropped": (dropped, ("rows are missing", "slopes", "jump"), "the rest looks faster"),
    "an encoder off by 20°": (
        encoder_offset,
        ("another zero", "cannot reach"),
        "other first moments cause the same torques",
    ),
    "torques of another motion": (joined_with_another, ("another", "part", "from"), ""),
    "noise for a torque": (noise_for_torque, ("does not explain", "noise"), ""),
    "links of another length": (same, ("another robot", "cannot reach"), "masses may differ as well"),
}
OTHERS = {6: lambda: lw.load("puma560"), 7: lambda: lw.load("iiwa14"), 2: lambda: lw.load("two_link")}


def recordings(data: Path, names: list[str]) -> dict[str, tuple[lw.Robot, Log]]:
    found = {}
    for name in names:
        first = next(iter(identification.RECORDINGS[name](data)))
        log, step = first.train, max(1, len(first.train) // SAMPLES)
        if step > 1:
            part = len(log) // step * step
            log = replace(
                log,
                t=log.t[:part:step],
                q=log.q[:part:step],
                tau=log.tau[:part:step],
                qd=None if log.qd is None else log.qd[:part:step],
            )
        found[name] = first.robot, log
    return found


def said(robot: lw.Robot, log: Log) -> list[str]:
    """Causes and remarks of the diagnosis, warnings of an identification, or the error that refuses the recording."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        try:
            found = diagnose(robot, [condition(log, cutoff=CUTOFF)])
            words = [*found.causes, *found.remarks]
            return words or list(identify(robot, log, cutoff=CUTOFF, friction="smooth").warnings)
        except LinkwiseError as error:
            return [str(error)]


def changed(name: str, robot: lw.Robot, log: Log) -> tuple[lw.Robot, Log]:
    """The robot that is given and the recording with a fault."""
    if name == "another robot":
        return OTHERS[robot.dof](), log
    if name == "mounted upside down":
        return robot.with_gravity(tuple(-x for x in robot.gravity)), log
    if name == "compensated by the file's masses":
        return robot, replace(log, tau=log.tau - robot.gravity_torques(log.q))
    if name == "compensated for gravity":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentificationWarning)
            own = identify(robot, log, cutoff=CUTOFF, friction="smooth").robot
        return robot, replace(log, tau=log.tau - own.gravity_torques(log.q))
    if name == "mounted on a wall":
        return robot.with_gravity((0.0, 9.81, 0.0)), log
    if name == "links of another length":
        return longer(robot, 1.6), log
    if name == "a load that the file has not":
        return robot, replace(log, tau=log.tau + load_torques(robot, log))
    return robot, (FAULTS | FURTHER | THIRD)[name][0](log)


def longer(robot: lw.Robot, factor: float) -> lw.Robot:
    """The robot with other lengths: every second link is longer, the others are shorter."""
    joints = []
    for k, joint in enumerate(robot.joints):
        by = factor if k % 2 else 1.0 / factor
        joints.append(replace(joint, origin=replace(joint.origin, translation=by * joint.origin.translation)))
    return lw.Robot(robot.name, robot.links, joints, gravity=robot.gravity)


def load_torques(robot: lw.Robot, log: Log) -> np.ndarray:
    """Of a load at the last joint's frame, a fifth of all masses of the file, or of 20 kg where it has none."""
    mass = 0.2 * (sum(body.mass for body in robot.labelled_bodies()) or 20.0)
    last = robot.moving_joints[-1].child
    loaded = robot.with_payload(mass, (0.0, 0.0, 0.1), frame=last)
    motion = condition(log, cutoff=CUTOFF).at_stamps()[1]
    return loaded.inverse_dynamics(*motion) - robot.inverse_dynamics(*motion)


def without_numbers(sentence: str) -> str:
    return NUMBER.sub("", sentence)


def unusual(words: list[str], usual: list[str], wanted: tuple[str, ...] = ()) -> list[str]:
    """What is not said of the correct recording as well; of other joints it is the same, but where it is ``wanted``."""
    begins, whole = {each[:ALIKE] for each in usual}, {without_numbers(each) for each in usual}
    return [
        each
        for each in words
        if each[:ALIKE] not in begins
        or (any(x in each for x in wanted) and without_numbers(each) not in whole)
    ]


def judged(words: list[str], wanted: tuple[str, ...]) -> str:
    if not words:
        return "silent"
    return "named" if any(each in words[0] for each in wanted) else "wrong"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("LINKWISE_DATA", identification.DEFAULT_DATA))
    )
    parser.add_argument("--only", default="ur10e,panda,airbot,lwr4,ur10")
    parser.add_argument("--faults", default="", help="only faults with this text in their names")
    parser.add_argument("--further", action="store_true", help="six other faults")
    parser.add_argument("--third", action="store_true", help="fifteen others")
    parser.add_argument(
        "--quick", action="store_true", help="a simulated arm, which needs no data, and two faults"
    )
    given = parser.parse_args()
    if given.quick:
        arms, faults = _simulated(), dict(list(FAULTS.items())[-4:-2])
    elif not given.data.is_dir():
        print(f"no folder {given.data}", file=sys.stderr)
        return 2
    else:
        arms = recordings(given.data, given.only.split(","))
        all_faults = FURTHER if given.further else THIRD if given.third else FAULTS
        faults = {name: each for name, each in all_faults.items() if given.faults in name}
    tally = {"named": 0, "wrong": 0, "silent": 0}
    for arm, (robot, log) in arms.items():
        begin = time.process_time()
        words = said(robot, log)
        print(f"{arm}, {len(log)} samples, as recorded: {'; '.join(words) or 'nothing is said'}")
        usual = words
        short = unusual(said(robot, log.between(3.0, 8.0)), usual)
        print(f"  five seconds of it: {'; '.join(short) or 'nothing else is said'}")
        for name, (_, wanted, reason) in faults.items():
            try:
                words = unusual(said(*changed(name, robot, log)), usual, wanted)
            except LinkwiseError as error:  # such a recording cannot be made
                words = [str(error)]
            kind = judged(words, wanted)
            tally[kind] += 1
            text = f" ({reason})" if kind == "silent" and reason else f": {words[0][:150]}" if words else ""
            print(f"  {kind:7} {name}{text}", flush=True)
        print(f"  {time.process_time() - begin:.0f} s of one processor", flush=True)
    print(f"{sum(tally.values())} faults: {', '.join(f'{count} {kind}' for kind, count in tally.items())}")
    return 0


def _simulated() -> dict[str, tuple[lw.Robot, Log]]:
    robot = lw.load("two_link")
    t = np.arange(1000) / 100.0
    rate = 2 * np.pi / 3 * np.array([0.7, 1.1])
    phase = np.outer(t, rate)
    q, qd, qdd = np.sin(phase), np.cos(phase) * rate, -np.sin(phase) * rate**2
    tau = robot.inverse_dynamics(q, qd, qdd) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    return {"two_link": (robot, Log(t, q, tau))}


if __name__ == "__main__":
    sys.exit(main())
