"""A real Dask cluster gives the bytes of an embedded run, whatever dies on the way."""

import json
import random
import resource
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from processes import Cluster
from stores import SMALL, contents

import linkwise as lw
from linkwise.study import cluster as engine
from linkwise.study.errors import StoppedError, StudyError

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


def test_a_worker_says_what_it_lacks():
    job = engine.job_for(lw.study(SMALL).plan)
    assert engine.fault(job) is None
    assert (engine.fault(replace(job, version="0.0.1")) or "").startswith("has linkwise ")
    assert engine.fault(replace(job, robot_content="x")) == "has another robot in two_link"


def test_a_worker_that_joins_later_is_asked_too(tmp_path):
    job = replace(engine.job_for(lw.study(SMALL).plan), path=str(tmp_path))
    with pytest.raises(StudyError, match=r"a worker has linkwise .*, this is 0\.0\.1"):
        engine.run_chunks(replace(job, version="0.0.1"), [0])
    with pytest.raises(StudyError, match="a worker does not see the store"):
        engine.run_chunks(job, [0])


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
    with pytest.raises(StudyError, match=r"worker tcp://\S+ cannot read the robot: .*arm\.toml") as caught:
        study.run(tmp_path / "store", cluster=cluster.address)
    assert "\n" not in str(caught.value)
    lw.save(lw.load("two_link").with_gravity((0, 0, -1)), tmp_path / "arm.toml")
    with pytest.raises(StudyError, match=r"has another robot in"):
        study.run(tmp_path / "store", cluster=cluster.address)
    assert not (tmp_path / "store").exists()


def test_a_store_that_a_worker_does_not_see(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "replace", lambda job, path: replace(job, path="/nowhere"))
    with pytest.raises(StudyError, match=r"worker tcp://\S+ does not see the store /nowhere"):
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
    """One line and nothing else: no trace of the client that found nobody, no folder."""
    code = (
        "import sys; from linkwise.study import cluster; from linkwise.cli import main; "
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
