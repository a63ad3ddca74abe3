"""The program on a GPU: the same bits. Without one, NumPy stands in for CuPy."""

import sys
import types

import numpy as np
import pytest
from stores import contents

import linkwise as lw
from linkwise.study.engines import devices
from linkwise.study.errors import StudyError
from linkwise.study.sampling import philox


def pretended():
    """As much of CuPy as is used, on the CPU."""
    fake = types.SimpleNamespace(
        **{name: getattr(np, name) for name in ("empty", "asarray", "ascontiguousarray", "concatenate")}
    )
    fake.asnumpy = np.asarray
    return fake


def fill_by_definition(_, ticks, index, columns):
    for k in range(ticks.size):
        columns[ticks.row + k] = philox.ticks(index, ticks.key, k, ticks.bits)


def real():
    cupy = pytest.importorskip("cupy")
    try:
        assert cupy.cuda.runtime.getDeviceCount() > 0
    except Exception as error:
        pytest.skip(f"no GPU: {error}")
    return cupy


@pytest.mark.parametrize("library", [pretended, real])
def test_the_same_bytes(library, small, run, monkeypatch):
    small["design"] = "random"
    small["vary"]["qd"]["design"] = "latin_hypercube"
    small["vary"]["w"] = {"uniform": [0.0, 1.0], "design": "sobol"}
    small["compute"]["more"] = "w + load"
    small["keep"]["more"] = ["mean"]
    expected = contents(run(small).path)
    used = library()
    monkeypatch.setenv(devices.VARIABLE, "1")
    monkeypatch.setattr(devices, "arrays", lambda: used)
    monkeypatch.setattr(devices, "BATCH", 10_000)
    if library is pretended:
        monkeypatch.setattr(devices, "fill_ticks", fill_by_definition)
    assert contents(run(small).path) == expected


def test_without_a_gpu_it_says_so(small, run, monkeypatch):
    monkeypatch.setenv(devices.VARIABLE, "1")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(StudyError, match=r"^a GPU was requested .*pip install 'linkwise\[gpu\]'$"):
        run(small)


def test_a_process_without_that_wish_stays_on_the_processor(monkeypatch):
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    assert not devices.wanted()
    assert lw.study(robot="two_link", vary={"q": 0.0}, keep={"q": "raw"}).plan.on_device is None
