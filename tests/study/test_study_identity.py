"""A study that was killed is completed by the code that began it, or not without a word."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stores import contents

import linkwise
import linkwise as lw
from linkwise.study import identity
from linkwise.study.errors import StudyError
from linkwise.study.identity import runs
from linkwise.study.store.folder import read_study, study_text

OWN = """
import time
import helpers

GAIN = 2.0

def make(offset):
    def inner(q):
        return GAIN * q.sum(axis=1) + helpers.shift() + offset
    return inner

def f(q):
    time.sleep(0.02)
    return made(q)

made = make(0.5)
"""
HELPERS = "import far\n\ndef shift():\n    return far.VALUE\n"
FAR = "VALUE = 1.0\n"
STUDY = """
robot = "arm.toml"
seed = 1
samples = 30000
chunk = 500

[vary]
q = { uniform = [-1.0, 1.0] }

[compute]
x = { call = "own:f" }
g = { function = "gravity_torques" }

[keep]
x = { raw = true, statistics = ["mean"] }
g = ["mean"]
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A project with a study that was killed in the middle, and a copy of Linkwise that may be changed."""
    tmp_path = tmp_path_factory.mktemp("killed")
    shutil.copytree(
        Path(linkwise.__file__).parent, tmp_path / "linkwise"
    )  # with bytecode, which saves seconds
    for name, text in {"own": OWN, "helpers": HELPERS, "far": FAR}.items():
        (tmp_path / f"{name}.py").write_text(text)
    lw.save(lw.load("two_link"), tmp_path / "arm.toml")
    (tmp_path / "study.toml").write_text(STUDY)
    kill_in_the_middle(tmp_path)
    return tmp_path


@pytest.fixture
def folder(killed, tmp_path):
    """A copy of that, with the times of its files."""
    shutil.copytree(killed, tmp_path / "project")
    return tmp_path / "project"


def command(folder: Path, *arguments: str) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    line = [sys.executable, "-m", "linkwise", "study", *arguments, "--threads", "1"]
    return subprocess.Popen(
        line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def kill_in_the_middle(folder: Path) -> None:
    """Signal 9 when some chunks are done."""
    ran = command(folder, "study.toml")
    journal = folder / "study.study" / "journal"
    end = time.monotonic() + 120
    while not (journal.exists() and journal.stat().st_size > 3000):
        assert ran.poll() is None, ran.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    ran.send_signal(signal.SIGKILL)
    ran.communicate()
    assert journal.exists()


def edit(path: Path, old: str, new: str) -> None:
    """The same size and time, so that only the content tells."""
    status, text = path.stat(), path.read_text()
    assert old in text
    assert len(old) == len(new)
    path.write_text(text.replace(old, new, 1))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


CHANGES = {
    "a constant": ("own.py", "time.sleep(0.02)", "time.sleep(0.00)", "function 'f' in own.py changed"),
    "a global": ("own.py", "GAIN = 2.0", "GAIN = 3.0", "in own.py changed"),
    "a closure": (
        "own.py",
        "make(0.5)",
        "make(0.7)",
        "'offset' in the closure of function 'make.<locals>.inner'",
    ),
    "an imported file": ("far.py", "1.0", "1.5", "'VALUE' in far.py changed"),
    "the robot": ("arm.toml", "mass = 1", "mass = 2", "robot 'arm.toml' changed"),
    "a sign in Linkwise": (
        *("linkwise/algorithms/newton_euler.py", " + ", " - "),
        "linkwise's own source changed: algorithms/newton_euler.py",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_kill_and_resume_is_refused_and_named(folder, change):
    name, old, new, message = CHANGES[change]
    before = contents(folder / "study.study")
    edit(folder / name, old, new)
    ran = command(folder, *(("study.study",) if change == "a global" else ("study.toml",)), "--resume")
    out, err = ran.communicate(timeout=120)
    assert (ran.returncode, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert "--accept-changed-code" in err
    assert contents(folder / "study.study") == before


def test_without_a_change_it_is_completed(folder):
    ran = command(folder, "study.study", "--resume")
    assert ran.communicate(timeout=120)[1] == ""
    assert ran.returncode == 0
    assert lw.open_study(folder / "study.study").accepted_changes == []


def test_an_accepted_change_is_recorded(folder):
    edit(folder / "own.py", "GAIN = 2.0", "GAIN = 3.0")
    ran = command(folder, "study.study", "--resume", "--accept-changed-code")
    out, err = ran.communicate(timeout=120)
    assert (ran.returncode, err) == (0, "")
    assert "chunks were computed before: global 'GAIN'" in out
    results = lw.open_study(folder / "study.study")
    (record,) = results.accepted_changes
    assert any("GAIN" in text for text in record["changed"])
    assert record["when"].startswith("20")
    assert results.dataset().attrs["accepted_changes"] == [record]
    assert results.verify().damage == ()
    data = results.dataset().x.values
    for first, last in record["chunks_before"]:
        assert 0 <= first <= last < 60
    chunks = {n for first, last in record["chunks_before"] for n in range(first, last + 1)}
    assert chunks
    assert len(chunks) < 60
    assert data.shape == (30000,)
    again = command(folder, "study.study", "--resume")  # the new code is the study's own now
    assert again.communicate(timeout=120)[1] == ""
    line = [sys.executable, "-m", "linkwise", "study", "--status", "study.study", "--json"]
    facts = json.loads(subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=120).stdout)
    assert facts["accepted_changes"] == [record]


@pytest.fixture
def tables(small):
    small["keep"]["own"] = ["mean"]
    return {**small, "samples": 9000}


def with_function(tables, function):
    return lw.study({**tables, "compute": {**tables["compute"], "own": function}})


def test_objects_of_this_process_are_compared_by_content(tables, tmp_path):
    def scaled(factor):
        return lambda q: factor * q.sum(axis=1)

    with_function(tables, scaled(1.0)).run(tmp_path / "store")
    with_function(tables, scaled(1.0)).run(tmp_path / "store", resume=True)
    with pytest.raises(StudyError, match=r"'factor' in the closure of function .* changed"):
        with_function(tables, scaled(2.0)).run(tmp_path / "store", resume=True)
    with_function(tables, scaled(2.0)).run(tmp_path / "store", resume=True, accept_changed_code=True)


def test_kernels_are_compared_by_their_program(tables, tmp_path):
    made = [lw.kernel(q=2)(lambda q, k=k: q[0] + k * q[1]) for k in (1.0, 1.0, 2.0)]
    with_function(tables, made[0]).run(tmp_path / "store")
    with_function(tables, made[1]).run(tmp_path / "store", resume=True)
    with pytest.raises(StudyError, match="kernel '<lambda>' changed"):
        with_function(tables, made[2]).run(tmp_path / "store", resume=True)


def test_other_elements_are_another_study_whatever_is_accepted(tables, tmp_path):
    def own(q):
        return q.sum(axis=1)

    with_function(tables, own).run(tmp_path / "store")

    def wider(q):
        return q

    wider.__qualname__ = own.__qualname__
    with pytest.raises(StudyError, match=r"belongs to another study .own has other elements"):
        with_function(tables, wider).run(tmp_path / "store", resume=True, accept_changed_code=True)


def test_an_older_store_without_an_identity(small, run):
    store = run(small).path
    known = read_study(store)
    del known["identity"]
    (store / "study.json").write_text(study_text(known))
    with pytest.raises(StudyError, match="does not record which code computed it"):
        lw.study(small).run(store, resume=True)
    lw.study(small).run(store, resume=True, accept_changed_code=True)


def test_the_words(small):
    now = lw.study(small).plan.description.identity
    assert identity.changes(now, now) == []
    other = json.loads(json.dumps(now))
    other["package"]["robot.py"] = other["package"]["study/engines/native.py"] = "x"
    other["package"]["gone.py"] = "x"
    assert identity.changes(other, now) == [
        "linkwise's own source changed: gone.py, robot.py, study/engines/native.py"
    ]
    assert identity.changes({**now, "linkwise": "0.0.1"}, now)[0].startswith("linkwise 0.0.1 became ")
    old = {**now, "python": "3.0", "functions": {"x": {"function 'f' in a.py": "1"}}}
    new = {**now, "python": "3.1", "functions": {"x": {"function 'f' in a.py": "2"}}}
    assert identity.changes(old, new) == ["Python 3.0 became 3.1"]


def test_runs():
    assert runs([5, 1, 2, 3, 9]) == [[1, 3], [5, 5], [9, 9]]
    assert runs([]) == []
