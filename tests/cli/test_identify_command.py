"""``linkwise identify``: recordings in; a robot, its code and a report out."""

import contextlib
import ctypes
import io
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.motion import FourierSeries

pytest.importorskip("clarabel")

RATE = 100.0
TRUTH = {"joint1.viscous_friction": 0.3, "joint2.viscous_friction": 0.1, "joint1.rotor_inertia": 0.05}


def recording(seed: int, friction: float = 0.4):
    """Twelve seconds of a two-link arm: t, q, tau."""
    arm = lw.load("two_link").with_parameters(
        TRUTH | {f"joint2.coulomb_friction_{way}": friction for way in ("forward", "backward")}
    )
    rng = np.random.default_rng(seed)
    t = np.arange(1200) / RATE
    q, qd, qdd = FourierSeries(np.zeros(2), *rng.normal(size=(2, 5, 2)) * 0.3, period=10.0).at(t)
    tau = arm.inverse_dynamics(q, qd, qdd)
    return t, q, tau + 0.02 * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)


def write(path, t, q, tau, header="t,q1,q2,tau1,tau2"):
    np.savetxt(path, np.column_stack([t, q, tau]), delimiter=",", header=header, comments="")
    return path


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    return write(folder / "train.csv", *recording(1)), write(folder / "test.csv", *recording(2))


@pytest.fixture(scope="module")
def done(logs, tmp_path_factory):
    """Everything at once: (facts, folder with what was written)."""
    folder = tmp_path_factory.mktemp("identified")
    train, test = map(str, logs)
    said = io.StringIO()
    wanted = ["--out", f"{folder}/arm.urdf", "--code", f"{folder}/arm.c", "--report", f"{folder}/arm.html"]
    wanted += ["--figures", f"{folder}/figures", "--json", "--friction", "coulomb"]
    with contextlib.redirect_stdout(said):
        assert main(["identify", "two_link", train, "--validate", test, *wanted]) == 0
    return json.loads(said.getvalue()), folder


def test_figures_are_those_of_the_saved_robot(done):
    """What the command says about the saved robot, computed again from its file and the true motion."""
    facts, folder = done
    robot = lw.load(folder / "arm.urdf")
    t, _, tau = recording(2)
    rng = np.random.default_rng(2)
    motion = FourierSeries(np.zeros(2), *rng.normal(size=(2, 5, 2)) * 0.3, period=10.0).at(t)
    left = tau - robot.inverse_dynamics(*motion)
    relative = 100 * np.linalg.norm(left, axis=0) / np.linalg.norm(tau, axis=0)
    judged = facts["validation"]
    assert judged["relative_robot"] == pytest.approx(relative, rel=0.2)  # filters round off reversals
    assert max(judged["relative_robot"]) < 5
    assert judged["relative_prior"][1] > 10  # the file knows nothing of the friction
    assert np.greater(judged["relative_prior"], judged["relative_robot"]).all()
    joints = robot.moving_joints
    assert joints[0].viscous_friction == pytest.approx(0.3, abs=0.05)
    assert joints[1].coulomb_friction == pytest.approx((0.4, 0.4), abs=0.05)


def test_the_code_computes_the_torques(done, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    _, folder = done
    library = tmp_path / "arm.so"
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", "-o", library, folder / "arm.c", "-lm"],
        check=True,
        capture_output=True,
    )
    run = ctypes.CDLL(str(library)).inverse_dynamics
    t, _, tau = recording(2)
    rng = np.random.default_rng(2)
    motion = FourierSeries(np.zeros(2), *rng.normal(size=(2, 5, 2)) * 0.3, period=10.0).at(t)
    found = np.zeros_like(tau)
    for k, (a, b, c) in enumerate(zip(*motion, strict=True)):
        pointers = [
            x.ctypes.data_as(ctypes.c_void_p) for x in (np.array(a), np.array(b), np.array(c), found[k])
        ]
        run(*pointers)
    assert np.linalg.norm(tau - found) < 0.05 * np.linalg.norm(tau)


def test_the_report_is_one_small_file(done):
    facts, folder = done
    page = (folder / "arm.html").read_text(encoding="utf-8")
    assert len(page) < 6_000_000
    for words in (
        "joint1",
        "test.csv",
        "Base parameters",
        "Processing",
        "The reduced model",
        "condition number",
    ):
        assert words.lower() in page.lower()
    assert "linkwise identify two_link" in page
    assert "lag of the torques:" in page
    assert set(facts["lag"]) == {"seconds", "deviation", "corrected"}
    assert abs(facts["lag"]["seconds"]) < 4 * facts["lag"]["deviation"]
    figures = sorted(path.name for path in (folder / "figures").iterdir())
    assert {"correlation.svg", "friction_1.svg", "coverage_1.svg"} <= set(figures)
    assert facts["written"]["report"].endswith("arm.html")


def test_the_table(linkwise, logs):
    more = ("--friction", "coulomb", "--cutoff", 10, "--derivatives", "savitzky_golay", "--decimation", 7)
    ran = linkwise("identify", "two_link", *logs, *more)
    assert ran.status == 0
    assert "judged on the same recording" in ran.out
    assert "cut-off 10 Hz as given" in ran.out
    assert "derivatives: savitzky_golay" in ran.out
    assert "one sample of 7" in ran.out
    assert "lag of the torques:" in ran.out
    assert "reduced model:" in ran.out
    assert "\x1b[" not in ran.out


def test_a_layout_says_what_columns_are(linkwise, logs, tmp_path):
    """The same recording in degrees, milliseconds and amperes gives the same robot."""
    t, q, tau = recording(1)
    gains = np.array([2.0, 5.0])
    odd = write(tmp_path / "odd.csv", 1000 * t, np.degrees(q), tau / gains, header="ms,a,b,i1,i2")
    (tmp_path / "layout.toml").write_text(
        '[columns]\ntime = "ms"\nposition = ["a", "b"]\ncurrent = "i{}"\n'
        '[units]\ntime = "ms"\nposition = "deg"\n[drive]\ngains = [2.0, 5.0]\n'
    )
    plain = linkwise("identify", "two_link", logs[0], "--friction", "coulomb", "--split", 0.7, "--json").json
    other = ("--layout", tmp_path / "layout.toml", "--split", 0.7, "--json")
    odd_one = linkwise("identify", "two_link", odd, "--friction", "coulomb", *other).json
    assert odd_one["validation"]["relative"] == pytest.approx(plain["validation"]["relative"], rel=1e-3)
    assert odd_one["validation"]["samples"] == 360


def test_one_quantity_per_file(linkwise, logs, tmp_path):
    _, q, tau = recording(1)
    np.savetxt(tmp_path / "q.txt", q)
    np.savetxt(tmp_path / "tau.txt", tau)
    layout = tmp_path / "parts.toml"
    layout.write_text('[recording]\nrate = 100\nfiles = { position = "q.txt", torque = "tau.txt" }\n')
    ran = linkwise("identify", "two_link", layout, "--friction", "coulomb", "--json")
    assert ran.json["recordings"] == ["parts.toml"]
    assert max(ran.json["validation"]["relative"]) < 10


def test_several_recordings_to_predict(linkwise, logs):
    train, test = logs
    arguments = (
        "identify",
        "two_link",
        train,
        "--validate",
        test,
        "--validate",
        train,
        "--friction",
        "coulomb",
    )
    said = linkwise(*arguments).out
    assert said.count("judged on") == 2
    facts = linkwise(*arguments, "--json").json
    assert [each["recording"] for each in facts["validations"]] == ["test.csv", "train.csv"]
    assert facts["validations"][0]["relative"] == facts["validation"]["relative"]


def test_rows_of_each_recording(linkwise, logs):
    train, test = logs
    cut = (
        "--rows",
        "101-1100",
        "--validate",
        test,
        "--validate-rows",
        "1-500",
        "--friction",
        "coulomb",
        "--json",
    )
    ran = linkwise("identify", "two_link", train, *cut)
    assert ran.json["validation"]["samples"] == 500
    assert any("rows 101 to 1100" in line for line in ran.json["processing"][0])


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (("--friction", "coulmb"), "did you mean 'coulomb'?"),
        (("--derivatives", "savitsky_golay"), "did you mean 'savitzky_golay'?"),
        (("--estimator", "weigthed"), "did you mean 'weighted'?"),
        (("--significance", "contributions"), "did you mean 'contribution'?"),
        (("--out", "arm.json"), "saved as .urdf or .toml"),
        (("--out", "nowhere/arm.urdf"), "no such folder as"),
        (("--rows", "1to5"), "expected FIRST-LAST"),
        (("--rows", "1-5000"), "the recording has rows 1 to 1200"),
        (("--split", "0.5", "--validate", "x.csv"), "do not go together"),
        (("--split", "1.5"), "1.5"),
        (("--validate", "nowhere.csv"), "nowhere.csv: no such file"),
        (("--layout", "nowhere.toml"), "nowhere.toml"),
        (("--cutoff", "-3"), "cutoff"),
        (("--lag", "1.5"), "more than -1 and less than 1"),
        (("--reduce",), "belongs to --code"),
    ],
)
def test_bad_input_is_one_line(linkwise, logs, tmp_path, monkeypatch, more, expected):
    monkeypatch.chdir(tmp_path)
    assert expected in linkwise("identify", "two_link", logs[0], *more).refused()
    assert not list(tmp_path.iterdir())


def test_a_truncated_row_is_named(linkwise, logs, tmp_path):
    lines = logs[0].read_text().splitlines()
    lines[7] = lines[7].rpartition(",")[0]
    broken = tmp_path / "broken.csv"
    broken.write_text("\n".join(lines))
    assert "line 8" in linkwise("identify", "two_link", broken).refused()
    more = ("--drop-bad-rows", "--lag", 0.002, "--friction", "coulomb", "--json")
    facts = linkwise("identify", "two_link", broken, *more).json
    assert facts["lag"] == {"seconds": 0.002, "deviation": None, "corrected": 0.002}
    assert "1 row with more or fewer cells than others left out" in facts["processing"][0]


def test_a_wrong_robot_is_said_plainly(linkwise, logs, tmp_path):
    """Torques of one joint recorded as those of the other."""
    t, q, tau = recording(1)
    swapped = write(
        tmp_path / "swapped.csv", t, np.random.default_rng(0).normal(size=q.shape).cumsum(0) * 1e-2, tau
    )
    ran = linkwise("identify", "two_link", swapped, "--friction", "coulomb")
    assert ran.status == 0
    assert "better than the mean" in ran.err


def test_too_little_excitation_is_a_warning(linkwise, tmp_path):
    """A joint that stands still shows nothing of its own: the command says what is not known, after the results."""
    t, q, _ = recording(1)
    q[:, 1] = 0.3
    qd, qdd = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    tau = lw.load("two_link").inverse_dynamics(q, qd, qdd)
    noisy = tau + 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    ran = linkwise(
        "identify", "two_link", write(tmp_path / "still.csv", t, q, noisy), "--friction", "coulomb"
    )
    assert ran.status == 0
    assert "too little excitation" in ran.err
    assert "joint2" in ran.err


def test_degrees_are_noticed(linkwise, tmp_path):
    t, q, tau = recording(1)
    path = write(tmp_path / "degrees.csv", t, np.degrees(q) + 400, tau)
    said = linkwise("identify", "two_link", path).refused()
    assert 'units.position = "deg"' in said


def test_without_the_extra(linkwise, logs, monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    said = linkwise("identify", "two_link", logs[0], "--friction", "coulomb").refused()
    assert "pip install 'linkwise[identify]'" in said


def test_a_model_that_fails_is_not_saved(linkwise, tmp_path):
    t, q, tau = recording(3)
    log = write(tmp_path / "reversed.csv", t, q, tau)
    test = write(tmp_path / "test.csv", t, q, -tau)  # the same robot with the opposite sign
    out, code = tmp_path / "arm.urdf", tmp_path / "arm.c"
    wanted = [
        "identify", "two_link", str(log), "--validate", str(test), "--friction", "coulomb",
        "--cutoff", "8", "--out", str(out), "--code", str(code),
    ]  # fmt: skip
    failed = linkwise(*wanted)
    assert failed.status == 3
    assert "this model fails" in failed.err
    assert "--force" in failed.err
    assert not out.exists()
    assert not code.exists()
    forced = linkwise(*wanted, "--force")
    assert forced.status == 3
    assert out.exists()
    assert code.exists()


def test_plain_least_squares_and_uses_are_said(linkwise, logs):
    said = linkwise("identify", "two_link", str(logs[0]), "--validate", str(logs[1]), "--friction", "coulomb")
    words = " ".join(said.out.split())
    assert "plain least squares (" in words
    assert "moving" in words
    assert "good for feed-forward: yes" in words


def test_a_model_of_reversed_torques_is_not_saved(linkwise, tmp_path):
    """What is unmodelled explains them as a function of position and speed; such a robot would be driven by gravity."""
    t, q, tau = recording(3)
    log = write(tmp_path / "reversed.csv", t, q, -tau)
    out, page = tmp_path / "arm.toml", tmp_path / "arm.html"
    failed = linkwise("identify", "two_link", str(log), "--out", str(out), "--report", str(page))
    assert failed.status == 3
    assert "this model fails: torques of all joints look counted in the opposite direction" in failed.err
    assert "good for feed-forward: no" in failed.out
    assert "judged by what was fitted" in failed.out
    assert not out.exists()
    assert "This model fails: torques of all joints" in page.read_text()
    assert linkwise("identify", "two_link", str(log), "--out", str(out), "--force").status == 3
    assert out.exists()
