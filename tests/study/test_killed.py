"""kill -9 of the process that runs a study, at random moments: resumed, its store has the very same bytes."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stores import SMALL, contents

import linkwise as lw
from linkwise.study.store.verify import verify

TABLES = {**SMALL, "samples": 200_000, "chunk": 4096}
RUN = """
import json, sys, linkwise as lw
lw.study(json.load(open(sys.argv[1]))).run(sys.argv[2], resume=sys.argv[3] == "True", threads=2)
"""


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The bytes of runs that nothing stops, by their number of samples."""
    folder = tmp_path_factory.mktemp("whole")
    runs = {
        tables["samples"]: lw.study(tables).run(folder / str(tables["samples"])) for tables in (SMALL, TABLES)
    }
    return {samples: contents(run.path) for samples, run in runs.items()}


def test_a_killed_driver_loses_nothing(expected, tmp_path):
    (tmp_path / "study.json").write_text(json.dumps(TABLES))
    moments = random.Random(2)
    store, killed = tmp_path / "killed", 0
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(tmp_path / "study.json"), str(store), str(store.exists())]
        )
        started = sum(len(files) for files in contents(store)) if store.exists() else 0
        while process.poll() is None and (not store.exists() or len(contents(store)) <= started + 2):
            time.sleep(0.01)
            if store.exists() and started and (store / "journal").stat().st_size > 0:
                break
        time.sleep(moments.uniform(0.0, 0.6))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed
    if (store / "journal").exists():
        lw.study(TABLES).run(store, resume=True)
    assert contents(store) == expected[TABLES["samples"]]


@pytest.mark.parametrize("moment", ["before_rename", "while_finishing"])
def test_killed_in_the_worst_moments(expected, tmp_path, moment):
    """Killed while a store is being made, and while its last arrays are being written."""
    (tmp_path / "study.json").write_text(json.dumps(SMALL))
    patch = {
        "before_rename": "import os; from linkwise.study.store.files import Disk; "
        "Disk.sync_folder = lambda *a: os.kill(os.getpid(), 9)",
        "while_finishing": "import os, linkwise.study.reduce.finish; "
        "sys.modules['linkwise.study.reduce.finish']._with_arguments = lambda *a: os.kill(os.getpid(), 9)",
    }[moment]
    store = tmp_path / "store"
    command = [
        sys.executable,
        "-c",
        f"import sys; {patch}{RUN}",
        str(tmp_path / "study.json"),
        str(store),
        "False",
    ]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert store.exists() == (moment == "while_finishing")
    lw.study(SMALL).run(store, resume=store.exists())
    assert contents(store) == expected[SMALL["samples"]]


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_interrupted(expected, tmp_path, number, word):
    """Control-C, or a batch system: the chunks in hand are finished, one line says how to go on."""
    (tmp_path / "study.json").write_text(json.dumps(TABLES))
    store = tmp_path / "store"
    code = f"""
import signal, sys, linkwise as lw
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    {RUN.strip().splitlines()[-1]}
except lw.LinkwiseError as error:
    sys.exit(str(error))
"""
    code = f"import json\n{code}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "study.json"), str(store), "False"],
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not list(store.rglob("tau/c/*/*/*")):
        time.sleep(0.005)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert said == f"{word}; nothing that was done is lost: linkwise study {store} --resume\n"
    assert not list(store.rglob(".aside*"))
    found = verify(store)
    assert (found.torn, found.damage) == (False, ())
    lw.study(TABLES).run(store, resume=True)
    assert contents(store) == expected[TABLES["samples"]]


def test_terminated_while_the_store_is_being_made(tmp_path):
    (tmp_path / "study.json").write_text(json.dumps(SMALL))
    patch = (
        "import os, signal, sys, linkwise as lw; from linkwise.study.store import files; real = files.Disk.sync; "
        "files.Disk.sync = lambda *a: (os.kill(os.getpid(), signal.SIGTERM), real(*a))"
    )
    run = RUN.strip().splitlines()[-1]
    code = f"import json\n{patch}\ntry:\n    {run}\nexcept lw.LinkwiseError as e:\n    sys.exit(str(e))"
    command = [sys.executable, "-c", code, str(tmp_path / "study.json"), str(tmp_path / "store"), "False"]
    ran = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert ran.stderr == f"{tmp_path / 'store'}: terminated before anything was computed\n"
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]


def test_the_command_is_terminated(tmp_path):
    """Its functions take longer than a batch system waits."""
    (tmp_path / "slow.py").write_text(
        "import time\ndef f(q):\n    time.sleep(0.2)\n    return q.sum(axis=1)\n"
    )
    (tmp_path / "slow.toml").write_text(
        'robot = "two_link"\nsamples = 100000\nchunk = 100000\n[vary]\nq = { uniform = [-1, 1] }\n'
        '[compute]\ns = { call = "slow:f" }\n[keep]\ns = { raw = true }\n'
    )
    environment = {**os.environ, "PYTHONPATH": f"{Path(lw.__file__).parents[1]}{os.pathsep}{tmp_path}"}
    command = [sys.executable, "-m", "linkwise", "study", "slow.toml", "--threads", "2"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list((tmp_path).glob("slow.study/data.zarr/s/c/.aside*")):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    line = "linkwise: terminated; nothing that was done is lost: linkwise study slow.study --resume"
    assert (process.returncode, said.splitlines()[-1]) == (128 + signal.SIGTERM, line)
    assert not list(tmp_path.rglob(".*"))
    assert verify(tmp_path / "slow.study").damage == ()
