"""Identifications of many kinds beside those recorded: every number of the results, every warning and refusal."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from known_arm import TRUE_FRICTION, motion

import linkwise as lw
from linkwise.identify import (
    ESTIMATORS,
    MODELS,
    Log,
    Observer,
    Term,
    base_by_rank,
    by_contribution,
    by_statistics,
    condition,
    friction_named,
    identify,
    ordinary,
    prior_bodies,
    ridge,
    robust,
    total,
    weighted,
)
from linkwise.identify.estimation import clustered, coloured, friction, lag, solvers, weights
from linkwise.identify.estimation.base import base_of, excitation_of
from linkwise.identify.estimation.regression import Regression
from linkwise.identify.judging.diagnosis import diagnose
from linkwise.identify.judging.samples import sample_faults
from linkwise.identify.walking import choosing
from recorded import Scenarios, everything, packed, told, warned
from recorded_robots import chain, two_link, with_laws

scenarios = Scenarios("identify")
FIXED = {"cutoff": 14.0, "lag": 0.0}
"""Options with which a fit takes little time."""
identification = partial(scenarios, tolerance=1e-6)
"""For whole identifications: weights are iterated and sums are BLAS's, whose kernels differ by up to 2e-7 here."""


@cache
def arm() -> lw.Robot:
    return two_link()


@cache
def truth() -> lw.Robot:
    links = zip(arm().parameter_labels[:20], arm().parameters, strict=False)
    return arm().with_parameters({label: 1.2 * value for label, value in links} | TRUE_FRICTION)


def moved(robot: lw.Robot, seed: int, seconds: float, noise: float, size: float = 0.6, rate: int = 2) -> Log:
    """A recording of a robot at 200 Hz / ``rate``; noise in parts of each torque."""
    t, q, qd, qdd = (x[::rate] for x in motion(seed, dof=robot.dof, seconds=seconds, size=size))
    tau = robot.inverse_dynamics(q, qd, qdd)
    scatter = np.random.default_rng(seed + 100).normal(size=tau.shape)
    return Log(t, q, tau + noise * np.sqrt((tau**2).mean(axis=0)) * scatter, name=f"run{seed}")


@cache
def run(seed: int = 1, noise: float = 0.02) -> Log:
    return moved(truth(), seed, 7.0, noise)


def result(found) -> dict:
    """All fields and properties, each as a few numbers, and what methods give."""
    every = {name: packed(value) for name, value in everything(found).items()}
    lower, upper = found.predict_range(*(x[::40] for x in found.validation.motion))
    return every | {
        "table": packed(everything(found.table(0.9))),
        "summary": packed(everything(found.summary())),
        "verdict": packed(everything(found.verdict())),
        "uses": packed(everything(found.uses())),
        "predicted": found.predict(*(x[::40] for x in found.validation.motion)),
        "in order": found.predict(*(x[::40] for x in found.validation.motion), in_order=True),
        "lower": lower,
        "upper": upper,
        "text": str(found),
    }


def identified(robot: lw.Robot, *args, **options) -> dict:
    found, warnings = warned(identify, robot, *args, **options)
    return result(found) | {"warnings": warnings}


# -- whole identifications --------------------------------------------------------------------------------------------


@identification
def chosen_by_the_recording():
    """Cut-off, lag and friction are chosen; the model is judged on another recording."""
    found, warnings = warned(identify, arm(), [run(1), run(2)], validation=run(3))
    competitors = packed(everything(found.competitors))
    return result(found) | {
        "warnings": warnings,
        "competitors": competitors,
        "code": found.code(reduced=True)[:3000],
    }


@identification
def torques_that_are_late_and_velocities():
    log = run(1, 0.01)
    late = Log(log.t + 0.3, log.q, np.roll(log.tau, 2, axis=0), np.gradient(log.q, log.t, axis=0))
    found, warnings = warned(
        identify, arm(), late.rows(5, 690), friction="coulomb", band=6.0, estimator="idim-iv"
    )
    return result(found) | {"warnings": warnings, "replay": packed(everything(found.replay(window=0.8)))}


@identification
def a_chain_that_slides_with_asymmetric_friction():
    log = moved(chain(), 4, 5.0, 0.03, 0.3)
    options = {
        "significance": "statistics",
        "decimation": 3,
        "strength": 0.4,
        "derivatives": "savitzky_golay",
    }
    return identified(chain(), log, friction="asymmetric", **options, **FIXED)


@identification
def laws_of_joints():
    """Springs are fitted, torques without a name and ripple are looked for, and small networks."""
    bent = with_laws().with_parameters({"joint1.stiffness": 0.0, "joint3.compensated_mass": 0.0})
    log = moved(bent, 6, 6.0, 0.01, 0.5)
    given = lw.random_robot(3, 3, joints="R")
    return identified(given, log, network=True, **FIXED)


@identification
def springs_by_terms():
    sprung = truth().with_parameters({"joint2.stiffness": 3.7, "joint2.spring_reference": 0.2})
    terms = (Term("rotor_inertia"), Term("viscous"), Term("coulomb", width=2e-3), Term("offset"))
    friction = (terms, (*terms, Term("stiffness"), Term("saturating", speed=0.3)))
    return identified(arm(), moved(sprung, 8, 5.0, 0.02), friction=friction, **FIXED)


@identification
def a_motor_of_two_joints():
    motor = lw.Motor("both", {"joint1": 1.4, "joint2": -0.7}, 0.13, 0.43, (0.47, 0.71), offset=0.21)
    robot = truth().with_motors([motor])
    log = moved(robot, 9, 4.0, 0.02, 0.3)
    return identified(robot, log, friction="coulomb", **FIXED)


def _by_model(name: str):
    return lambda: identified(arm(), run(1), validation=run(2), friction=name, **FIXED)


for _name in ("none", "viscous", "stribeck", "presliding", "rich"):
    _scenario = _by_model(_name)
    _scenario.__name__ = f"friction_{_name}"
    identification(_scenario)


# -- recordings that are wrong ----------------------------------------------------------------------------------------


@cache
def puma() -> lw.Robot:
    """Shoulder and elbow."""
    locked = ("waist", "wrist_roll", "wrist_bend", "flange")
    return lw.load("puma560").lock(dict(zip(locked, (0.2, 0.1, 0.3, -0.4), strict=True)))


@cache
def of_puma() -> Log:
    """Of a robot that is heavier than the file, with friction."""
    values = zip(puma().parameter_labels[:20], puma().parameters, strict=False)
    links = {label: (1.03 + 0.05 * (k // 10)) * value for k, (label, value) in enumerate(values)}
    friction = {
        f"{name}.{kind}": 5.0 - k
        for k, name in enumerate(puma().joint_names)
        for kind in ("viscous_friction", "coulomb_friction")
    }
    return moved(puma().with_parameters(links | friction), 5, 8.0, 0.03, 0.5, rate=4)


def _swapped(x: np.ndarray, *order: int) -> np.ndarray:
    return x[:, list(order)]


WRONG = {
    "as it is": lambda log: log,
    "torque of one": lambda log: replace(log, tau=log.tau * (1.0, -1.0)),
    "all torques": lambda log: replace(log, tau=-log.tau),
    "position of one": lambda log: replace(log, q=log.q * (1.0, -1.0)),
    "exchanged": lambda log: replace(log, q=_swapped(log.q, 1, 0), tau=_swapped(log.tau, 1, 0)),
    "exchanged torques": lambda log: replace(log, tau=_swapped(log.tau, 1, 0)),
    "zero": lambda log: replace(log, q=log.q + (0.0, np.pi / 2)),
    "odd zero": lambda log: replace(log, q=log.q + (-0.7, 0.0)),
    "gear": lambda log: replace(log, tau=log.tau * (1.0, 3.1)),
    "clock": lambda log: replace(log, t=log.t * 2.0),
    "degrees": lambda log: replace(log, q=np.degrees(log.q) / 40.0),
}


def _diagnosed(robot: lw.Robot, log: Log) -> dict:
    found = diagnose(robot, [condition(log, cutoff=8.0)])
    return {"causes": list(found.causes), "remarks": list(found.remarks), "contradicted": found.contradicted}


@scenarios
def wrong_recordings():
    return {name: _diagnosed(puma(), change(of_puma())) for name, change in WRONG.items()}


@scenarios
def gravity_along_another_axis():
    directions = {"wall": (9.81, 0.0, 0.0), "tilted": (0.0, 3.3, -9.2)}
    return {name: _diagnosed(puma().with_gravity(g), of_puma()) for name, g in directions.items()}


@identification
def a_fit_of_a_wrong_recording():
    found, warnings = warned(identify, puma(), WRONG["all torques"](of_puma()), friction="coulomb", **FIXED)
    wanted = {
        "x": found.fit.x,
        "failure": found.failure,
        "failed": found.failed,
        "uses": everything(found.uses()),
    }
    return wanted | {"warnings": warnings, "contradiction": found.contradiction}


def _held(x: np.ndarray, every: int) -> np.ndarray:
    return np.repeat(x[::every], every, axis=0)[: len(x)]


def _with(x: np.ndarray, rows, columns, value) -> np.ndarray:
    changed = x.copy()
    changed[rows, columns] = value
    return changed


def _faulty() -> dict[str, Log]:
    log = of_puma()
    qd = np.gradient(log.q, log.t, axis=0)
    bump = np.zeros_like(log.q)
    bump[150:, 1] = 0.4
    rows = np.delete(np.arange(len(log)), np.s_[40::7])
    largest = 0.4 * np.abs(log.tau).max(axis=0)
    return {
        "constant torque": replace(log, tau=_with(log.tau, slice(None), 1, 2.5)),
        "constant position": replace(log, q=_with(log.q, slice(None), 1, 0.3)),
        "twice": replace(log, tau=_swapped(log.tau, 1, 1)),
        "positions as torques": replace(log, tau=np.column_stack([log.tau[:, :1], 3.0 * log.q[:, 1]])),
        "velocities as torques": replace(log, tau=np.column_stack([7.0 * qd[:, 0], log.tau[:, 1:]]), qd=qd),
        "no velocities of one": replace(log, qd=qd * (1.0, 0.0)),
        "opposite velocities": replace(log, qd=-qd),
        "fast velocities": replace(log, qd=1.7 * qd),
        "velocities of one": replace(log, qd=qd * (1.0, 57.3)),
        "late velocities": replace(log, qd=np.roll(qd, 4, axis=0)),
        "doubled rows": replace(log, q=_held(log.q, 2), tau=_held(log.tau, 2)),
        "held torques": replace(log, tau=_held(log.tau, 5)),
        "one held torque": replace(log, tau=np.column_stack([_held(log.tau[:, :1], 4), log.tau[:, 1:]])),
        "stopped": replace(log, tau=_with(log.tau, slice(90, 200), 0, log.tau[90, 0])),
        "jump": replace(log, q=log.q + bump),
        "lost rows": replace(log, t=log.t[: len(rows)], q=log.q[rows], tau=log.tau[rows]),
        "no sign": replace(log, tau=np.abs(log.tau)),
        "spikes": replace(log, tau=_with(log.tau, slice(20, None, 290), 1, 900.0)),
        "cut off": replace(log, tau=np.clip(log.tau, -largest, largest)),
        "as it is": replace(log, qd=qd),
    }


@scenarios
def faults_of_samples():
    found = {name: " | ".join(sample_faults(puma(), log)) for name, log in _faulty().items()}
    log = run(1, 0.0)
    swinging = np.sin(4.1 * log.t)[:, None] * (2.0, 5.0)
    return found | {"without sign": sample_faults(arm(), replace(log, tau=np.abs(swinging)))}


@identification
def offset_friction_that_drives_and_lags_of_joints():
    log = run(1, 0.01)
    driven = replace(log, tau=log.tau - 3.0 * np.gradient(log.q, log.t, axis=0) * (1.0, 0.0))
    offset = replace(log, tau=log.tau + (0.0, 9.0))
    one = replace(log, tau=np.column_stack([log.tau[:, 0], np.roll(log.tau[:, 1], 3)]))
    given = {
        "driven": driven,
        "offset": offset,
        "one is late": one,
        "scaled": replace(log, tau=11.0 * log.tau),
    }
    return {name: _of_small(each) for name, each in given.items()}


def _of_small(log: Log) -> dict:
    found, warnings = warned(identify, arm(), log, friction="coulomb", cutoff=9.0)
    return {"warnings": warnings, "x": found.fit.x, "lag": everything(found.lag), "replay": found.failed}


# -- estimators and what they stand on --------------------------------------------------------------------------------


@cache
def made() -> Regression:
    """Random columns, one of them weak, with noise of two joints that is not white."""
    rng = np.random.default_rng(5)
    Y = rng.normal(size=(220, 2, 5)) * [1.0, 10.0, 0.1, 2.0, 3.0]
    noise = rng.normal(size=(222, 2)) * [0.03, 0.6]
    noise = noise[2:] + 0.6 * noise[1:-1] + 0.3 * noise[:-2]
    tau = Y @ np.array([1.1, -0.2, 3.0, 0.5, 0.004]) + noise
    tau[17, 0] += 4.0
    return Regression(Y, tau, tuple(f"link1.{x}" for x in "abcde"), 5, (), (90,))


@cache
def regression() -> Regression:
    friction = friction_named("coulomb", 2)
    whole = Observer(arm(), [condition(run(1), cutoff=12.0), condition(run(2), cutoff=12.0)]).regression(
        friction
    )
    return whole.pick(base_of(arm(), np.eye(2), friction).columns)


@scenarios
def estimators_on_random_columns():
    found = {name: estimator(made()) for name, estimator in ESTIMATORS.items() if name != "idim-iv"}
    found |= {
        "svd": ordinary(made(), solver="svd"),
        "pinv": weighted(made(), solver="pinv", iterations=3),
        "column noise": total(made(), column_noise=0.03),
        "huber": robust(made(), threshold=0.7, iterations=4),
        "ridge": ridge(made(), strength=0.3, prior=np.array([1.0, 0.1, 2.0, 0.3, 0.2])),
    }
    intervals = {f"{name} interval": np.array(each.interval(0.8)) for name, each in found.items()}
    return everything(found) | intervals


@scenarios
def estimators_on_a_recording():
    found = {name: estimator(regression()) for name, estimator in ESTIMATORS.items()}
    return everything(found)


@scenarios
def significance():
    estimate = weighted(regression())
    return {
        "contribution": packed(everything(by_contribution(regression(), estimate))),
        "threshold": packed(everything(by_contribution(regression(), estimate, ordinary, threshold=0.2))),
        "statistics": packed(everything(by_statistics(regression(), estimate, robust))),
        "random": packed(everything(by_statistics(made(), weighted(made())))),
    }


@scenarios
def parts_of_estimates():
    W, y = made().compressed(np.array([3.0, 0.7]))
    x, iterated = weights.iterated_weights(made(), iterations=2)
    inverse = np.linalg.inv(W.T @ W)
    covariance, freedom = coloured.uncertainty(made(), iterated, x, inverse)
    widened = clustered.rescaled(covariance, freedom, made(), iterated, x)
    grams = np.stack([np.column_stack([Y, t]).T @ np.column_stack([Y, t]) for Y, t in _each_joint()])
    return {
        "solvers": [solvers.solve(W, y, name) for name in solvers.SOLVERS],
        "condition": solvers.condition(W),
        "deficient": solvers.solve(np.column_stack([W, 2.0 * W[:, :1]]), y),
        "weights": iterated,
        "x": x,
        "uncertainty": [covariance, freedom],
        "widened": widened,
        "solved": weights.solved(grams, ridge=1e-3, finest=0.05),
        "excitation": everything(excitation_of(regression(), np.array([1.3, 0.4]))),
        "mixed": everything(excitation_of(made().pick([0, 1, 1]), np.array([1.3, 0.4]))),
        "quantiles": [coloured.np.asarray(_quantile(0.9, f)) for f in (None, 3.3, np.array([2.1, np.inf]))],
        "rows": made().rows(np.arange(220) % 3 == 1).tau,
        "stacked": made().stacked(np.array([2.0, 0.3]))[0],
        "spread": made().spread(x),
        "gram": made().gram(np.array([0.5, 2.0])),
    }


def _quantile(level: float, freedom):
    from linkwise.identify.estimation.estimate import quantile

    return quantile(level, freedom)


def _each_joint():
    return [(made().Y[:, j] / 3.0, made().tau[:, j] / 3.0) for j in range(2)]


@scenarios
def terms_of_friction():
    rng = np.random.default_rng(8)
    q = np.cumsum(rng.normal(size=(60, 3)) * 0.03, axis=0)
    qd, qdd, load = rng.normal(size=(3, 60, 3)) * [0.2, 0.5, 1.1]
    axes = np.vstack([np.eye(3), [[0.5, -1.2, 0.0]]])
    signals = friction.AxisSignals.of(q, qd, qdd, load, axes)
    terms = [Term(kind, 0.13) for kind in friction.KINDS]
    terms += [Term(kind, 0.13, width=0.02) for kind in friction.DIRECTED]
    terms += [Term(kind, 0.13, blur=0.07) for kind in friction.DIRECTED]
    every = {f"{k} {term.text}": friction.column(signals, term) for k, term in enumerate(terms)}
    every |= {f"{k} is": f"{t.label} {t.dissipates}" for k, t in enumerate(terms)}
    return every | {
        "loaded": friction.column(signals.with_load(2.0 * load - 0.3, axes), Term("load")),
        "models": {name: everything(friction_named(name, 1, 1)) for name in MODELS},
        "without rotors": everything(friction_named("rich", 2, 1, rotor=False)),
    }


@scenarios
def base_parameters_and_priors():
    found = {}
    for robot in (arm(), chain()):
        found[robot.name] = {
            "rotors first": packed(everything(base_by_rank(robot))),
            "as labelled": packed(
                everything(base_by_rank(robot, order=robot.parameter_labels[::-1], seed=3))
            ),
            "expressions": "; ".join(
                base_by_rank(robot).expression(k) for k in range(len(base_by_rank(robot)))
            ),
            "prior": prior_bodies(robot),
        }
    bare = arm().with_parameters(dict.fromkeys(arm().parameter_labels[:20], 0.0))
    return found | {"without masses": prior_bodies(bare)}


@scenarios
def lags():
    log = run(1, 0.01)
    moved_by = {name: replace(log, tau=np.roll(log.tau, k, axis=0)) for name, k in (("2", 2), ("-1", -1))}
    found = {}
    for name, each in {"0": log, **moved_by}.items():
        observer = Observer(arm(), [condition(each.rows(6, 680), cutoff=12.0)])
        late = lag.estimate_lag(observer)
        shifted = lag.shifted(observer.signals[0], late)
        found[name] = {
            "lag": everything(late),
            "summary": late.summary(),
            "joints": lag.lags_of_joints(observer),
        }
        found[name] |= {"tau": shifted.tau, "record": " ".join(shifted.record)}
    return found | {"given": everything(lag.as_given(0.0123))}


# -- refusals ---------------------------------------------------------------------------------------------------------


@scenarios
def refusals():
    log, call = run(1), partial(identify, arm())
    sprung = arm().with_parameters({"joint1.stiffness": 2.0})
    still = Log(log.t, np.full_like(log.q, 0.3), log.tau, name="still")
    return {
        "joints": told(identify, with_laws(), log),
        "zero": told(call, Log(log.t, log.q, 0.0 * log.tau, name="zero")),
        "still": told(call, still),
        "short": told(call, log.rows(1, 7)),
        "spring": told(identify, sprung, log),
        "friction": told(call, log, friction="culomb"),
        "term": told(Term, "viscosity"),
        "estimator": told(call, log, estimator="wheighted", **FIXED),
        "significance": told(call, log, significance="contributions", friction="none", **FIXED),
        "derivatives": told(call, log, derivatives="splines"),
        "cutoff": told(call, log, cutoff=-3.0),
        "decimation": told(call, log, cutoff=10.0, decimation=0),
        "network": told(call, log, network="yes"),
        "feet": told(call, log, feet=["tip"]),
        "lag": told(call, log, lag=float("nan"), cutoff=9.0),
        "solver": told(ordinary, made(), solver="lu"),
        "order": told(base_by_rank, arm(), order=["link1.m", "nothing"]),
        "rows": told(log.rows, 0, 3),
        "between": told(log.between, 3.0, 2.0),
        "split": told(log.split, 1.2),
        "blocks": told(log.blocks, 0),
        "level": told(weighted(made()).interval, 1.3),
        "value": told(weighted(made()).value, "link1.q"),
    }


class Stretch:
    """Rows of a regression of a robot that walks, as the choice of held feet and weights sees them."""

    def __init__(self, seed: int, count: int):
        rng = np.random.default_rng(seed)
        self.Y = rng.normal(size=(count, 3, 4))
        self.y = (self.Y * np.array([0.3, -0.7, 1.1, 0.2])).sum(axis=2) + 0.1 * rng.normal(size=(count, 3))

    def without_forces(self, held: Any, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.Y * held[:, None, None] * scale[:, None], self.y * held[:, None] * scale


@scenarios
def errors_of_what_was_left_out():
    rows, held = [Stretch(1, 23), Stretch(2, 31)], [np.linspace(0.5, 1.5, count) for count in (23, 31)]
    scale = np.array([1.0, 0.3, 2.0])
    return {
        "error": choosing.left_out_error(rows, held, scale),  # type: ignore[arg-type]
        "solution": choosing.solution(*rows[0].without_forces(held[0], scale)),
    }


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
