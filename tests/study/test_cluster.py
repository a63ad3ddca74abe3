"""A real Dask cluster gives the bytes of an embedded run, whatever fails in between."""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from processes import Cluster
from stores import SMALL, contents

import linkwise as lw
from linkwise.study.engines import cluster as engine
from linkwise.study.errors import StoppedError, StudyError, StudyWarning
from linkwise.study.store.folder import read_study, study_text

pytest.importorskip("distributed")

TABLES = {**SMALL, "samples": 120_000, "chunk": 4096}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return contents(lw.study(TABLES).run(tmp_path_factory.mktemp("embedded") / "store", progress=False).path)


def test_the_same_bytes_as_an_embedded_run(cluster, expected, tmp_path):
    results = lw.study(TABLES).run(tmp_path / "store", cluster=cluster.address)
    assert contents(results.path) == expected


def test_killed_workers_lose_nothing(cluster, expected, tmp_path):
    moments = random.Random(1)
    stop = threading.Event()

    def trouble():
        while not (tmp_path / "store" / "data.zarr" / "tau" / "c").exists() and not stop.is_set():
            time.sleep(0.01)
        for _ in range(2):
            stop.wait(moments.uniform(0.0, 0.4))
            cluster.kill_worker()
            cluster.add_worker()
            cluster.wait(1)

    thread = threading.Thread(target=trouble)
    thread.start()
    try:
        results = lw.study(TABLES).run(tmp_path / "store", cluster=cluster.address)
    finally:
        stop.set()
        thread.join()
    assert results.complete
    assert contents(results.path) == expected
    cluster.wait(2)


def test_a_result_whose_worker_dies_before_it_is_fetched_is_computed_again(
    cluster, expected, tmp_path, monkeypatch
):
    """A busy driver looks at a finished task late; the worker that holds its result may be dead by then."""
    late = []
    wait_for_next = engine.ClusterEngine._next

    def next_after_a_death(self, landed):
        future = wait_for_next(self, landed)
        if future is not None and future.status == "finished" and not late:
            late.append(future)
            for _ in range(2):
                cluster.kill_worker()
                cluster.add_worker()
            while future.status == "finished":
                time.sleep(0.01)
        return future

    monkeypatch.setattr(engine.ClusterEngine, "_next", next_after_a_death)
    results = lw.study(TABLES).run(tmp_path / "store", cluster=cluster.address)
    assert late
    assert results.complete
    assert contents(results.path) == expected
    cluster.wait(2)


DRIVER = """
import json, sys, linkwise as lw
lw.study(json.loads(sys.argv[1])).run(sys.argv[2], cluster=sys.argv[3], resume=sys.argv[4] == "True")
"""


def test_a_killed_driver_is_no_loss_either(cluster, expected, tmp_path):
    """Its workers may still be writing while another driver goes on."""
    store, moments = tmp_path / "store", random.Random(3)
    for resume in (False, True):
        arguments = [json.dumps(TABLES), str(store), cluster.address, str(resume)]
        driver = subprocess.Popen([sys.executable, "-c", DRIVER, *arguments])
        journal = store / "journal"
        size = journal.stat().st_size if resume else 0
        while driver.poll() is None and not (journal.exists() and journal.stat().st_size > size):
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.1))
        driver.kill()
        driver.wait()
        if not journal.exists():
            break
    if (store / "journal").exists():
        lw.study(TABLES).run(store, cluster=cluster.address, resume=True)
    assert contents(store) == expected


def job_and_identity(tables):
    plan = lw.study(tables).plan
    return engine.job_for(plan), plan.description.identity


def changed(identity, **parts):
    """The identity of a driver that differs."""
    return {**identity, **{key: {**identity[key], **value} for key, value in parts.items()}}


def test_a_worker_says_what_it_lacks():
    job, identity = job_and_identity(SMALL)
    assert engine.fault(job, identity) is None
    for other, message in (
        ({**identity, "linkwise": "0.0.1"}, f"linkwise 0.0.1 is not {lw.__version__}"),
        (
            changed(identity, package={"study/engines/native.py": "x"}),
            "linkwise's own source differs: study/engines/native.py",
        ),
        (changed(identity, robot={"robot 'two_link'": "x"}), "robot 'two_link' differs"),
    ):
        found = engine.fault(replace(job, identity=engine.identity.digest(other)), other)
        assert found == f"has other code or another robot: {message}; restart it with the same"


def test_a_worker_that_joins_later_is_asked_too(tmp_path):
    job, identity = job_and_identity(SMALL)
    with pytest.raises(StudyError, match="a worker cannot access the store"):
        engine.run_chunks(replace(job, path=str(tmp_path)), [0])
    store = lw.study({**SMALL, "retries": 5}).run(tmp_path / "store").path
    known = read_study(store)
    known["identity"] = other = changed(identity, package={"study/engines/native.py": "x"})
    (store / "study.json").write_text(study_text(known))
    job = replace(job, path=str(store), identity=engine.identity.digest(other))
    with pytest.raises(StudyError, match=r"a worker has other code .* differs: study/engines/native\.py"):
        engine.run_chunks(job, [0])


def test_a_worker_with_other_code_gets_no_chunks(cluster, expected, tmp_path, monkeypatch):
    """It joins after the check at the start, fails at once, and would take most of the chunks."""
    package = tmp_path / "other" / "linkwise"
    shutil.copytree(Path(lw.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "study" / "engines" / "native.py").open("a").write("CHANGED = True\n")
    cluster.add_worker(PYTHONPATH=str(tmp_path / "other"))
    try:
        cluster.wait(3)
        monkeypatch.setattr(engine.ClusterEngine, "_ask", lambda *_: None)
        with pytest.warns(
            StudyWarning, match=r"worker tcp://\S+ .*; it gets no chunks of this study"
        ) as told:
            results = lw.study({**TABLES, "retries": 0}).run(tmp_path / "store", cluster=cluster.address)
        assert len(told) == 1
        assert results.complete
        assert results.dataset().attrs["chunks_set_aside"] == 0
        assert {k: v for k, v in contents(results.path).items() if k.startswith("data.zarr/tau")} == {
            k: v for k, v in expected.items() if k.startswith("data.zarr/tau")
        }
    finally:
        cluster.kill_worker(-1)


OWN = "GAIN = {gain}\ndef f(q):\n    return GAIN * q.sum(axis=1)\n"


def test_workers_with_another_function_are_refused(tmp_path, monkeypatch):
    """They imported the function before it was changed here."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.py").write_text(OWN.format(gain=2.0))
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.py").write_text(OWN.format(gain=3.0))
    monkeypatch.syspath_prepend(tmp_path / "here")
    path = os.pathsep.join((str(tmp_path / "there"), str(Path(lw.__file__).parents[1])))
    own = Cluster(tmp_path, workers=1, environment={"PYTHONPATH": path})
    vary = {"q": {"uniform": [-1.0, 1.0]}}
    tables = {"robot": "two_link", "samples": 10, "vary": vary, "keep": {"x": ["mean"]}}
    tables["compute"] = {"x": {"call": "mine:f"}}
    try:
        with pytest.raises(
            StudyError,
            match=r"worker tcp://\S+ has other code .*: global 'GAIN' of function 'f' in mine.py differs; restart",
        ):
            lw.study(tables).run(tmp_path / "store", cluster=own.address)
        assert not (tmp_path / "store").exists()
    finally:
        own.close()
        sys.modules.pop("mine", None)


def test_a_client_and_a_cluster_object(cluster, expected, tmp_path):
    import distributed

    with distributed.Client(cluster.address, set_as_default=False) as client:
        results = lw.study(TABLES).run(tmp_path / "client", cluster=client)
        assert contents(results.path) == expected
        assert client.status == "running", "it is not closed: it belongs to its maker"
    with pytest.raises(StudyError, match="the Client is closed"):
        lw.study(TABLES).run(tmp_path / "closed", cluster=client)
    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(processes=False, **options) as local:
        results = lw.study(TABLES).run(tmp_path / "local", cluster=local)
        assert contents(results.path) == expected
        assert local.status.name == "running"


@pytest.mark.parametrize("wrong", [3, object(), ["tcp://a"]])
def test_what_is_no_cluster(tmp_path, wrong):
    with pytest.raises(
        StudyError, match="cluster: expected an address, a Client or a cluster of Dask, got a"
    ):
        lw.study(SMALL).run(tmp_path / "store", cluster=wrong)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Settings of Dask that name files with a certificate and its key."""
    pytest.importorskip("cryptography")
    from distributed.security import Security

    made, folder = Security.temporary(), tmp_path_factory.mktemp("tls")
    (folder / "ca.pem").write_text(made.tls_ca_file)
    (folder / "both.pem").write_text(made.tls_client_cert + made.tls_client_key)
    names = [f"{role}.{part}" for role in ("scheduler", "worker", "client") for part in ("cert", "key")]
    settings = {"ca-file": str(folder / "ca.pem"), **dict.fromkeys(names, str(folder / "both.pem"))}
    return {f"distributed.comm.tls.{name}": path for name, path in settings.items()}


def test_tls(certificates, expected, tmp_path, monkeypatch):
    import dask

    monkeypatch.setattr(engine, "CONNECT_SECONDS", 20.0)
    (tmp_path / "cluster").mkdir()
    names = {
        f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": v for name, v in certificates.items()
    }
    with dask.config.set(certificates):
        own = Cluster(tmp_path / "cluster", workers=1, protocol="tls", environment=names)
        try:
            assert own.address.startswith("tls://")
            results = lw.study(TABLES).run(tmp_path / "store", cluster=own.address)
            assert contents(results.path) == expected
        finally:
            with dask.config.set(dict.fromkeys(certificates)):
                with pytest.raises(
                    StudyError, match=r"cluster tls://.*certificates come from the config"
                ) as no:
                    lw.study(TABLES).run(tmp_path / "none", cluster=own.address)
                assert "\n" not in str(no.value)
            own.close()


def test_a_full_disk_on_a_worker(cluster, expected, tmp_path):
    """The operating system lets the workers write small files only."""
    for worker in cluster.workers:
        resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
    try:
        with pytest.raises(StoppedError, match=r"store: File too large; nothing .* is lost") as caught:
            lw.study(TABLES).run(tmp_path / "store", cluster=cluster.address)
    finally:
        for worker in cluster.workers:
            resource.prlimit(
                worker.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            )
    assert "\n" not in str(caught.value)
    lw.study(TABLES).run(tmp_path / "store", cluster=cluster.address, resume=True)
    assert contents(tmp_path / "store") == expected


def test_a_pulled_cluster_is_resumed_here(tmp_path, monkeypatch):
    """The scheduler dies in the middle of a run; threads of this process complete it."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    own = Cluster(folder, workers=1)

    def pull():
        while not (tmp_path / "store" / "data.zarr" / "tau" / "c").exists():
            time.sleep(0.01)
        own.close()

    thread = threading.Thread(target=pull)
    thread.start()
    with pytest.raises(StoppedError, match=r"cluster tcp.*gone; nothing that was done is lost.*--resume"):
        lw.study({**TABLES, "samples": 400_000}).run(tmp_path / "store", cluster=own.address)
    thread.join()
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 1.0)
    with pytest.raises(StudyError, match="no scheduler answers there"):
        lw.study({**TABLES, "samples": 400_000}).run(tmp_path / "store", cluster=own.address, resume=True)
    lw.study({**TABLES, "samples": 400_000}).run(tmp_path / "store", resume=True)
    alone = lw.study({**TABLES, "samples": 400_000}).run(tmp_path / "alone")
    assert contents(tmp_path / "store") == contents(alone.path)


def test_a_robot_that_is_missing_on_a_worker(cluster, tmp_path):
    lw.save(lw.load("two_link"), tmp_path / "arm.toml")
    study = lw.study({**TABLES, "robot": str(tmp_path / "arm.toml")})
    (tmp_path / "arm.toml").unlink()
    with pytest.raises(StudyError, match=r"worker tcp://\S+ cannot read the study: .*arm\.toml") as caught:
        study.run(tmp_path / "store", cluster=cluster.address)
    assert "\n" not in str(caught.value)
    lw.save(lw.load("two_link").with_gravity((0, 0, -1)), tmp_path / "arm.toml")
    with pytest.raises(StudyError, match=r"another robot: robot 'arm\.toml' differs"):
        study.run(tmp_path / "store", cluster=cluster.address)
    assert not (tmp_path / "store").exists()


def test_a_store_that_a_worker_does_not_see(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "replace", lambda job, path: replace(job, path="/nowhere"))
    with pytest.raises(StudyError, match=r"worker tcp://\S+ cannot access the store /nowhere"):
        lw.study(SMALL).run(tmp_path / "store", cluster=cluster.address)
    assert not (tmp_path / "store").exists()


def test_a_robot_object_is_sent_along(cluster, tmp_path):
    tables = {**TABLES, "robot": lw.load("two_link").with_payload(1.0), "samples": 9000}
    far = lw.study(tables).run(tmp_path / "far", cluster=cluster.address)
    near = lw.study(tables).run(tmp_path / "near")
    assert contents(far.path) == contents(near.path)


def test_own_functions_by_name(cluster, tmp_path):
    tables = {
        "robot": "two_link",
        "samples": 5000,
        "vary": {"q": {"uniform": [-1, 1]}, "x": {"uniform": [0, 1]}},
        "compute": {"heat": {"call": "own_functions:heat", "inputs": {"payload": "x"}}},
        "keep": {"heat": {"raw": True, "statistics": ["mean"]}},
    }
    far = lw.study(tables).run(tmp_path / "far", cluster=cluster.address)
    near = lw.study(tables).run(tmp_path / "near")
    assert contents(far.path) == contents(near.path)
    tables["compute"] = {"heat": lambda q: q}
    with pytest.raises(StudyError, match=r"compute\.heat: an object of this process cannot be sent"):
        lw.study({**tables, "vary": {"q": {"uniform": [-1, 1]}}}).run(
            tmp_path / "object", cluster=cluster.address
        )


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x", "no host"])
def test_an_unreachable_cluster(tmp_path, address):
    """One line and nothing else: no log lines of a client that found no scheduler, no folder."""
    code = (
        "import sys; from linkwise.study.engines import cluster; from linkwise.cli import main; "
        "cluster.CONNECT_SECONDS = 0.3; sys.exit(main(sys.argv[1:]))"
    )
    (tmp_path / "study.toml").write_text(
        'robot = "two_link"\nvary = { q = [0.1, 0.2] }\nkeep = { q = "raw" }\n'
    )
    command = [sys.executable, "-c", code, "study", "study.toml", "--cluster", address]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"linkwise: cluster {address}: no scheduler answers there (")
    assert ran.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


def test_task_sizes():
    assert engine._task_size(10.0) == 1
    assert engine._task_size(0.01) == 50
    assert engine._task_size(1e-9) == engine.MOST_CHUNKS


def test_a_point_that_kills_workers_costs_one_point(tmp_path):
    """Two points of one chunk end the process, one raises: a worker dies once, and all other points are there."""
    (tmp_path / "cluster").mkdir()
    own = Cluster(tmp_path / "cluster", workers=2)
    tables = {
        "robot": "two_link",
        "chunk": 820,  # its points are called one by one, in four processes
        "retries": 0,
        "vary": {"x": {"grid": [float(k) for k in range(1000)]}},
        "compute": {"double": {"call": "own_functions:deadly"}},
        "keep": {"double": {"raw": True, "statistics": ["mean", "count"]}},
    }
    try:
        results = lw.study(tables).run(tmp_path / "store", cluster=own.address, progress=False)
        alive = [worker.poll() is None for worker in own.workers]
    finally:
        own.close()
    assert sum(alive) == 1
    bad = {
        123: "the process ended with status 3 at this point",
        432: "the process died of SIGSEGV at this point",
    }
    bad[300] = "ValueError: three hundred"
    rows = results.table("errors").to_pylist()
    assert {row["point"]: row["error"] for row in rows} == bad
    assert [row["x"] for row in rows] == [float(point) for point in sorted(bad)]
    data = results.dataset().load()
    expected = 2.0 * np.arange(1000)
    expected[list(bad)] = np.nan
    assert np.array_equal(data.double, expected, equal_nan=True)
    assert data.double_count == 997
    assert data.double_mean.attrs["points_left_out"] == 3
    assert not list((tmp_path / "store").rglob(".aside*"))
