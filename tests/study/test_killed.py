"""kill -9 of the process that runs a study, at random moments: resumed, its store has the very same bytes."""

import json
import random
import signal
import subprocess
import sys
import time

import pytest
from stores import SMALL, contents

import linkwise as lw

TABLES = {**SMALL, "samples": 200_000, "chunk": 4096}
RUN = """
import json, sys, linkwise as lw
lw.study(json.load(open(sys.argv[1]))).run(sys.argv[2], resume=sys.argv[3] == "True", threads=2)
"""


def test_a_killed_driver_loses_nothing(tmp_path):
    expected = contents(lw.study(TABLES).run(tmp_path / "whole").path)
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
    assert contents(store) == expected


@pytest.mark.parametrize("moment", ["before_rename", "while_finishing"])
def test_killed_in_the_worst_moments(tmp_path, moment):
    """Killed while a store is being made, and while its last arrays are being written."""
    expected = contents(lw.study(SMALL).run(tmp_path / "whole").path)
    (tmp_path / "study.json").write_text(json.dumps(SMALL))
    patch = {
        "before_rename": "import pathlib, os; pathlib.Path.rename = lambda *a: os.kill(os.getpid(), 9)",
        "while_finishing": "import os, linkwise.study.finish; "
        "sys.modules['linkwise.study.finish']._with_arguments = lambda *a: os.kill(os.getpid(), 9)",
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
    assert contents(store) == expected


def test_interrupted_from_the_keyboard(tmp_path):
    """Control-C: the chunks in hand are finished, one line says how to go on."""
    expected = contents(lw.study(TABLES).run(tmp_path / "whole").path)
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
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert said == f"interrupted; nothing that was done is lost: linkwise study {store} --resume\n"
    assert not list(store.rglob(".aside*"))
    lw.study(TABLES).run(store, resume=True)
    assert contents(store) == expected
