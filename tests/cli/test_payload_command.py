"""``linkwise payload``: two recordings in; a load, or the gains of the drives out."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.motion import FourierSeries

pytest.importorskip("clarabel")

MASS, COM, GAINS = 0.8, (0.1, 0.05, 0.0), np.array([12.0, 7.0])


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """(unloaded, loaded) with torques, and the same with currents."""
    arm = lw.load("two_link").with_parameters(
        {"joint1.viscous_friction": 0.3, "joint2.coulomb_friction": 0.2}
    )
    folder, rng = tmp_path_factory.mktemp("loads"), np.random.default_rng(0)
    t = np.arange(1500) / 100.0
    q, qd, qdd = FourierSeries(np.zeros(2), *rng.normal(size=(2, 5, 2)) * 0.3, period=10.0).at(t)
    paths = []
    for gains, name in ((np.ones(2), "tau"), (GAINS, "current_")):
        for robot in (arm, arm.with_payload(MASS, COM, np.diag([0.01, 0.01, 0.02]))):
            tau = robot.inverse_dynamics(q, qd, qdd)
            tau = (tau + 0.005 * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)) / gains
            paths.append(folder / f"{len(paths)}.csv")
            header = f"t,q1,q2,{name}1,{name}2"
            np.savetxt(paths[-1], np.column_stack([t, q, tau]), delimiter=",", header=header, comments="")
    return paths[:2], paths[2:]


def test_a_load_with_intervals_and_the_robot_that_carries_it(linkwise, recordings, tmp_path):
    torques, _ = recordings
    facts = linkwise("payload", "two_link", *torques, "--json", "--out", tmp_path / "loaded.urdf").json
    rows = {row["name"]: row for row in facts["rows"]}
    assert rows["mass"]["lower"] < MASS < rows["mass"]["upper"] < 1.4 * MASS
    assert facts["com"][:2] == pytest.approx(COM[:2], abs=0.01)
    arm, loaded = lw.load("two_link"), lw.load(tmp_path / "loaded.urdf")
    heavier = arm.with_payload(MASS, COM)
    q = np.array([0.3, -0.4])
    assert loaded.gravity_torques(q) == pytest.approx(heavier.gravity_torques(q), rel=0.01)
    said = linkwise("payload", "two_link", *torques).out
    assert "centre of mass x" in said
    assert "95 % interval" in said


def test_gains_from_currents_and_a_known_mass(linkwise, recordings):
    _, currents = recordings
    facts = linkwise("payload", "two_link", *currents, "--gains", "--load-mass", MASS, "--json").json
    assert facts["gains"] == pytest.approx(GAINS, rel=0.03)
    assert np.all((np.array(facts["lower"]) < GAINS) & (np.array(facts["upper"]) > GAINS))
    known = ("--load-mass", MASS, "--load-com", "0.1,0.05,0", "--load-inertia", "0.01,0.01,0.02")
    said = linkwise("payload", "two_link", *currents, "--gains", *known).out
    assert "gains = [12." in said or "gains = [11.9" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--gains",), "cannot be told apart from masses"),
        (("--load-mass", 1), "--load-mass belongs to --gains"),
        (("--gains", "--load-mass", 1, "--load-com", "0,0,0"), "--load-com needs --load-inertia"),
        (("--gains", "--load-mass", -1), "expected a positive number"),
        (("--out", "arm.txt"), "saved as .urdf or .toml"),
    ],
)
def test_what_cannot_be_meant_is_refused(linkwise, recordings, options, words):
    assert words in linkwise("payload", "two_link", *recordings[0], *options).refused()


def test_currents_without_gains_need_a_layout(linkwise, recordings):
    assert "drive.gains" in linkwise("payload", "two_link", *recordings[1]).refused()


def test_a_layout_that_names_its_files_is_a_recording(linkwise, recordings, tmp_path):
    """As of ``linkwise identify``: one quantity in each file."""
    torques, _ = recordings
    layouts = []
    for k, path in enumerate(torques):
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        for name, columns in (("q", slice(1, 3)), ("tau", slice(3, 5))):
            np.savetxt(tmp_path / f"{name}{k}.txt", table[:, columns])
        layouts.append(tmp_path / f"run{k}.toml")
        files = f'{{ position = "q{k}.txt", torque = "tau{k}.txt" }}'
        layouts[-1].write_text(f"[recording]\nrate = 100.0\nfiles = {files}\n", encoding="utf-8")
    facts = linkwise("payload", "two_link", *layouts, "--json").json
    same = linkwise("payload", "two_link", *torques, "--json").json
    assert facts["mass"] == pytest.approx(same["mass"], rel=1e-6)
    exact = linkwise("payload", "two_link", *torques, "--json", "--gain-deviation", "0").json
    widths = [row["upper"] - row["lower"] for row in (facts["rows"][0], exact["rows"][0])]
    assert widths[0] > 2 * widths[1]
    (tmp_path / "none.toml").write_text('[units]\nposition = "rad"\n', encoding="utf-8")
    failed = linkwise("payload", "two_link", tmp_path / "none.toml", torques[1])
    assert failed.status == 2
    assert "a layout without files" in failed.err
