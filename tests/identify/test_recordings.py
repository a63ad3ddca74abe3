"""Real arms: the table of benchmarks/identification.py, where the recordings are present."""

import importlib.util
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("LINKWISE_DATA", ROOT.parent / "shared" / "data"))

pytestmark = pytest.mark.skipif(not (DATA / "ur10e").is_dir(), reason=f"no recordings in {DATA}")


@pytest.fixture(scope="module")
def benchmark():
    path = ROOT / "benchmarks" / "identification.py"
    spec = importlib.util.spec_from_file_location("identification_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["ur10e", "ur10", "tx40"])
def test_figures_are_reached(benchmark, name):
    for recording in benchmark.RECORDINGS[name](DATA):
        found = benchmark.row(recording)
        baseline, default = found["baseline"], found["default"]
        plain = baseline["plain"][-1]
        assert baseline["physically_consistent"]
        assert default["physically_consistent"]
        if name == "lwr4":
            # Plain least squares take a negative rotor inertia at joint 7, which helps on this motion and does harm on
            # a faster one (150 % instead of 87 %): possible drives cost this much here.
            assert default["total"] < 1.08 * plain
            assert baseline["total"] < 1.2 * plain
        elif name == "ur10e":
            # Joints 5 and 6 stand still for half of the run, where friction may be anything: they count in motion.
            assert default["total"] < 0.85 * plain
            assert baseline["total"] < 1.05 * plain
            figures = np.array(recording.figures)
            assert (np.array(default["relative"])[:4] < figures[:4]).all(), default["relative"]
            assert max(default["moving"][4:]) < 12.0
            assert max(baseline["moving"][4:]) < 12.0
        else:
            assert found["default_reached"], (recording.name, default["relative"])
            assert found["baseline_reached"], (recording.name, baseline["relative"])


def test_positions_alone_do_nearly_as_well(benchmark):
    """Velocities from positions: the cut-off chosen from the data must bear that."""
    recording = next(benchmark.ur10(DATA))
    alone = replace(recording, train=replace(recording.train, qd=None), test=replace(recording.test, qd=None))
    found = np.array(benchmark.judged(alone, "auto")["relative"])
    assert (found < np.array(recording.figures)).all()
