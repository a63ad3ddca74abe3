"""How far a study is: lines where there is no terminal, and what a store says about itself."""

import contextlib
import errno
import fcntl
import io
import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest
from stores import SMALL

import linkwise as lw
import linkwise.study.run
from linkwise.study import progress
from linkwise.study.errors import StoppedError, StudyError
from linkwise.study.store import journal
from linkwise.study.store.journal import Journal
from linkwise.study.store.status import status

# -- progress ---------------------------------------------------------------------------------------------------------


def test_a_line_a_minute_without_a_terminal(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    with progress.bar("torques", 1000, 100) as advance:
        advance(150)
        time.sleep(0.3)
    lines = said.getvalue().splitlines()
    assert len(lines) >= 2, "also when nothing advances"
    assert re.fullmatch(r"torques: 25 % \(250 of 1000 points\), .* points/s, about .* left", lines[0])


def test_a_short_run_is_quiet(run, small, capsys):
    lw.study(small)
    run(small)
    assert progress.LINE_SECONDS == 60.0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("stream", [None, "broken"])
def test_nobody_listens(monkeypatch, stream):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)

    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", None if stream is None else Broken())
    with progress.bar("x", 10, 0) as advance:
        advance(1)
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (None, "10 % (100 of 1000 points)"),
        (2.0, "10 % (100 of 1000 points), 2 points/s, about 8 min left"),
        (0.01, "10 % (100 of 1000 points), 0.01 points/s, about 25 h left"),
        (1e6, "10 % (100 of 1000 points), 1 M points/s, about 0 s left"),
    ],
)
def test_lines(rate, text):
    assert progress.line(1000, 100, rate) == text


# -- status -----------------------------------------------------------------------------------------------------------


def test_a_complete_store(run, small):
    store = run(small).path
    found = status(store)
    assert (found.complete, found.running) == (True, False)
    assert (found.points_done, found.points) == (80_000, 80_000)
    assert found.chunks_done == found.chunks == 10
    assert found.failures == run(small).dataset().attrs["failures"]
    assert found.identity["linkwise"] == lw.__version__
    assert "robot 'two_link'" in found.identity["robot"]
    assert found.created
    assert found.rate > 0
    assert found.changed_since == []
    json.dumps(found.facts())


def slow(q):
    time.sleep(0.05)
    return q.sum(axis=1)


def test_while_it_is_running_and_after_it_was_stopped(small, tmp_path):
    small["compute"]["own"], small["keep"]["own"], small["chunk"] = slow, ["mean"], 2048
    store = tmp_path / "store"
    study = lw.study(small)
    thread = threading.Thread(target=lambda: study.run(store, threads=1, progress=False))
    thread.start()
    end = time.monotonic() + 60
    while not (store / "journal").exists() or status(store).chunks_done < 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    found = status(store)
    assert found.running is True
    assert not found.complete
    assert 0 < found.points_done < found.points == 80_000
    assert found.points_done == 2048 * found.chunks_done
    assert found.rate > 0
    assert found.run["process"] == os.getpid()
    assert set(found.failures) == {"heavy"}
    before = (store / "journal").stat().st_size
    thread.join()
    assert status(store).complete
    assert before > 0


def test_looking_at_a_store_changes_nothing(small, tmp_path, monkeypatch):
    """A torn record at the end stays for the next run."""

    def stop(*_):
        raise StoppedError("enough")

    monkeypatch.setattr(sys.modules["linkwise.study.run"], "_finish", stop)
    with pytest.raises(StoppedError):
        lw.study(small).run(tmp_path / "store")
    path = tmp_path / "store" / "journal"
    path.write_bytes(path.read_bytes() + b"LWj")
    before = path.read_bytes()
    found = status(tmp_path / "store")
    assert (found.complete, found.running, found.chunks_done) == (False, False, 10)
    assert path.read_bytes() == before


def test_chunks_that_were_set_aside(small, tmp_path):
    good = True

    def sometimes(q):
        if not good:
            raise ValueError("no")
        return q.sum(axis=1)

    small["compute"]["own"], small["keep"]["own"], small["retries"] = sometimes, ["mean"], 0
    small["samples"], small["chunk"] = 1000, 512  # every point is tried alone
    study = lw.study(small)
    good = False
    study.run(tmp_path / "store")
    found = status(tmp_path / "store")
    assert not found.complete
    assert found.running is False
    assert found.points_failed == 2000


def test_the_command(tmp_path):
    lw.study({**SMALL, "samples": 1000}).run(tmp_path / "x.study")
    line = [sys.executable, "-m", "linkwise", "study", "--status", str(tmp_path / "x.study")]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert "x.study: complete" in ran.stdout
    assert "points: 100 % (2000 of 2000 points)" in ran.stdout
    assert "computed by linkwise" in ran.stdout
    facts = json.loads(subprocess.run([*line, "--json"], capture_output=True, text=True, timeout=120).stdout)
    assert facts["points_done"] == 2000
    ran = subprocess.run([*line[:-1], str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "not the folder of a study" in ran.stderr


# -- locks ------------------------------------------------------------------------------------------------------------


def test_held_by_another(tmp_path):
    first = Journal(tmp_path / "journal")
    with pytest.raises(StudyError, match="another process is running this study"):
        Journal(tmp_path / "journal")
    assert journal.running(tmp_path / "journal") is True
    first.close()
    assert journal.running(tmp_path / "journal") is False
    assert journal.running(tmp_path / "none") is False


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOLCK, "No locks available; this file system has no locks"),
        (errno.EOPNOTSUPP, "Operation not supported; this file system has no locks"),
        (errno.ENOSYS, "Function not implemented; this file system has no locks"),
        (errno.EIO, "Input/output error"),
        (errno.EACCES, "Permission denied"),
    ],
)
def test_other_problems_are_told_as_they_are(small, tmp_path, monkeypatch, number, message):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StudyError, match=f"its journal cannot be locked: {message}") as caught:
        lw.study(small).run(tmp_path / "store")
    assert "another process" not in str(caught.value)
    assert not (tmp_path / "store").exists(), "nothing is left of a run that could not begin"
    (tmp_path / "journal").touch()
    assert journal.running(tmp_path / "journal") is None


def test_a_moment_of_looking_stops_no_run(small, tmp_path):
    """Who looks whether a study is running holds the lock for a moment."""
    (tmp_path / "journal").touch()
    with (tmp_path / "journal").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        threading.Timer(0.1, lambda: fcntl.flock(file, fcntl.LOCK_UN)).start()
        with contextlib.closing(Journal(tmp_path / "journal")):
            pass
        time.sleep(0.2)
