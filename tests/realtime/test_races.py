"""The C code under sanitizers: no data race between synchronous task, background, watchdog and log; no overrun."""

from __future__ import annotations

import os
import subprocess

import pytest

import linkwise as lw
from linkwise.realtime import TwoRatePrograms
from linkwise.realtime.build import BuildError, compiler

MAIN = """
int main(void)
{
    static double reference[3 * N];
    static simulated state;
    settings set = {.period = 1e-3, .inertia_period = 0.002, .velocity_period = 0.003, .cycles = 200,
                    .reference = reference, .reference_rows = 1, .oldest = 10, .patience = 10, .stop_time = 0.05,
                    .read = simulated_read, .write = simulated_write, .plant = &state, .log = "log.csv"};
    for (int i = 0; i < N; ++i) {
        set.kp[i] = 100, set.kd[i] = 20, set.lower[i] = -10, set.upper[i] = 10;
        set.speed[i] = set.effort[i] = 100, set.following[i] = 10, set.frozen[i] = 1;
    }
    outcome result;
    row *rows = calloc((size_t)rows_needed(&set), sizeof *rows);
    int32_t ask = 0;
    run(&set, &result, rows, &ask);
    printf("reason %d, some rows %d\\n", result.reason, result.rows > 10);
    /* the watchdog stops a task that is stuck in its driver */
    state.fault = SLEEP, state.fault_cycle = 20, state.fault_value = 0.5, state.cycle = 0;
    set.patience = 0.2;
    run(&set, &result, rows, &ask);
    printf("reason %d, stop rows %d\\n", result.reason, result.stop_rows > 1);
    return 0;
}
"""


@pytest.mark.parametrize(("sanitizer", "joints"), [("thread", 2), ("address,undefined", 1)])
def test_sanitizers_find_nothing(tmp_path, sanitizer, joints):
    try:
        cc = compiler()
    except BuildError as error:
        pytest.skip(str(error))
    source, binary = tmp_path / "main.c", tmp_path / "main"
    robot = lw.load("two_link")
    robot = robot if joints == 2 else robot.lock({"joint2": 0.1})
    source.write_text(TwoRatePrograms(robot).source() + MAIN)
    options = ["-std=c11", "-O1", "-g", f"-fsanitize={sanitizer}", "-pthread"]
    built = subprocess.run([cc, *options, "-o", binary, source, "-lm"], capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"no sanitizer here: {built.stderr.splitlines()[-1]}")
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    ran = subprocess.run([binary], capture_output=True, text=True, cwd=tmp_path, timeout=60, env=environment)
    if "FATAL: ThreadSanitizer" in ran.stderr:
        pytest.skip(ran.stderr.splitlines()[0])
    assert "data race" not in ran.stderr, ran.stderr
    assert "ERROR: AddressSanitizer" not in ran.stderr, ran.stderr
    assert "runtime error" not in ran.stderr, ran.stderr
    assert ran.stdout == "reason 0, some rows 1\nreason 11, stop rows 1\n"


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_the_generated_file_has_no_warnings(tmp_path, name, monkeypatch):
    monkeypatch.setenv("CC", name)
    try:
        cc = compiler()
    except BuildError as error:
        pytest.skip(str(error))
    source = tmp_path / "main.c"
    source.write_text(TwoRatePrograms(lw.load("two_link")).source())
    options = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    built = subprocess.run(
        [cc, *options, "-o", tmp_path / "lib.so", source, "-lm"], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
