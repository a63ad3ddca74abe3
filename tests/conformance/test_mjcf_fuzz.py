"""A sample of the mutated files of ``benchmarks/mjcf_fuzz.py``, and the table of names beside MuJoCo's own."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

mujoco = pytest.importorskip("mujoco")

from linkwise.model.mjcf_schema import schema  # noqa: E402

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
        seed for seed in range(1000) if fuzz.judge(seed)[0] == "agrees" and "<inertial" in fuzz.mutated(seed)
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


def test_every_name_of_the_installed_mujoco_is_known():
    """Newer versions add names; none of this one may be missing here."""
    above, missing = [schema()], []
    for line in _rows(mujoco.mj_printSchema(False, True)):
        depth, name, attributes = line
        if depth == 0:
            continue
        name = "worldbody" if name == "(world)body" else name
        del above[depth:]
        rule = above[-1].children.get(name)
        if rule is None:
            missing.append(name)
            continue
        if name == "worldbody":
            rule = rule.children["body"]
        missing += [f"{name}.{attribute}" for attribute in attributes if attribute not in rule.attributes]
        above.append(rule)
    assert not missing


def _rows(text: str):
    """(depth, element, attributes) of each element that MuJoCo prints."""
    rows = []
    for line in text.splitlines():
        found = re.match(r"^( {0,20})(\(world\)body|[a-z]+) \(.\)\s*(.*)$", line)
        if found:
            rows.append((len(found[1]) // 3, found[2], found[3].split()))
        elif line.strip():
            rows[-1][2].extend(line.split())
    return rows
