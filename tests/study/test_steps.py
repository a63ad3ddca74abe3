"""What can be computed: functions of the robot with everything that may vary, formulas, own functions, simulations."""

import inspect

import numpy as np
import pytest

import linkwise as lw
from linkwise.study.errors import StudyError
from linkwise.study.schema import StudySettings
from linkwise.study.steps import closed_loop
from linkwise.study.steps.identification import ExcitingMotion
from linkwise.study.steps.pipeline import PipelineStep
from linkwise.study.steps.robot_parameters import RobotParameters

ROBOT = lw.load("two_link")


def at(compute, vary, names, points=7, **others):
    """(study, values at some points); what is not compiled is run."""
    study = lw.study(
        robot="two_link", samples=points, seed=5, vary=vary, compute=compute, keep={names[0]: "raw"}, **others
    )
    return study, study.at(np.arange(points), names)


def test_parameters_and_payload_vary():
    labels = [label for label in ROBOT.parameter_labels if label.endswith((".m", ".viscous_friction"))]
    vary = {
        "q": {"uniform": [-2, 2]},
        "qd": {"uniform": [-2, 2]},
        "qdd": [0.3, -0.4],
        "payload.mass": {"uniform": [0, 3]},
        "payload.com": {"uniform": [-0.2, 0.2]},
        "payload.inertia": {"uniform": [[0.1, 0, 0, 0.1, 0, 0.1], [0.2, 0.01, 0.01, 0.2, 0.01, 0.2]]},
        "changes": {"labels": ["*.m", "*.viscous_friction"], "uniform": [0.5, 2.0]},
    }
    names = ["tau", "q", "qd", "payload.mass", "payload.com", "payload.inertia", "changes"]
    _, found = at({"tau": {"function": "inverse_dynamics"}}, vary, names)
    for k in range(7):
        robot = ROBOT.with_parameters(dict(zip(labels, found["changes"][k], strict=True)))
        robot = robot.with_payload(
            found["payload.mass"][k], found["payload.com"][k], found["payload.inertia"][k]
        )
        tau = robot.inverse_dynamics(found["q"][k], found["qd"][k], [0.3, -0.4])
        assert np.allclose(found["tau"][k], tau, rtol=1e-12, atol=1e-12)


def test_relative_and_together():
    link = ROBOT.moving_joints[0].child
    vary = {
        "q": {"uniform": [-2, 2]},
        "errors": {"labels": f"{link}.*", "relative": True, "uniform": [0.8, 1.2], "together": True},
        "others": {"labels": "*.viscous_friction", "relative": True, "normal": [1.0, 0.1]},
    }
    compute = {
        "g": {"function": "bias_torques", "inputs": {"qd": 1.0}},
        "tau": {"function": "inverse_dynamics", "inputs": {"qd": 1.0, "qdd": 0.0}},
    }
    study, found = at(compute, vary, ["errors", "g", "q", "others", "tau"])
    nominal = dict(zip(ROBOT.parameter_labels, ROBOT.parameters, strict=True))
    scale = found["errors"][:, 0] / nominal[f"{link}.m"]
    assert ((scale > 0.8) & (scale < 1.2)).all()
    for k, label in enumerate(study.plan.description.variables[1].labels):
        assert np.allclose(found["errors"][:, k], scale * nominal[label], rtol=1e-14)


def test_together_by_link():
    vary = {
        "q": {"uniform": [-2, 2]},
        "errors": {"labels": "*.[mhI]*", "relative": True, "uniform": [0.8, 1.2], "together": "link"},
    }
    study, found = at({"g": {"function": "gravity_torques"}}, vary, ["errors", "g", "q"])
    variable = study.plan.description.variables[1]
    assert variable.draws == ROBOT.dof
    nominal = np.array(
        [dict(zip(ROBOT.parameter_labels, ROBOT.parameters, strict=True))[k] for k in variable.labels]
    )
    robot = ROBOT.with_parameters(dict(zip(variable.labels, found["errors"][3], strict=True)))
    assert np.allclose(robot.gravity_torques(found["q"][3]), found["g"][3], rtol=1e-12)
    assert len(set((found["errors"][3] / np.where(nominal == 0, 1, nominal)).round(12)) - {0.0}) == ROBOT.dof


def test_every_function_of_a_robot():
    vary = {name: {"uniform": [-1, 1]} for name in ("q", "qd", "qdd", "tau")}
    functions = {
        "id": ("inverse_dynamics", ("q", "qd", "qdd")),
        "fd": ("forward_dynamics", ("q", "qd", "tau")),
        "M": ("mass_matrix", ("q",)),
        "J": ("jacobian", ("q",)),
        "T": ("pose", ("q",)),
        "E": ("kinetic_energy", ("q", "qd")),
    }
    compute = {name: {"function": function} for name, (function, _) in functions.items()}
    _, found = at(compute, vary, [*functions, *vary])
    for name, (function, inputs) in functions.items():
        expected = getattr(ROBOT, function)(*(found[key] for key in inputs))
        assert np.allclose(found[name], expected, rtol=1e-10, atol=1e-11), name


def test_only_functions_of_a_frame_need_one():
    """A robot with two ends has no frame that could be meant."""
    tool = lw.Joint("mount", "fixed", ROBOT.moving_joints[0].child, "tool")
    forked = lw.Robot("forked", [*ROBOT.links, lw.Link("tool")], [*ROBOT.joints, tool])
    tables = {"robot": forked, "samples": 10, "vary": {"q": {"uniform": [-1, 1]}}, "keep": {"M": "raw"}}
    study = lw.study({**tables, "compute": {"M": {"function": "mass_matrix"}}})
    assert study.plan.description.steps[0].setting.frame is None
    with pytest.raises(StudyError, match="name the frame: one of"):
        lw.study({**tables, "compute": {"M": {"function": "pose"}}})


def test_conjugate_gradients_tell_their_iterations(run):
    tables = {
        "robot": "puma560",
        "samples": 100,
        "vary": {name: {"uniform": [-1, 1]} for name in ("q", "qd", "tau")},
        "compute": {"cg": {"function": "forward_dynamics", "algorithm": "conjugate_gradient"}},
        "keep": {"cg.iterations": ["max", "min"], "cg.qdd": "raw"},
    }
    data = run(tables).dataset().load()
    assert 6 <= data["cg.iterations_max"] <= 60
    found = lw.study(tables).at(np.arange(100), ["q", "qd", "tau"])
    exact = lw.load("puma560").forward_dynamics(*(found[name] for name in ("q", "qd", "tau")))
    assert np.allclose(data["cg.qdd"], exact, rtol=1e-6, atol=1e-6)


def test_large_robots_are_computed_in_loops(run):
    """Too large to be written out: called with arrays, the same numbers."""
    robot = lw.planar_chain(60)
    tables = {
        "robot": robot,
        "samples": 50,
        "vary": {"q": {"uniform": [-1, 1]}},
        "compute": {
            "tau": {"function": "inverse_dynamics", "inputs": {"qd": 0.0, "qdd": 1.0}},
            "top": "max(abs(tau))",
        },
        "keep": {"tau": "raw", "top": ["max"]},
    }
    study = lw.study(tables)
    assert [step.name for step in study.plan.later] == ["tau", "top"]
    data = run(tables).dataset().load()
    q = study.at(np.arange(50), ["q"])["q"]
    expected = robot.inverse_dynamics(q, np.zeros(60), np.ones(60))
    assert np.allclose(data.tau, expected, rtol=1e-12)
    assert data.top_max == np.abs(data.tau).max()


def test_own_functions(run):
    tables = {
        "robot": "two_link",
        "samples": 100,
        "vary": {"q": {"uniform": [-1, 1]}, "x": {"uniform": [0, 1]}},
        "compute": {
            "tau": {"function": "gravity_torques"},
            "heat": {"call": "own_functions:heat", "inputs": {"payload": "x"}},
            "mine": {"call": "own_functions:slow_sum", "outputs": ["sum", "both"]},
            "late": "mine.sum + heat + sum(q)",
        },
        "keep": {name: "raw" for name in ("heat", "mine.sum", "mine.both", "late", "q", "x", "tau")},
    }
    data = run(tables).dataset().load()
    assert np.allclose(data.heat, data.q[:, 0] * data.q[:, 1] + data.x)
    assert np.allclose(data["mine.sum"], data.q.sum("joint"))
    assert np.array_equal(data["mine.both"], np.concatenate([data.q, data.tau], axis=1))
    assert np.allclose(data.late, 2 * data.q.sum("joint") + data.heat)


def test_kernels_and_functions_as_objects(run):
    tables = {
        "robot": ROBOT,
        "samples": 20,
        "vary": {"q": {"uniform": [-1, 1]}, "m": 2.0},
        "compute": {"twice": lambda q: 2 * q},
        "keep": {"twice": "raw", "q": "raw", "m": "raw"},
    }
    data = run(tables).dataset().load()
    assert np.array_equal(data.twice, 2 * data.q)


def test_a_function_of_the_wrong_shape_is_found_before_the_run():
    with pytest.raises(StudyError, match=r"compute\.bad: expected shape \(2, …\), got \(\)"):
        lw.study(
            robot="two_link",
            samples=10,
            vary={"q": {"uniform": [0, 1]}},
            compute={"bad": {"call": "own_functions:wrong_shape"}},
            keep={"bad": "raw"},
        )


SIMULATION = {
    "robot": "two_link",
    "samples": 40,
    "seed": 2,
    "vary": {
        "errors": {"labels": "*.[mhI]*", "relative": True, "uniform": [0.8, 1.2], "together": "link"},
        "goal": {"uniform": [-1, 1], "size": 2},
        "kp": {"uniform": [80.0, 120.0]},
    },
    "compute": {
        "run": {
            "simulate": "tracking",
            "duration": 0.2,
            "step": 0.001,
            "control_period": 0.002,
            "gains": {"kp": "kp", "kd": 20.0},
            "reference": {"from": 0.0, "to": "goal", "duration": 0.2},
        },
        "worst": "max(run.max_error)",
    },
    "keep": {
        "run.max_error": {"raw": True, "statistics": ["max"]},
        "worst": "raw",
        "goal": "raw",
        "errors": "raw",
        "kp": "raw",
    },
    "failures": {"lost": "worst > 0.05"},
}


def test_closed_loop(run):
    simulate = pytest.importorskip("linkwise.simulate")
    control = pytest.importorskip("linkwise.control")
    results = run(SIMULATION)
    data = results.dataset().load()
    k = 11
    study = lw.study(SIMULATION)
    labels = study.plan.description.variables[0].labels
    plant = ROBOT.with_parameters(dict(zip(labels, data.errors.values[k], strict=True)))
    controller = control.Tracking(ROBOT, control.Gains(kp=float(data.kp[k]), kd=20.0))
    found = simulate.simulate(
        plant,
        controller,
        simulate.Moves(np.zeros(2), data.goal.values[k], 0.2),
        duration=0.2,
        step=0.001,
        control_period=0.002,
    )
    assert np.allclose(data["run.max_error"][k], np.abs(found.error).max(axis=-2), rtol=1e-6, atol=1e-12)
    assert data["run.max_error"].attrs["units"] == "rad"
    assert results.table("failures/lost").num_rows == int((data.worst > 0.05).sum())


def test_what_a_closed_loop_leaves_out_is_as_in_a_single_simulation():
    simulate = pytest.importorskip("linkwise.simulate")
    usual = inspect.signature(simulate.simulate).parameters
    entry = dict(SIMULATION["compute"]["run"])
    del entry["step"], entry["control_period"]
    step = closed_loop.read("run", StudySettings(entry, "compute.run"), ROBOT, RobotParameters(()), 0)
    for name in ("step", "control_period", "integrator", "every", "delay"):
        assert step.options[name] == usual[name].default, name


def test_noise_belongs_to_the_point(run):
    """Noisy sensors give the same results however the points are cut into chunks."""
    entry = {**SIMULATION["compute"]["run"], "sensors": {"position_noise": 1e-3}}
    tables = {**SIMULATION, "compute": {"run": entry, "worst": "max(run.max_error)"}}
    data = [run({**tables, "chunk": chunk}).dataset().load() for chunk in (7, 40)]
    assert np.array_equal(data[0]["run.max_error"], data[1]["run.max_error"])
    assert not np.array_equal(data[0]["run.max_error"], run(SIMULATION).dataset()["run.max_error"])


def test_a_closed_loop_is_checked_first():
    for change, message in (
        ({"simulate": "trackng"}, r"compute\.run\.simulate: no 'trackng'; did you mean 'tracking'"),
        ({"gains": {"kp": "goal"}}, r"compute\.run\.gains\.kp"),
        ({"duration": 0.2005}, r"compute\.run: .*whole number of control periods"),
        ({"steps": 3}, r"compute\.run\.steps: unknown key"),
        ({"reference": {"to": "nowhere"}}, r"compute\.run: needs nowhere"),
    ):
        tables = {
            **SIMULATION,
            "compute": {"run": {**SIMULATION["compute"]["run"], **change}, "worst": "max(run.max_error)"},
        }
        with pytest.raises(StudyError, match=message):
            lw.study(tables)


IDENTIFICATION = {
    "robot": "two_link",
    "samples": 600,
    "seed": 4,
    "vary": {
        "errors": {"labels": "*.[mhI]*", "relative": True, "uniform": [0.8, 1.2], "together": "link"},
        "sigma": {"uniform": [0.1, 0.3]},
    },
    "compute": {
        "id": {"identify": "least_squares", "torque_noise": "sigma", "motion": {"rows": 60, "amplitude": 1.5}}
    },
    "keep": {"id.estimate": "raw", "id.error": "raw", "id.residual": "raw", "sigma": "raw", "errors": "raw"},
}


@pytest.mark.parametrize(
    ("given", "each"), [(1.5, (1.5, 1.5)), ([1.5], (1.5, 1.5)), ([0.5, 2.0], (0.5, 2.0))]
)
def test_amplitudes_of_the_motion_are_for_all_joints_or_for_each(given, each):
    tables = {
        **IDENTIFICATION,
        "compute": {"id": {**IDENTIFICATION["compute"]["id"], "motion": {"amplitude": given}}},
    }
    (step,) = lw.study(tables).plan.description.steps
    assert step.motion.amplitude == each


def test_coefficients_of_the_motion_are_within_the_amplitude():
    for seed in range(8):
        q, qd, _ = ExcitingMotion(2 * np.pi, 1, (1.0, 1.0), seed, 64).states(ROBOT)  # a sin t + b cos t
        assert np.abs([q[0], qd[0]]).max() <= 1.0
        np.testing.assert_allclose(q[16], qd[0], atol=1e-12)


def test_identification(run):
    study = lw.study(IDENTIFICATION)
    data = run(IDENTIFICATION).dataset().load()
    base = ROBOT.base_parameters()
    labels = study.plan.description.variables[0].labels
    exact = np.array([
        base.combination @ ROBOT.with_parameters(dict(zip(labels, row, strict=True))).parameters
        for row in data.errors.values
    ])  # fmt: skip
    assert np.allclose(data["id.estimate"] - data["id.error"], exact, rtol=1e-9, atol=1e-10)
    step = study.plan.later[0]
    W, inverse = step._solution
    assert np.allclose(inverse @ W, np.eye(len(base)), atol=1e-10)
    assert np.allclose(inverse, np.linalg.pinv(W), rtol=1e-8, atol=1e-10)
    standard = (
        data["id.error"].values / data.sigma.values[:, np.newaxis] / np.sqrt(np.sum(inverse**2, axis=1))
    )
    assert np.abs(standard.mean(axis=0)).max() < 5 / np.sqrt(600)
    assert np.abs(standard.var(axis=0) - 1).max() < 5 * np.sqrt(2 / 600)
    assert data["id_parameter"].values.tolist() == list(base.labels)


def test_identification_does_not_depend_on_chunks(run):
    data = [run({**IDENTIFICATION, "chunk": chunk}).dataset().load() for chunk in (64, 250)]
    assert np.array_equal(data[0]["id.estimate"], data[1]["id.estimate"])


def test_an_identification_is_checked_first():
    for change, message in (
        ({"identify": "least_square"}, r"compute\.id\.identify: no .*did you mean 'least_squares'"),
        ({"torque_noise": -1.0}, r"compute\.id\.torque_noise: expected 1 or 2 numbers"),
        ({"motion": {"harmonics": 0}}, r"compute\.id\.motion\.harmonics"),
        ({"motion": {"rows": 2}}, r"compute\.id: the motion does not excite"),
    ):
        entry = {**IDENTIFICATION["compute"]["id"], **change}
        vary = dict(IDENTIFICATION["vary"])
        if "torque_noise" in change:
            del vary["sigma"]
        keep = {"id.residual": "raw"}
        with pytest.raises(StudyError, match=message):
            lw.study({**IDENTIFICATION, "vary": vary, "compute": {"id": entry}, "keep": keep})


def test_identification_by_the_pipeline(run):
    """The whole of ``linkwise.identify`` at every point: the more noise, the worse the robot that is found."""
    pytest.importorskip("scipy")
    pytest.importorskip("linkwise.identify")
    entry = {
        "identify": "pipeline",
        "torque_noise": "sigma",
        "position_noise": 1e-6,
        "friction": "none",
        "motion": {"rows": 400, "amplitude": 1.5},
    }
    tables = {
        "robot": "two_link",
        "vary": {"sigma": {"grid": [0.01, 1.0]}},
        "compute": {"id": entry},
        "keep": {"id.relative_error": "raw", "id.condition": "raw"},
    }
    data = run(tables).dataset().load()
    error = data["id.relative_error"].values
    assert (error[0] < 1.0).all()
    assert (error[1] > 3 * error[0]).all()
    assert (data["id.condition"] > 1).all()


def test_single_points_that_are_refused_stop_no_study(monkeypatch):
    """Only where no point can be identified is there nothing to run."""
    from linkwise.identify import IdentificationError

    entry = {"identify": "pipeline", "torque_noise": "sigma", "motion": {"rows": 40}}
    tables = {"robot": "two_link", "vary": {"sigma": {"grid": [0.01, 1.0]}}, "compute": {"id": entry}}
    refused: set[float] = set()

    def one(step, exact, measured, shaken):
        loud = float(np.abs(measured - exact).max() > 0.2)
        return IdentificationError("too loud") if loud in refused else (np.zeros(2), 1.0)

    monkeypatch.setattr(PipelineStep, "_one", one)
    study = lw.study({**tables, "keep": {"id.condition": "raw"}})
    step = next(each for each in study.plan.description.steps if each.name == "id")
    given = {"sigma": np.array([[0.01], [1.0]])}
    for refused_now, expected in ((set(), [False, False]), ({1.0}, [False, True]), ({0.0}, [True, False])):
        refused |= refused_now
        found = step.tried(given)
        assert np.isnan(found["id.condition"]).tolist() == expected
        assert np.isnan(found["id.relative_error"]).all(axis=1).tolist() == expected
        refused -= refused_now
    refused |= {0.0, 1.0}
    with pytest.raises(StudyError, match=r"^compute\.id: too loud$"):
        step.tried(given)


def test_an_identification_that_cannot_work_is_refused_first():
    pytest.importorskip("scipy")
    pytest.importorskip("linkwise.identify")
    tables = {
        "robot": "two_link",
        "vary": {"sigma": {"grid": [0.01, 1.0]}},
        "keep": {"id.condition": "raw"},
    }
    for change, message in (
        ({"friction": "vicsous"}, r"compute\.id\.friction: no 'vicsous'; did you mean"),
        ({"position_noise": -1.0}, r"compute\.id\.position_noise: expected a standard deviation"),
        ({"motion": {"rows": 2}}, r"^compute\.id: \S.*"),
    ):
        entry = {"identify": "pipeline", "torque_noise": "sigma", **change}
        with pytest.raises(StudyError, match=message) as caught:
            lw.study({**tables, "compute": {"id": entry}})
        assert "\n" not in str(caught.value)
