"""Shared by all tests: the same examples on every run, and no compiled code in the user's own cache."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=30,
    print_blob=False,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", parent=settings.get_profile("ci"), derandomize=False, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A job in the background of a script, or under nohup, starts with these signals ignored, and its children inherit that.
for _name in ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"):
    _number = getattr(signal, _name, None)
    if _number is not None and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _name == "SIGINT" else signal.SIG_DFL)
# Tests start hundreds of processes: without bytecode each one would compile the source of the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Threads of NumPy's linear algebra wait for each other by spinning: beside other workers that takes ten times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Compiling makes millions of objects, nearly all in cycles, and looking for them while they are needed takes a tenth of
# the time of the tests: it is done between tests, and what stayed is not looked at again. The number is small so that
# code which collects by itself (timings) finds little to do, and memory is used again.
gc.disable()
MANY_OBJECTS = 300_000

os.environ.pop("COLUMNS", None)  # commands lay out what they print for it; tests of widths set it

if "LINKWISE_CACHE" not in os.environ:
    _folder = tempfile.TemporaryDirectory(prefix="linkwise-tests-")
    os.environ["LINKWISE_CACHE"] = _folder.name

# No further processes (tests of them switch them on), and code that is compiled quickly: it has the same bits. The
# tests of the compiler, of all functions and of other programs use the code that users have in the end.
os.environ.setdefault("LINKWISE_BACKGROUND", "quick")
BEST_CODE = {"compiler", "frameworks", "test_kernels.py"}
IS_QUICK = os.environ["LINKWISE_BACKGROUND"] == "quick"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before all fixtures of the test."""
    if IS_QUICK:
        os.environ["LINKWISE_BACKGROUND"] = (
            "0" if BEST_CODE & {item.path.parent.name, item.path.name} else "quick"
        )


def pytest_collection_finish():
    """What has been imported stays: the garbage collector need not look at it, not even once."""
    gc.freeze()


def pytest_runtest_logfinish():
    """Between two tests."""
    if gc.get_count()[0] > MANY_OBJECTS:
        _forget_garbage()


def _forget_garbage():
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def chrome(tmp_path_factory):
    """One browser for all tests, as starting one takes seconds; ``browser.reset`` at the start of each module."""
    import browser

    # names of another site, for the tests of access
    resolver = "--host-resolver-rules=MAP *.example 127.0.0.1"
    driver = browser.start(tmp_path_factory.mktemp("browser"), 1100, 800, resolver)
    yield driver
    driver.quit()
