"""Whole studies: right numbers, the same bytes however they were computed, and nothing lost."""

import errno
import json
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest
from stores import contents

import linkwise as lw
from linkwise.study import run as running
from linkwise.study.engines.chunks import Worker
from linkwise.study.engines.local import ChunkOutcome, LocalEngine
from linkwise.study.errors import StoppedError, StudyError, StudyWarning
from linkwise.study.store import files


def reference(study, results):
    """Torques of every point by the robot's own methods."""
    robot = lw.load("two_link")
    points = np.arange(study.points)
    values = study.at(points, ["q", "qd", "payload.mass"])
    tau = np.empty((study.points, 2))
    for mass in np.unique(values["payload.mass"]):
        chosen = values["payload.mass"] == mass
        loaded = robot.with_payload(mass)
        tau[chosen] = loaded.inverse_dynamics(values["q"][chosen], values["qd"][chosen], np.zeros(2))
    return values, tau


def test_numbers_labels_and_units(small, run):
    study = lw.study(small)
    results = run(small)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = results.dataset().load()
    values, tau = reference(study, results)
    assert data.tau.dims == ("payload.mass", "sample", "joint")
    assert data.tau.attrs["units"] == "N·m"
    assert data["payload.mass"].attrs["units"] == "kg"
    assert data.joint.values.tolist() == list(lw.load("two_link").joint_names)
    assert "inverse_dynamics" in data.attrs["study"]
    raw = data.tau.values.reshape(-1, 2)
    assert np.allclose(raw, tau, rtol=1e-12, atol=1e-12)
    assert data.tau_count.values.tolist() == [80_000, 80_000]
    assert np.allclose(data.tau_mean, raw.mean(axis=0), rtol=1e-12, atol=1e-13)
    assert np.allclose(data.tau_variance, raw.var(axis=0, ddof=1), rtol=1e-12)
    assert np.array_equal(data.tau_max, raw.max(axis=0))
    assert np.array_equal(data.tau_max_point, raw.argmax(axis=0))
    assert np.array_equal(data.tau_quantiles[:, 0], np.quantile(raw, 0.5, axis=0, method="inverted_cdf"))
    assert data.tau_quantiles.attrs["exact"]
    load = np.abs(raw).max(axis=1).reshape(2, -1)
    assert data.load_mean.dims == ("payload.mass",)
    assert np.allclose(data.load_mean, load.mean(axis=1), rtol=1e-12)
    assert np.array_equal(data.load_max, load.max(axis=1))
    heavy = results.table("failures/heavy")
    assert heavy["point"].to_pylist() == np.flatnonzero(load.ravel() > 40).tolist()
    assert data.attrs["failures"] == {"heavy": heavy.num_rows}
    assert 0 < heavy.num_rows < study.points
    assert np.array_equal(heavy["payload.mass"], values["payload.mass"][load.ravel() > 40])


def test_extremes_come_with_the_argument_that_gave_them(small, run):
    study, results = lw.study(small), run(small)
    rows = results.table("extremes").to_pylist()
    assert {row["statistic"] for row in rows} == {"min", "max"}
    names = lw.load("two_link").joint_names
    for row in rows:
        again = study.at([row["point"]], ["q", "payload.mass", "tau", "load"])
        assert row["payload.mass"] == again["payload.mass"][0]
        assert [row[f"q.{name}"] for name in names] == again["q"][0].tolist()
        found = (
            again["load"]
            if row["quantity"] == "load"
            else again["tau"][0][names.index(row["quantity"].split(".")[1])]
        )
        assert np.isclose(row["value"], found, rtol=1e-12)


def test_the_same_bytes_for_any_number_of_threads(small, run):
    stores = [contents(run(small, threads=threads).path) for threads in (1, 2, 5)]
    assert stores[0] == stores[1] == stores[2]
    assert not any("journal" in name or "aside" in name for name in stores[0])


def test_the_same_numbers_for_any_chunks(small, run):
    """Raw values do not change at all; sums are taken in another order."""
    data = [run({**small, "chunk": chunk}).dataset().load() for chunk in (3000, 8192, 100_000)]
    for other in data[1:]:
        assert np.array_equal(data[0].tau.values, other.tau.values)
        assert np.array_equal(data[0].tau_max, other.tau_max)
        assert np.array_equal(data[0].tau_quantiles, other.tau_quantiles)
        assert np.allclose(data[0].tau_mean, other.tau_mean, rtol=1e-12, atol=1e-13)


class Shuffled(LocalEngine):
    """Computes the chunks in an order of its own, and stops after some of them."""

    def __init__(self, seed, stop=None):
        super().__init__(1)
        self.random, self.stop = random.Random(seed), stop

    def run(self, plan, store, chunks):
        chunks = list(chunks)
        self.random.shuffle(chunks)
        yield from super().run(plan, store, chunks[: self.stop])
        if self.stop is not None and self.stop < len(chunks):
            raise StoppedError("pulled the plug")


def test_any_order_and_any_interruption_give_the_same_bytes(small, run, tmp_path, monkeypatch):
    expected = contents(run(small).path)
    store = tmp_path / "interrupted"
    for attempt, stop in enumerate((0, 2, 3, None)):
        monkeypatch.setattr(running, "LocalEngine", lambda _, a=attempt, s=stop: Shuffled(a, s))
        go = lambda: lw.study(small).run(store, resume=attempt > 0, progress=False)  # noqa: B023, E731
        if stop is None:
            go()
        else:
            with pytest.raises(StoppedError, match="--resume"):
                go()
    assert contents(store) == expected


@pytest.mark.parametrize("writes", [4, 7, 12])
def test_a_full_disk_stops_and_resumes(small, run, tmp_path, monkeypatch, writes):
    expected = contents(run(small).path)
    store, real, left = tmp_path / "full", files.PendingFile.write, [writes]

    def write(self, data):
        left[0] -= store.exists()
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, data)

    monkeypatch.setattr(files.PendingFile, "write", write)
    with pytest.raises(StoppedError, match="No space left on device; nothing that was done is lost"):
        lw.study(small).run(store, progress=False)
    monkeypatch.undo()
    assert not list(store.rglob(".aside*")), "what was not finished takes no room"
    assert lw.study(small).run(store, resume=True, progress=False).complete
    assert contents(store) == expected


def test_a_full_disk_at_the_very_end(small, run, tmp_path, monkeypatch):
    expected = contents(run(small).path)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(running, "finished", full)
    with pytest.raises(StoppedError, match=r"store: No space left on device; nothing .* is lost") as caught:
        lw.study(small).run(tmp_path / "store", progress=False)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert lw.study(small).run(tmp_path / "store", resume=True, progress=False).complete
    assert contents(tmp_path / "store") == expected


def test_a_store_that_cannot_be_made(small, tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files.Disk, "open", forbidden)
    with pytest.raises(StudyError, match="store: cannot be made: Permission denied"):
        lw.study(small).run(tmp_path / "store", progress=False)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_tried_again(small, run, tmp_path, monkeypatch):
    """Writing goes on while the next chunk is computed; what fails there is not forgotten."""
    expected = contents(run(small).path)
    real, tries = files.PendingFile.put, []

    def put(self):
        if "/tau/c/0/2/" in str(self._path):
            tries.append(self)
            if len(tries) < 4:
                raise OSError(errno.EAGAIN, "not now")
        return real(self)

    monkeypatch.setattr(files.PendingFile, "put", put)
    results = lw.study(small).run(tmp_path / "store", progress=False)
    assert results.table("aside")["error"].to_pylist() == [f"BlockingIOError: [Errno {errno.EAGAIN}] not now"]
    assert len(tries) == 3
    lw.study(small).run(tmp_path / "store", resume=True, progress=False)
    assert contents(tmp_path / "store") == expected


def test_a_raw_file_that_got_lost_is_made_again(small, run, tmp_path, monkeypatch):
    expected = contents(run(small).path)
    monkeypatch.setattr(running, "LocalEngine", lambda _: Shuffled(1, 6))
    with pytest.raises(StoppedError):
        lw.study(small).run(tmp_path / "s", progress=False)
    monkeypatch.undo()
    done = next((tmp_path / "s" / "data.zarr" / "tau" / "c").rglob("0/*/*"))
    done.write_bytes(b"torn")
    with pytest.warns(StudyWarning, match=r"tau/c/0/\d/0 has 4 bytes instead of \d+; computed again"):
        lw.study(small).run(tmp_path / "s", resume=True, progress=False)
    assert contents(tmp_path / "s") == expected


def test_a_chunk_that_keeps_failing_is_set_aside(small, run, tmp_path, monkeypatch):
    expected = contents(run(small).path)
    real, tries = Worker.begin, []

    def begin(self, number):
        if number == 3:
            tries.append(number)
            raise ArithmeticError("cosmic rays")
        return real(self, number)

    monkeypatch.setattr(Worker, "begin", begin)
    small["retries"] = 1
    results = lw.study(small).run(tmp_path / "s", progress=False)
    assert len(tries) == 2
    assert not results.complete
    assert results.table("aside")["error"].to_pylist() == ["ArithmeticError: cosmic rays"]
    assert results.table("aside")["first_point"].to_pylist() == [3 * 8192]
    data = results.dataset().load()
    assert np.isnan(data.tau.values).sum() == 2 * 8192
    assert data.tau_count.values.tolist() == [80_000 - 8192] * 2
    assert data.attrs["chunks_set_aside"] == 1
    first = contents(tmp_path / "s")
    again = lw.study(small).run(tmp_path / "t", progress=False, threads=1)
    assert contents(again.path) == first, "what was set aside changes no bytes either"
    monkeypatch.undo()
    assert lw.study(small).run(tmp_path / "s", resume=True, progress=False).complete
    assert strip(contents(tmp_path / "s")) == strip(expected)


def strip(files_of_store):
    """Without the number of retries, which is part of the description as it was written."""
    return {
        name: data
        for name, data in files_of_store.items()
        if name not in ("study.json", "data.zarr/zarr.json", "digests.json")
    }


def test_a_single_retry_is_enough_for_a_passing_fault(small, run, monkeypatch):
    real, failed = Worker.begin, set()

    def begin(self, number):
        if number not in failed:
            failed.add(number)
            raise OSError(errno.EINTR, "interrupted")
        return real(self, number)

    expected = contents(run(small).path)
    monkeypatch.setattr(Worker, "begin", begin)
    assert contents(run(small, threads=1).path) == expected


def test_a_complete_store_is_left_alone(small, run):
    results = run(small)
    before = contents(results.path)
    assert lw.study(small).run(results.path, resume=True).complete
    assert contents(results.path) == before


def test_memory_does_not_grow_with_the_number_of_points(small):
    sizes = [lw.study(small, samples=n, chunk=65_536).memory(2) for n in (10**6, 10**9, 10**12)]
    assert sizes[0] == sizes[1] == sizes[2] < 256 << 20


MEASURE = """
import json, resource, sys, linkwise as lw
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
tables = json.load(sys.stdin)
lw.study(tables, samples=20_000).run(sys.argv[1] + "/warm", threads=2)
before, study = peak(), lw.study(tables)
study.run(sys.argv[1] + "/whole", threads=2)
print(json.dumps([peak() - before, study.memory(2)]))
"""


def test_no_more_memory_is_used_than_stated(small, tmp_path):
    """Raw values of all points are kept, every point is a failure, and the median is exact: all that can be held."""
    small |= {"samples": 600_000, "failures": {"all": "load > -1"}}
    del small["chunk"]
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)],
        input=json.dumps(small),
        capture_output=True,
        text=True,
        check=True,
    )
    used, stated = json.loads(ran.stdout)
    assert used < stated < 200 << 20


def test_outcomes_are_records_or_errors():
    assert ChunkOutcome(3, b"x").error == ""


def test_grid_only(run):
    tables = {
        "robot": "two_link",
        "vary": {
            "q.joint1": {"grid": {"from": -1.0, "to": 1.0, "points": 5}},
            "q.joint2": {"grid": {"from": 0.0, "to": 2.0, "points": 3}},
        },
        "compute": {"g": {"function": "gravity_torques"}},
        "keep": {"g": {"raw": True, "statistics": ["max"]}, "q": "raw"},
    }
    names = lw.load("two_link").joint_names
    tables["vary"] = dict(zip((f"q.{name}" for name in names), tables["vary"].values(), strict=True))
    data = run(tables).dataset().load()
    first, second = np.linspace(-1, 1, 5), np.linspace(0, 2, 3)
    q = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1)
    assert data.g.dims == (f"q.{names[0]}", f"q.{names[1]}", "joint")
    assert np.allclose(data.q, q, atol=1e-15)
    assert np.allclose(data.g, lw.load("two_link").gravity_torques(q), atol=1e-12)
    assert np.allclose(data[f"q.{names[0]}"], first)


def test_a_vector_is_kept_by_sample_unless_one_of_its_elements_is_a_grid(run):
    """What is drawn is the same at every grid point and kept once; an element from a grid makes it differ."""
    one, two = lw.load("two_link").joint_names
    tables = {
        "robot": "two_link",
        "samples": 20,
        "vary": {"q": {"uniform": [-1.0, 1.0]}, "payload.mass": {"grid": [0.0, 1.0]}},
        "compute": {"g": {"function": "gravity_torques"}},
        "keep": {"g": "raw", "q": "raw"},
    }
    robots = [lw.load("two_link").with_payload(mass, (0.0, 0.0, 0.0)) for mass in (0.0, 1.0)]
    drawn = {**tables, "vary": {**tables["vary"], f"q.{two}": {"normal": [5.0, 0.1]}}}
    data = run(drawn).dataset().load()
    assert data.q.dims == ("sample", "joint")
    assert (np.abs(data.q[:, 0]) <= 1.0).all()
    assert (data.q[:, 1] > 4.0).all()
    for k, robot in enumerate(robots):
        assert np.allclose(data.g[k], robot.gravity_torques(data.q.values), atol=1e-12)
    grid = {**tables, "vary": {**tables["vary"], f"q.{two}": {"grid": [0.5, 1.5, 2.5]}}}
    data = run(grid).dataset().load()
    assert data.q.dims == ("payload.mass", f"q.{two}", "sample", "joint")
    assert np.array_equal(data.q[..., 1], np.broadcast_to([[[0.5], [1.5], [2.5]]], (2, 3, 20)))
    assert (data.q[..., 0] == data.q[0, 0, :, 0]).all()
    for k, robot in enumerate(robots):
        assert np.allclose(data.g[k], robot.gravity_torques(data.q.values[k]), atol=1e-12)
    assert one != two


def test_quantiles_at_each_grid_point(run):
    tables = {
        "robot": "two_link",
        "samples": 1000,
        "design": "latin_hypercube",
        "vary": {"q": {"uniform": [-3.0, 3.0]}, "payload.mass": {"grid": [0.0, 1.0, 2.0]}},
        "compute": {"g": {"function": "gravity_torques"}},
        "keep": {
            "g": {"raw": True, "statistics": ["mean", "max"], "quantiles": [0.1, 0.9], "over": "sample"}
        },
    }
    data = run(tables).dataset().load()
    raw = data.g.values
    assert data.g_quantiles.dims == ("payload.mass", "joint", "g_quantile_level")
    exact = np.quantile(raw, [0.1, 0.9], axis=1, method="inverted_cdf")
    assert np.array_equal(data.g_quantiles, np.moveaxis(exact, 0, -1))
    assert np.allclose(data.g_mean, raw.mean(axis=1), rtol=1e-12, atol=1e-13)
    assert np.array_equal(data.g_max_point.values % 1000, raw.argmax(axis=1))


def test_single_precision_and_histogram(small, run):
    small["keep"] = {
        "tau": {"raw": True, "dtype": "float32", "histogram": {"low": -20.0, "high": 20.0, "bins": 8}}
    }
    data = run(small).dataset().load()
    double = lw.study(small).at(np.arange(80_000), ["tau"])["tau"]
    assert data.tau.dtype == np.float32
    assert np.array_equal(data.tau.values.reshape(-1, 2), double.astype(np.float32))
    expected = [np.histogram(double[:, k], 8, (-20, 20))[0] for k in range(2)]
    assert np.array_equal(data.tau_histogram, expected)
    np.testing.assert_allclose(data.tau_bin, np.arange(-17.5, 20.0, 5.0))
    assert data.tau_histogram.sum() + data.tau_outside.sum() == 160_000
