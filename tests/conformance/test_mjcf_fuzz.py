"""A sample of the mutated files of ``benchmarks/mjcf_fuzz.py``."""

import importlib.util
import sys
from pathlib import Path

import pytest

mujoco = pytest.importorskip("mujoco")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "mjcf_fuzz.py"


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("mjcf_fuzz", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPT.parent))
    mujoco.set_mju_user_warning(lambda _: None)
    return module


def test_mutated_files_are_read_as_mujoco_reads_them(fuzz):
    outcomes = [(seed, *fuzz.judge(seed)) for seed in range(20_000, 20_400)]
    findings = [outcome for outcome in outcomes if outcome[1].isupper()]
    assert not findings
    assert sum(outcome == "agrees" for _, outcome, _ in outcomes) > 100


def test_a_difference_is_found(fuzz):
    """The comparison itself: another gravity, mass, pose or limit is no agreement."""
    seed = next(
        seed
        for seed in range(1000)
        if fuzz.judge(seed)[0] == "agrees"
        and "<inertial" in (text := fuzz.mutated(seed))
        and fuzz.read_here(text).dof
    )
    xml = fuzz.mutated(seed)
    model = fuzz.read_here(xml)
    for change in (
        {"gravity": (0, 0, 1)},
        {"joints": [fuzz_replace(joint, rotor_inertia=joint.rotor_inertia + 1) for joint in model.joints]},
    ):
        with pytest.raises(fuzz.Disagreement):
            fuzz.compare(model._with(**change), mujoco.MjModel.from_xml_string(xml), seed)


def fuzz_replace(joint, **changes):
    from dataclasses import replace

    return replace(joint, **changes) if joint.moves else joint
