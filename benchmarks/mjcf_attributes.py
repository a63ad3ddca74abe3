"""Every attribute of MJCF switched, one at a time and in pairs: the reader beside MuJoCo.

    python benchmarks/mjcf_attributes.py
    python benchmarks/mjcf_attributes.py --pairs 20000 --seed 3
    python benchmarks/mjcf_attributes.py --only spring --show

``mjcf_parts/every_element.xml`` has the elements of MuJoCo's schema. Each attribute of each element gets the values of
``VALUES`` that MuJoCo accepts. Where both readers take the file all numbers agree (masses, poses, mass matrix, inverse
dynamics at random states, directions that constraints hold), and an attribute that ``schema.txt`` lists as without
effect changes none of MuJoCo's. ``CONTEXTS`` are settings under which others count: fluids, switched-off springs,
inertias from geoms. ``--pairs`` draws pairs of attributes, which finds those that count together.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
from mjcf_parts.comparing import Disagreement, compare, compare_held

from linkwise.errors import LinkwiseError, ModelError, ModelWarning
from linkwise.formats.mjcf.reader import read_mjcf
from linkwise.formats.mjcf.schema import Account, ElementRule, schema

BASE = (Path(__file__).parent / "mjcf_parts" / "every_element.xml").read_text()
VALUES = (
    *("0", "1", "0.3", "-0.4", "2", "true", "false", "auto", "enable", "disable", "none"),
    *("0.2 0.5", "0 1", "1 3", "0.3 0.2 0.1", "0.1 0.2 0.3 0.9", "1 0.2 0 0 0", "0 2", "0.5 1 0.5 1 1"),
    *(
        "0 0 0.3 0.4 0 0",
        "0.1 0 0 0 1 0.2",
        "0.1 0.2 0.3 1 0 0.1 0",
        "0.1 0.2 0.3 0 0 0 0",
        "0 0 1",
        "0 2 0 0 0",
    ),
    *(
        "ja",
        "jb",
        "jf",
        "sa",
        "sb",
        "sf",
        "a",
        "b",
        "ga",
        "ts",
        "tf",
        "block",
        "mat",
        "tex",
        "hills",
        "other",
        "am",
    ),
    *(
        "radian",
        "ZYX",
        "local",
        "merge",
        "error",
        "ellipsoid",
        "box",
        "sphere",
        "capsule",
        "slide",
        "hinge",
        "ball",
    ),
    *(
        "exact",
        "shell",
        "convex",
        "legacy",
        "Euler",
        "implicit",
        "implicitfast",
        "RK4",
        "PGS",
        "CG",
        "elliptic",
    ),
    *("dense", "sparse", "cube", "2d", "init", "never", "model/obj"),
)
ACCEPTED = {
    True: 6,
    False: 1,
}  # values that are tried of an attribute that is read, and of one without effect
ALIKE = ("sensor", "actuator")  # sections whose elements share their attributes
CONTEXTS: dict[str, dict[str, dict[str, str]]] = {
    "plain": {},
    "fluid": {"option": {"density": "1.2", "viscosity": "0.1", "wind": "1 2 3"}},
    "no springs": {"flag": {"spring": "disable"}, "joint[@name='ja']": {"springdamper": "0.1 0.5"}},
    "no dampers": {"flag": {"damper": "disable"}, "joint[@name='ja']": {"stiffness": "3", "damping": "2"}},
    "no passive forces": {
        "flag": {"spring": "disable", "damper": "disable"},
        "joint[@name='jf']": {"stiffness": "3", "damping": "2"},
    },
    "geoms": {"compiler": {"inertiafromgeom": "true", "angle": "radian"}},
    "tendon": {"fixed": {"damping": "0.3", "stiffness": "2", "armature": "0.1"}},
}


@dataclass(frozen=True)
class Switch:
    """One attribute of one element: where it is in the document, and what the table says of it."""

    place: int
    path: str
    attribute: str
    account: Account


def switches(root: ElementTree.Element) -> Iterator[Switch]:
    """Every attribute of every kind of element; all elements of the tree of bodies."""
    seen: set[str] = set()
    places = {element: place for place, element in enumerate(root.iter())}

    def visit(element: ElementTree.Element, rule: ElementRule, path: str) -> Iterator[Switch]:
        if path not in seen or "worldbody" in path:
            seen.add(path)
            for name, account in rule.attributes.items():
                if name != "name":
                    yield Switch(places[element], path, name, account)
        for child in element:
            yield from visit(child, rule.children[child.tag], f"{path}/{child.tag}")

    yield from visit(root, schema(), "mujoco")


def document(context: dict[str, dict[str, str]], changes: dict[Switch, str]) -> str:
    """The file with the settings of a context and other values of some attributes."""
    root = ElementTree.fromstring(BASE)
    elements = list(root.iter())
    for path, values in context.items():
        found = root.find(f".//worldbody//{path}") if "[" in path else root.find(f".//{path}")
        assert found is not None
        found.attrib.update(values)
    for switch, value in changes.items():
        elements[switch.place].set(switch.attribute, value)
    return ElementTree.tostring(root, encoding="unicode")


def there(xml: str) -> mujoco.MjModel | None:
    try:
        return mujoco.MjModel.from_xml_string(xml)
    except ValueError:
        return None


def numbers(peer: mujoco.MjModel) -> np.ndarray:
    """MuJoCo's mass matrix and torques of inverse dynamics at one state, and the rows of its equalities."""
    flags, enabled = peer.opt.disableflags, peer.opt.enableflags
    peer.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    peer.opt.enableflags = 0
    data = mujoco.MjData(peer)
    rng = np.random.default_rng(0)
    mujoco.mj_integratePos(peer, data.qpos, rng.normal(size=peer.nv), 0.5)
    data.qvel[:], data.qacc[:] = rng.normal(size=(2, peer.nv))
    mujoco.mj_inverse(peer, data)
    M = np.zeros((peer.nv, peer.nv))
    mujoco.mj_fullM(peer, data, M)
    peer.opt.disableflags, peer.opt.enableflags = flags, enabled
    held = [int(peer.eq_active0.sum()), *peer.eq_type.tolist()]
    return np.concatenate([M.ravel(), data.qfrc_inverse, peer.body_mass, held, peer.qpos0])


def judge(xml: str, switched: list[Switch], usual: np.ndarray | None) -> tuple[str, str]:
    """(outcome, why): not MuJoCo's, agrees, refused here, DISAGREES, HAS AN EFFECT, FAILS."""
    peer = there(xml)
    if peer is None:
        return "not MuJoCo's", ""
    if usual is not None and all(switch.account.reason and not switch.account.refused for switch in switched):
        found = numbers(peer)
        if found.shape != usual.shape or np.abs(found - usual).max() > 1e-9 * np.abs(usual).max():
            return "HAS AN EFFECT", "listed as without effect"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            model = read_mjcf(xml.encode(), "arm.xml")
    except ModelError as error:
        return "refused here", str(error)
    except Exception as error:
        return "FAILS", f"{type(error).__name__}: {error}"
    try:
        again = there(xml)
        assert again is not None
        compare_held(model, again)
        compare(model, peer, 0)
    except (Disagreement, LinkwiseError) as error:
        return "DISAGREES", str(error)
    return "agrees", ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=0, help="pairs of attributes that are drawn besides")
    parser.add_argument("--seed", type=int, default=0, help="of the pairs")
    parser.add_argument("--only", default="", help="elements/attributes with this text alone")
    parser.add_argument("--every", type=int, default=1, help="every n-th attribute alone")
    parser.add_argument("--show", action="store_true", help="print every outcome")
    options = parser.parse_args()
    mujoco.set_mju_user_warning(lambda _: None)
    counts: Counter[str] = Counter()
    findings = 0
    accepted: dict[Switch, list[str]] = {}
    tried = [s for s in switches(ElementTree.fromstring(BASE)) if options.only in f"{s.path}@{s.attribute}"]
    tried = tried[:: options.every]

    def count(context: str, changes: dict[Switch, str], usual: np.ndarray | None) -> None:
        nonlocal findings
        xml = document(CONTEXTS[context], changes)
        outcome, why = judge(xml, list(changes), usual)
        counts[outcome] += 1
        findings += outcome.isupper()
        if outcome.isupper() or options.show:
            named = ", ".join(f"{s.path}@{s.attribute}={v!r}" for s, v in changes.items())
            print(f"{context}: {named}: {outcome}: {why}"[:500], flush=True)

    known: dict[tuple[str, str], list[str]] = {}
    for switch in tried:
        section, _, tag = switch.path.removeprefix("mujoco/").partition("/")
        kind = (section if section in ALIKE else tag.rpartition("/")[2] or section, switch.attribute)
        if kind not in known or not known[kind]:
            found = (v for v in VALUES if there(document({}, {switch: v})) is not None)
            known[kind] = list(islice(found, ACCEPTED[switch.account.read]))
        accepted[switch] = known[kind]
    for context, settings in CONTEXTS.items():
        peer = there(document(settings, {}))
        assert peer is not None
        usual = numbers(peer)
        for switch, values in accepted.items():
            if context == "plain" or switch.account.read:
                for value in values:
                    count(context, {switch: value}, usual)
    rng = np.random.default_rng(options.seed)
    drawn = [s for s, values in accepted.items() if values and s.account.read]
    for _ in range(options.pairs):
        chosen = [drawn[k] for k in rng.choice(len(drawn), 2, replace=False)]
        changes = {s: accepted[s][rng.integers(len(accepted[s]))] for s in chosen}
        count(list(CONTEXTS)[rng.integers(len(CONTEXTS))], changes, None)
    without = sorted(f"{s.path}@{s.attribute}" for s, values in accepted.items() if not values)
    print(f"{len(tried)} attributes; MuJoCo accepts no value of {len(without)}: {' '.join(without)}")
    print(", ".join(f"{number} {outcome}" for outcome, number in counts.most_common()))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
