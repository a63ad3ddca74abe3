"""robots, info, check, operations, generate."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.bench import agreement
from linkwise.cli.parts.counting import axes_of, totals
from linkwise.cli.parts.published import OURS, _is, published
from linkwise.records.published import PUBLISHED


def test_robots(linkwise):
    listed = [entry["name"] for entry in linkwise("robots", "--json").json]
    assert listed == list(lw.robots())
    text = linkwise("robots").out
    assert all(name in text for name in listed)


@pytest.mark.parametrize("name", lw.robots())
def test_info(linkwise, name):
    robot = lw.load(name)
    facts = linkwise("info", name, "--json").json
    assert facts["dof"] == robot.dof
    assert [joint["name"] for joint in facts["joints"] if joint["type"] != "fixed"] == list(robot.joint_names)
    assert facts["parameters"] == len(robot.parameters)
    assert facts["mass"] == pytest.approx(sum(link["mass"] for link in facts["links"]))
    text = linkwise("info", name).out
    assert all(joint in text for joint in robot.joint_names)


def test_info_of_a_changed_robot(linkwise):
    facts = linkwise("info", "panda", "--gravity", "0,0,-1.62", "--lock", "panda_joint7=0.5", "--json").json
    assert facts["gravity"] == [0.0, 0.0, -1.62]
    assert facts["dof"] == 6


def test_info_shows_what_is_odd(linkwise, tmp_path):
    odd = tmp_path / "odd.urdf"
    lw.save(lw.load("two_link"), odd)
    odd.write_text(odd.read_text().replace('mass value="1.0"', 'mass value="0.001"'))
    ran = linkwise("info", odd)
    assert ran.status == 0


def test_check_agrees(linkwise):
    ran = linkwise("check", "puma560", "--states", "3", "--json")
    assert ran.status == 0
    assert ran.json["agree"]
    ours = [
        finding
        for finding in ran.json["findings"]
        if finding["who"] in lw.load("puma560").algorithms("inverse_dynamics")
    ]
    assert {finding["verdict"] for finding in ours} == {"agrees", "reference"}


def test_check_compares_with_the_engines_that_are_here(linkwise):
    pytest.importorskip("pinocchio")
    text = linkwise("check", "panda", "--states", "2").out
    assert text.count("pinocchio") == 6


def test_check_reads_the_given_file_with_the_other_engine(linkwise, tmp_path):
    pytest.importorskip("pinocchio")
    path = tmp_path / "tree.urdf"
    lw.save(lw.random_robot(3, 5, tree=True, rotor=True), path)
    assert linkwise("check", path, "--states", "2", "--json").json["agree"]


def test_check_ends_with_1_when_something_disagrees(linkwise, monkeypatch):
    monkeypatch.setattr(agreement, "ALGORITHM_TOLERANCE", 0.0)
    ran = linkwise("check", "two_link", "--states", "2")
    assert ran.status == 1
    assert "DISAGREES" in ran.out


def test_check_says_why_a_robot_is_refused(linkwise, tmp_path):
    """A massless tip has no acceleration: forward dynamics refuses, and names the joint."""
    path = tmp_path / "massless.urdf"
    robot = lw.planar_chain(2)
    lw.save(
        robot.with_parameters({label: 0.0 for label in robot.parameter_labels if label.startswith("link2.")}),
        path,
    )
    ran = linkwise("check", path, "--states", "2", "--json")
    refused = [f for f in ran.json["findings"] if f["verdict"] == "refuses" and f["who"] == "kalman"]
    assert refused
    assert "joint2" in refused[0]["reason"]


MASSLESS = (
    '<robot name="zero"><link name="a"/><link name="b"/><joint name="j1" type="continuous">'
    '<parent link="a"/><child link="b"/></joint></robot>'
)


@pytest.fixture
def massless(tmp_path):
    path = tmp_path / "zero.urdf"
    path.write_text(MASSLESS)
    return path


def test_an_arm_without_mass_is_said_to_be_one(linkwise, massless, tmp_path):
    """Once, in one line, wherever a person looks at the robot or its torques."""
    assert "warning: " in linkwise("info", massless).out
    facts = linkwise("info", massless, "--json").json
    assert facts["massless_joints"] == ["j1"]
    assert "moves no mass (j1)" in facts["warnings"][0]
    report = tmp_path / "report.html"
    ran = linkwise("inverse", massless, "--trajectory", "quintic", "--to", "1", "--report", report)
    assert ran.status == 0
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("linkwise: warning: ")
    assert "1 joint moves no mass (j1)" in ran.err
    assert "1 joint moves no mass (j1)" in report.read_text()


def test_check_agrees_on_nothing_where_there_is_nothing(linkwise, massless):
    ran = linkwise("check", massless, "--states", "2")
    assert ran.status == 1
    assert "agree" not in ran.out
    assert "nothing was compared" in ran.out
    found = linkwise("check", massless, "--states", "2", "--json").json
    assert found["agree"] is False
    assert {f["verdict"] for f in found["findings"]} <= {"refuses", "only zeros", "reference", "not compared"}


def test_operations(linkwise):
    counted = linkwise("operations", "puma560", "--function", "inverse_dynamics", "--json").json["counts"]
    assert [row["algorithm"] for row in counted] == list(lw.load("puma560").algorithms("inverse_dynamics"))
    newton = counted[0]
    assert sum(stage["multiplications"] for stage in newton["by_stage"].values()) == newton["multiplications"]
    assert newton["published"][0] == {"source": "Khosla", "multiplications": 500, "additions": 403}


def test_operations_as_a_table(linkwise):
    text = linkwise("operations", "two_link", "--stages").out
    assert "coefficients" in text
    assert "conjugate gradients: 2 iterations" in text
    assert "motion outward" in text


def test_operations_of_an_arm_that_no_paper_counts(linkwise):
    """The Stanford arm has a prismatic joint: no general arm beside it."""
    text = linkwise("operations", "stanford", "--function", "mass_matrix").out
    assert "general arm" not in text


def test_operations_without_a_robot(linkwise):
    assert "Missing argument 'ROBOT'" in linkwise("operations").refused()


def test_operations_of_very_many_joints(linkwise, tmp_path):
    path = tmp_path / "long.urdf"
    lw.save(lw.planar_chain(200), path)
    assert "200 joints" in linkwise("operations", path).refused()
    generated = linkwise("generate", path, "inverse_dynamics")  # as loops over the links
    assert generated.status == 0
    assert "for (" in generated.out
    assert "too many links" in linkwise("generate", path, "inverse_dynamics", "--target", "python").refused()


def test_printed_counts_are_those_of_the_papers():
    """Kozłowski 701/520, 523/432, 1261/1173; Valera 590/430; Fijany–Scheid 2637/2277 at six joints."""
    for function, algorithm, axes, expected in (
        ("inverse_dynamics", "boundary_value", "general", ("Kozłowski", 701, 520)),
        ("inverse_dynamics", "boundary_value", "perpendicular", ("Kozłowski", 523, 432)),
        ("forward_dynamics", "kalman", "general", ("Kozłowski", 1261, 1173)),
        ("inverse_dynamics", "gibbs_appell", "general", ("Valera", 590, 430)),
        ("inverse_dynamics", "newton_euler", "general", ("Luh–Walker–Paul", 614, 458)),
        ("forward_dynamics", "conjugate_gradient", "general", ("Fijany–Scheid", 2637, 2277)),
    ):
        assert expected in published(function, algorithm, axes, 6, "x")
    assert published("coefficients", "compound_link", "perpendicular", 6, "puma260") == [
        ("Izaguirre", 98, 70)
    ]
    assert published("coefficients", "compound_link", "perpendicular", 6, "x") == []
    every = [mark for marks in OURS.values() for mark in marks]
    assert all(any(_is(row, mark) for row in PUBLISHED) for mark in every), (
        "a row of the records has another name now"
    )
    assert published("forward_dynamics", "kalman", "perpendicular", 6, "x")[0][0] == "Kozłowski (any axes)"
    assert published("inverse_dynamics", "newton_euler", "general", 7, "x") == [("Luh–Walker–Paul", 735, 548)]


def test_arms_are_told_apart_as_the_papers_do():
    assert axes_of(lw.load("puma560")) == "perpendicular"
    assert axes_of(lw.general_chain(4)) == "general"
    assert axes_of(lw.load("stanford")) is None
    assert axes_of(lw.random_robot(3, 5, tree=True, joints="R")) is None


def test_totals_include_the_iterations():
    from linkwise.compiler.ir.operations import Operations

    operations = Operations(10, 20, 1, per_iteration=Operations(3, 4, 2))
    assert totals(operations) == (10, 20, 1)
    assert totals(operations, 5) == (25, 40, 11)


def test_generated_c_gives_the_same_bits(linkwise, tmp_path):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "puma.c"
    ran = linkwise(
        "generate", "puma560", "inverse_dynamics", "--out", source, "--header", "--main", "--name", "torques"
    )
    assert ran.status == 0
    assert "void torques(" in (tmp_path / "puma.h").read_text()
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1"]
    subprocess.run([compiler, *flags, source, "-o", tmp_path / "puma", "-lm"], check=True)
    state = np.random.default_rng(0).normal(size=(3, 6))
    said = subprocess.run(
        [tmp_path / "puma"],
        input=" ".join(map(repr, state.ravel().tolist())),
        capture_output=True,
        text=True,
        check=True,
    )
    torques = [float(number) for number in said.stdout.split()]
    assert torques == lw.load("puma560").inverse_dynamics(*state).tolist()


def test_generate_prints_when_there_is_no_file(linkwise):
    assert "void two_link_mass_matrix(" in linkwise("generate", "two_link", "mass_matrix").out
    single = linkwise("generate", "two_link", "gravity_torques", "--dtype", "float32", "--json").json
    assert "float" in single["source"]
    assert single["operations"]["trigonometric"] > 0


@pytest.mark.parametrize(
    ("target", "starts"), [("c", "void "), ("python", "def "), ("cuda", ""), ("wasm", "function ")]
)
def test_generate_spells_the_name_of_any_robot(linkwise, tmp_path, target, starts):
    path = tmp_path / "arm.toml"
    path.write_text('name = "2-joint arm"\nconvention = "dh"\n[[joint]]\nmass = 1.0\na = 0.5\n')
    assert (
        f"{starts}f_2_joint_arm_mass_matrix"
        in linkwise("generate", path, "mass_matrix", "--target", target).out
    )


def test_generate_has_other_targets(linkwise):
    assert "__global__" in linkwise("generate", "two_link", "inverse_dynamics", "--target", "cuda").out
    names: dict = {}
    exec(linkwise("generate", "two_link", "mass_matrix", "--target", "python", "--name", "mass").out, names)
    q = np.array([0.3, -0.7])
    np.testing.assert_allclose(names["mass"](q), lw.load("two_link").mass_matrix(q), rtol=1e-12)
    assert (
        "is for --target c"
        in linkwise("generate", "two_link", "pose", "--target", "cuda", "--main").refused()
    )
    message = linkwise(
        "generate", "two_link", "forward_dynamics", "--algorithm", "conjugate_gradients"
    ).refused()
    assert "did you mean 'conjugate_gradient'?" in message


def test_generate_takes_options_of_the_function(linkwise, tmp_path):
    assert "wrench" in linkwise("generate", "two_link", "inverse_dynamics", "--wrench").out
    assert "pose" in linkwise("generate", "panda", "pose", "--frame", "panda_link4").out
    out = tmp_path / "cg.c"
    assert (
        linkwise(
            "generate", "two_link", "forward_dynamics", "--algorithm", "conjugate_gradient", "--out", out
        ).status
        == 0
    )
    assert "has no frame" in linkwise("generate", "two_link", "mass_matrix", "--frame", "link1").refused()
    assert "takes no wrench" in linkwise("generate", "two_link", "mass_matrix", "--wrench").refused()
    assert "--header needs --out" in linkwise("generate", "two_link", "mass_matrix", "--header").refused()
    assert (
        "no such folder"
        in linkwise("generate", "two_link", "mass_matrix", "--out", tmp_path / "no" / "x.c").refused()
    )


def test_check_says_once_what_is_not_installed(linkwise, monkeypatch):
    """Pinocchio and MuJoCo would both compare a moving base; equal refusals are one line, too."""
    for name in ("pinocchio", "mujoco"):
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, f"linkwise.bench.peers.{name}", raising=False)
    said = linkwise("check", "two_link", "--base", "floating", "--states", "2").out
    assert said.count("not installed") == 1
    assert "not installed: pinocchio, mujoco" in said
    assert said.count("joint 'root_joint' moves no inertia") == 1


def test_comparing_counts_without_the_repository_says_so(linkwise, tmp_path, monkeypatch):
    """An installed package has no folder research: --compare says what it needs, operations of robots are counted."""
    import linkwise as package

    monkeypatch.setattr(package, "__file__", str(tmp_path / "lib" / "linkwise" / "__init__.py"))
    refused = linkwise("operations", "--compare")
    assert refused.status == 2
    assert "needs the folder research of Linkwise's repository" in refused.err
    assert linkwise("operations", "two_link", "--function", "gravity_torques").status == 0
