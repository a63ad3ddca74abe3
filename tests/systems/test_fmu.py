"""Functional mock-up units: valid, with the bits of Linkwise's own simulation, controllers and derivatives."""

import itertools
import re
import shutil
import subprocess
import zipfile
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import CONTROLLERS, named
from linkwise.embedded import Options
from linkwise.embedded.entries import controller_of
from linkwise.simulate import simulate
from linkwise.systems import VERSIONS, Fmu, SystemExportError, fmu, fmu_description
from linkwise.systems.fmu_model import fmu_model
from linkwise.systems.variables import scalars

fmpy = pytest.importorskip("fmpy")
needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")


class Instance:
    """An instance of an FMU of either version in FMPy, variables by name."""

    def __init__(self, path, folder, kind="CoSimulation", **starts):
        self.description = fmpy.read_model_description(path)
        self.references = {each.name: each.valueReference for each in self.description.modelVariables}
        fmpy.extract(path, folder)
        self.fmu = fmpy.instantiate_fmu(folder, self.description, kind)
        if self.description.fmiVersion == "2.0":
            self.fmu.setupExperiment(startTime=0.0)
            self._get, self._set = self.fmu.getReal, self.fmu.setReal
            self.state = self.fmu.getFMUstate, self.fmu.setFMUstate, self.fmu.freeFMUstate
        else:
            self._get, self._set = self.fmu.getFloat64, self.fmu.setFloat64
            self.state = self.fmu.getFMUState, self.fmu.setFMUState, self.fmu.freeFMUState
        self.fmu.enterInitializationMode()
        for title, values in starts.items():
            self.set(title, values)
        self.fmu.exitInitializationMode()

    def refs(self, title):
        return [ref for name, ref in self.references.items() if name.split(".")[0] == title]

    def get(self, title):
        return np.array(self._get(self.refs(title)))

    def set(self, title, values):
        self._set(self.refs(title), list(map(float, values)))

    def step(self, time, length):
        self.fmu.doStep(currentCommunicationPoint=time, communicationStepSize=length)

    def slopes(self, unknown, known):
        unknowns, columns = self.refs(unknown), []
        for ref in self.refs(known):
            columns.append(self.fmu.getDirectionalDerivative(unknowns, [ref], [1.0]))
        return np.array(columns).T

    def close(self):
        self.fmu.terminate()
        self.fmu.freeInstance()


@pytest.fixture(scope="module")
def robot():
    return lw.load("two_link")


@pytest.fixture(scope="module", params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture(scope="module")
def plant(version, robot, tmp_path_factory):
    path = tmp_path_factory.mktemp("plant") / "arm.fmu"
    Fmu(robot, "forward_dynamics", version=version).write(path)
    return str(path)


@pytest.fixture(scope="module")
def controller(version, robot, tmp_path_factory):
    path = tmp_path_factory.mktemp("controller") / "law.fmu"
    Fmu(robot, "integral_tracking", Options(period=0.002), version=version).write(path)
    return str(path)


@needs_compiler
def test_fmpy_finds_no_fault_and_every_variable_has_joint_unit_and_start(plant, robot):
    from fmpy.validation import validate_fmu

    assert validate_fmu(plant) == []
    described = fmpy.read_model_description(plant)
    found = {each.name: each for each in described.modelVariables}
    joints = [joint.name for joint in robot.coordinate_joints]
    assert [name for name in found if name.startswith("tau.")] == [f"tau.{name}" for name in joints]
    assert [found[f"{title}.{joints[0]}"].unit for title in ("q", "qd", "qdd", "tau")] == [
        "rad", "rad/s", "rad/s2", "N.m",
    ]  # fmt: skip
    assert float(found[f"q.{joints[1]}"].start) == robot.neutral[1]
    (row,) = (u for u in described.outputs if u.variable.name == f"qdd.{joints[0]}")
    assert {v.name.split(".")[0] for v in row.dependencies} == {"q", "qd", "tau"}
    with zipfile.ZipFile(plant) as archive:
        names = archive.namelist()
        assert {each.date_time for each in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert any(name.startswith("binaries/") for name in names)
    assert "sources/fmu_model.c" in names


@needs_compiler
def test_a_controller_with_a_bad_reading_says_so_and_gives_no_torques(controller, tmp_path):
    """Until readings are numbers again; its integral is what it was before."""
    law = Instance(controller, tmp_path / "law", q_d=[0.5, -0.5])
    law.set("q", [0.4, -0.2])
    law.step(0.0, 0.002)
    tau = law.get("tau")
    assert law.get("fault") == [0.0]
    assert np.abs(tau).min() > 0.0
    for bad in (np.nan, np.inf, -np.inf):
        law.set("q", [0.4, bad])
        np.testing.assert_array_equal(law.get("tau"), 0.0)
        assert law.get("fault") == [1.0]
        law.step(0.002, 0.002)  # a warning
    law.set("q", [0.4, -0.2])
    np.testing.assert_array_equal(law.get("tau"), tau)
    assert law.get("fault") == [0.0]


@needs_compiler
def test_robot_and_controller_as_fmus_give_what_simulate_gives(plant, controller, robot, tmp_path):
    """Also: the integrator's step divides the communication step, and memory moves once in a sample period."""
    start, target = np.linspace(-0.3, 0.4, robot.dof), np.linspace(0.2, -0.5, robot.dof)
    arm = Instance(plant, tmp_path / "arm", q=start)
    law = Instance(controller, tmp_path / "law", q_d=target)
    torques = []
    for k in range(40):
        law.set("q", arm.get("q"))
        law.set("qd", arm.get("qd"))
        torques.append(law.get("tau"))
        arm.set("tau", torques[-1])
        arm.step(0.002 * k, 0.002)
        law.step(0.002 * k, 0.002)
    own = simulate(
        robot, named("integral_tracking", robot, frequency=10.0), target, q=start, duration=0.08, control_period=0.002
    )  # fmt: skip
    np.testing.assert_allclose(
        torques, own.tau[:40], rtol=1e-12, atol=1e-12
    )  # gains are constants in the FMU
    np.testing.assert_allclose(arm.get("q"), own.final_q, rtol=1e-12)
    replayed = simulate(
        robot,
        lambda t, q, qd, reference: torques[round(t / 0.002)],
        q=start,
        duration=0.08,
        control_period=0.002,
    )
    np.testing.assert_array_equal(arm.get("q"), replayed.final_q)
    np.testing.assert_array_equal(arm.get("qd"), replayed.final_qd)
    arm.step(0.08, 0.0007)  # shorter than the step of the integrator
    with pytest.raises(Exception, match=r"status 3|error"):
        law.step(0.08, 0.0007)
    with pytest.raises(Exception, match=r"status 3|error"):
        arm.set("q", start)  # an initial value
    arm.set("tau", np.full(robot.dof, np.nan))
    with pytest.raises(Exception, match=r"status 3|error"):
        arm.step(0.0807, 0.001)
    arm.close()
    law.fmu.freeInstance()


@needs_compiler
def test_model_exchange_has_the_derivatives_of_the_robot(plant, robot, tmp_path):
    rng = np.random.default_rng(1)
    q, qd, tau = rng.uniform(-1, 1, (3, robot.dof))
    arm = Instance(plant, tmp_path, "ModelExchange", q=q, qd=qd, tau=tau)
    np.testing.assert_array_equal(arm.get("qdd"), robot.forward_dynamics(q, qd, tau))
    for known, expected in zip(
        ("q", "qd", "tau"), robot.forward_dynamics_derivatives(q, qd, tau), strict=True
    ):
        np.testing.assert_array_equal(arm.slopes("qdd", known), expected)
    np.testing.assert_array_equal(arm.slopes("qd", "qd"), np.eye(robot.dof))
    arm.close()
    found = fmpy.simulate_fmu(
        plant, fmi_type="ModelExchange", solver="CVode", relative_tolerance=1e-9, stop_time=0.1, output_interval=0.1
    )  # fmt: skip
    free = simulate(robot, lambda t, q, qd, reference: np.zeros_like(q), duration=0.1, warn=False)
    last = np.array([found[f"q.{joint.name}"][-1] for joint in robot.coordinate_joints])
    np.testing.assert_allclose(last, free.final_q, atol=1e-6)


@needs_compiler
def test_a_saved_state_brings_everything_back(controller, robot, tmp_path):
    law = Instance(controller, tmp_path, q_d=np.ones(robot.dof))
    law.step(0.0, 0.002)
    get, put, free = law.state
    saved, before = get(), law.get("tau")
    law.step(0.002, 0.004)
    assert not np.array_equal(law.get("tau"), before)
    put(saved)
    np.testing.assert_array_equal(law.get("tau"), before)
    words = law.fmu.serializeFMUState(saved)
    law.step(0.002, 0.004 * (1 - 1e-12))  # two sample periods but for round-off
    again = law.fmu.deserializeFMUState(words)
    put(again)
    np.testing.assert_array_equal(law.get("tau"), before)
    free(again)
    free(saved)
    with pytest.raises(Exception, match=r"status 3|error"):
        law.set("tau", before)
    law.fmu.reset()
    np.testing.assert_array_equal(law.get("q_d"), robot.neutral)
    law.fmu.freeInstance()


def test_equal_robots_give_equal_files_and_the_sources_have_no_warnings(version, tmp_path):
    first, again = (Fmu(lw.load("two_link"), "gravity_torques", version=version) for _ in range(2))
    assert first.content == again.content
    assert Fmu(lw.load("two_link"), "state_observer", version=version).files != first.files
    heavier = lw.load("two_link", gravity=(0.0, -11.0, 0.0))
    tokens = {
        re.search(r'(?:guid|instantiationToken)="([^"]+)"', made.files["modelDescription.xml"]).group(1)
        for made in (first, Fmu(heavier, "gravity_torques", version=version))
    }
    assert len(tokens) == 2  # other code, though the description says the same
    if not shutil.which("gcc"):
        return
    for path, text in first.files.items():
        (tmp_path / path.split("/")[-1]).write_text(text)
    command = ["gcc", "-std=c99", "-fsyntax-only", *WARNINGS, f"fmi{version[0]}.c", "fmu_model.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_a_compiler_there_are_sources_alone(monkeypatch):
    monkeypatch.setattr(fmu.shutil, "which", lambda name: None)
    made = Fmu(lw.load("two_link"), "computed_torque")
    assert made.binary is None
    assert "two_link_computed_torque_computed_torque.c" in made.files["modelDescription.xml"]


def test_numbers_of_an_argument_are_named_by_joint_or_counted_from_one():
    robot = lw.load("two_link")
    assert [name for name, *_ in scalars(robot, "q", 2)] == [f"q.{joint}" for joint in robot.joint_names]
    assert [name for name, *_ in scalars(robot, "payload", 10)] == [f"payload[{k}]" for k in range(1, 11)]
    units = [unit for _, unit, _ in scalars(robot, "payload", 10)]
    assert units == ["kg"] + ["kg.m"] * 3 + ["kg.m2"] * 6
    assert [name for name, *_ in scalars(robot, "time", 1)] == ["time"]


def described(model, version):
    """(variables by reference, the lists of ModelStructure as {reference: dependencies}) of an FMU's description."""
    root = ET.fromstring(fmu_description.model_description(model, version, "", []))
    second = version == "2.0"
    variables = {}
    for each in root.find("ModelVariables"):
        value = each.find("Real") if second else each
        variables[int(each.get("valueReference"))] = {**value.attrib, **each.attrib}
    groups = ("Outputs", "Derivatives", "InitialUnknowns")
    tags = ("Output", "ContinuousStateDerivative", "InitialUnknown")
    lists = []
    for group, tag in zip(groups, tags, strict=True):
        found = root.find("ModelStructure")
        rows = found.iterfind(f"{group}/Unknown" if second else tag)
        key, shift = ("index", 1) if second else ("valueReference", 0)
        lists.append(
            {
                int(row.get(key)) - shift: {int(x) - shift for x in row.get("dependencies").split()}
                for row in rows
            }
        )
    return variables, lists


def test_descriptions_have_starts_units_and_dependencies_of_what_is_computed():
    """Robots with a prismatic joint or a floating base, functions that remember, settings of either sign."""
    sliding, floating = lw.load("stanford"), lw.load("two_link", base="floating")
    push = {"force_target": [0.0, 0.0, 0.0, 0.0, 0.0, -5.0], "selection": [0, 0, 0, 0, 0, 1]}
    cases = [
        (sliding, "forward_dynamics", Options()),
        (floating, "forward_dynamics", Options()),
        (sliding, "hybrid_force_motion", Options(gains=push)),
        (sliding, "integral_tracking", Options()),
        (sliding, "state_observer", Options()),
        (sliding, "trajectory", Options()),
    ]
    models = [(robot, name, options, fmu_model(robot, name, options)) for robot, name, options in cases]
    for (robot, name, options, model), version in itertools.product(models, VERSIONS):
        variables, (outputs, derivatives, unknowns) = described(model, version)
        by_title = {}
        for reference, each in variables.items():
            by_title.setdefault(re.split(r"[.\[]", each["name"])[0], []).append(reference)
        inputs = {k for k, each in variables.items() if each["causality"] == "input"}
        results = {k for k, each in variables.items() if each["causality"] == "output"}
        exact = {k for k in results if each_start(variables[k]) is not None}
        states = {k for k in exact if name == "forward_dynamics" and robot is sliding}
        assert outputs.keys() == results
        assert derivatives.keys() == (
            {k for title in ("qd", "qdd") for k in by_title[title]} if states else set()
        )
        first = 1 if version == "2.0" else 0  # numbers of variables; value references in FMI 3.0
        named = {k: int(each["derivative"]) - first for k, each in variables.items() if "derivative" in each}
        assert named == {
            k: of
            for title, rate in (("q", "qd"), ("qd", "qdd"))
            for of, k in zip(by_title[title] if states else (), by_title[rate] if states else (), strict=True)
        }
        assert unknowns.keys() == results - exact
        assert all(dependencies == inputs | exact for dependencies in unknowns.values())
        assert all(
            dependencies == (({k} & states) if k in exact else inputs | states)
            for k, dependencies in outputs.items()
        )
        # starts: rest at the neutral position, settings of the law
        expected = {title: robot.neutral for title in ("q", "q_d", "estimated_q", "start", "end")}
        expected |= {"duration": [1.0], "step": [options.period]}
        if name in CONTROLLERS:
            expected |= {
                key: np.ravel(v) for key, v in controller_of(robot, name, options).settings().items()
            }
        for title, references in by_title.items():
            starts = [each_start(variables[k]) for k in references]
            if references[0] in results - exact or title == "time":
                assert starts == [None] * len(starts)
            else:
                wanted = np.clip(expected.get(title, np.zeros(len(starts))), -1e30, 1e30)
                assert starts == wanted.tolist(), (name, title)
        if robot is sliding:
            kinds = [joint.revolute for joint in robot.coordinate_joints]
            for title, turning, moving in (("q", "rad", "m"), ("qd", "rad/s", "m/s"), ("tau", "N.m", "N")):
                units = [variables[k].get("unit") for k in by_title.get(title, ())]
                assert units in ([], [turning if revolute else moving for revolute in kinds])


def each_start(variable):
    return float(variable["start"]) if "start" in variable else None


def test_names_that_fmi_does_not_allow_stay_different():
    from linkwise.systems.variables import _quoted

    assert _quoted("joint1") == "joint1"
    assert _quoted("base.x") == "base.x"
    assert _quoted("joint-1") == "'joint-1'"
    assert len({_quoted(name) for name in ("ä1", "ö1", "'1", "`1", '"1', "\\1", "\n1")}) == 7
    assert _quoted("ä1").isascii()


def test_what_has_no_fmu_is_refused():
    robot = lw.load("two_link")
    with pytest.raises(SystemExportError, match="no FMU of a loop"):
        Fmu(robot, "closed_loop")
    with pytest.raises(SystemExportError, match="float64"):
        Fmu(robot, "computed_torque", Options("float32"))
    with pytest.raises(lw.LinkwiseError, match=r"no FMI '1.0'"):
        Fmu(robot, "computed_torque", version="1.0")


@needs_compiler
def test_the_command_writes_an_fmu_and_refuses_other_options(tmp_path):
    from click.testing import CliRunner

    from linkwise.cli.generate import command

    path = tmp_path / "law.fmu"
    common = ["two_link", "gravity_pd", "--target", "fmu", "--fmi", "3.0"]
    said = CliRunner().invoke(command, [*common, "--out", str(path)])
    assert said.exit_code == 0
    assert "binary: binaries/" in said.output
    assert fmpy.read_model_description(str(path)).fmiVersion == "3.0"
    for more, message in (([], "needs --out"), (["--main", "--out", str(path)], "--main is for --target c")):
        refused = CliRunner().invoke(command, [*common, *more])
        assert refused.exit_code == 2
        assert message in refused.output
