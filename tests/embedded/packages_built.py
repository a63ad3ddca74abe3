"""Compiling and running C packages: the compilers that are installed, the warnings that must stay silent."""

import shutil
import subprocess

import pytest

WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wdouble-promotion -Wmissing-prototypes -Werror"
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
needs_make = pytest.mark.skipif(not (shutil.which("make") and COMPILERS), reason="no make or no C compiler")


def run(*command, cwd, fails=False):
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, timeout=240
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr
