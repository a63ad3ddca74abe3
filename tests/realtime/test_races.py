"""The harness under ThreadSanitizer: no data race between the synchronous task, the background, watchdog and log."""

from __future__ import annotations

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
                    .reference = reference, .reference_rows = 1, .oldest = 10, .patience = 10,
                    .read = simulated_read, .write = simulated_write, .plant = &state, .log = "log.csv"};
    for (int i = 0; i < N; ++i) {
        set.kp[i] = 100, set.kd[i] = 20, set.lower[i] = -10, set.upper[i] = 10;
        set.speed[i] = set.effort[i] = 100;
    }
    outcome result;
    row *rows = calloc(200, sizeof *rows);
    int32_t ask = 0;
    run(&set, &result, rows, &ask);
    printf("reason %d, some rows %d\\n", result.reason, result.rows > 10);
    return 0;
}
"""


def test_thread_sanitizer_finds_no_race(tmp_path):
    try:
        cc = compiler()
    except BuildError as error:
        pytest.skip(str(error))
    source, binary = tmp_path / "main.c", tmp_path / "main"
    source.write_text(TwoRatePrograms(lw.load("two_link")).source() + MAIN)
    options = ["-std=c11", "-O1", "-g", "-fsanitize=thread", "-pthread"]
    built = subprocess.run([cc, *options, "-o", binary, source, "-lm"], capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"no ThreadSanitizer here: {built.stderr.splitlines()[-1]}")
    ran = subprocess.run([binary], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    if "FATAL: ThreadSanitizer" in ran.stderr:
        pytest.skip(ran.stderr.splitlines()[0])
    assert "data race" not in ran.stderr, ran.stderr
    assert ran.stdout == "reason 0, some rows 1\n"


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
