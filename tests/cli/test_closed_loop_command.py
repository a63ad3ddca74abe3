"""``linkwise identify --method didim``: a simulated recording in; a robot and how the simulations went out."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.motion import FourierSeries, Samples, write_csv

pytest.importorskip("clarabel")

LOOP = ("--reference", "qr{}", "--controller", "gravity_pd", "--frequency", "25", "--friction", "viscous")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Made by ``linkwise simulate``, whose table has the reference beside the motion."""
    folder = tmp_path_factory.mktemp("loop")
    t = np.arange(601) / 100.0
    sine, cosine = np.random.default_rng(1).normal(size=(2, 5, 2)) * 0.5 / np.arange(1, 6)[:, None]
    write_csv(folder / "motion.csv", Samples(t, *FourierSeries(np.zeros(2), sine, cosine, 6.0).at(t)))
    motion = ("--trajectory", f"{folder}/motion.csv", "--duration", "6", "--every", "5", "--noise", "3e-4")
    law = ("--controller", "gravity_pd", "--frequency", "25", "--out", f"{folder}/log.csv")
    assert main(["simulate", "two_link", *motion, *law]) == 0
    return folder / "log.csv"


def test_didim_by_command(linkwise, log, tmp_path):
    wanted = tmp_path / "arm.toml"
    facts = linkwise("identify", "two_link", log, "--method", "didim", *LOOP, "--out", wanted, "--json").json
    assert facts["method"] == "didim"
    assert facts["converged"]
    assert len(facts["simulations"]) <= 6
    given, found = lw.load("two_link"), lw.load(wanted)
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 50, 2))
    tau = given.inverse_dynamics(q, qd, qdd)
    assert np.linalg.norm(found.inverse_dynamics(q, qd, qdd) - tau) < 0.05 * np.linalg.norm(tau)


def test_cloe_by_command_shows_its_steps(linkwise, log):
    said = linkwise("identify", "two_link", log, "--method", "cloe", *LOOP).out
    assert "two_link by CLOE" in said
    assert "converged" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--reference", "qr{}"), "--reference belongs to --method didim or cloe"),
        (("--method", "didim", "--estimator", "robust"), "--estimator belongs to --method inverse"),
        (("--method", "didim", "--frequency", "25"), "--frequency belongs to --controller"),
        (("--method", "didim", "--controller", "gravity_pd"), "--controller needs --reference"),
        (("--method", "didim", "--reference", "nothing{}"), "nothing"),
        (("--method", "didm"), "did you mean 'didim'"),
    ],
)
def test_what_cannot_be_meant_is_refused(linkwise, log, options, words):
    assert words in linkwise("identify", "two_link", log, *options).refused()
