"""The MJCF reader against MuJoCo itself, on mutated files.

    python benchmarks/mjcf_fuzz.py --files 10000
    python benchmarks/mjcf_fuzz.py --seed 1234 --files 1 --show     # one file, printed

Random arms are written as MJCF with default classes, frames, settings and geoms; then attributes are changed, left
out, misspelt or given to another element, and elements are repeated, moved, nested or left out. Where both readers
take a file every number must agree: masses, inertias, poses, axes, limits, damping, springs, armature, friction loss
and gravity, and mass matrix, bias forces and inverse dynamics at random states. A file that MuJoCo refuses must be
refused, unless ``LISTED`` has the reason. ``--files N`` counts files that both readers take.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import mujoco
from mjcf_parts.comparing import Disagreement, compare
from mjcf_parts.generating import mutated

from linkwise.errors import LinkwiseError, ModelError, ModelWarning
from linkwise.formats.mjcf.reader import read_mjcf
from linkwise.model.model import Model

# What MuJoCo refuses and is read here: a pattern of its message, and why.
NOT_READ = "values and references in sections that are not read are not checked"
LISTED = {
    r"unrecognized name|sensor|Element '(jointpos|\w+vel|frame\w+|gyro|accelerometer)'": NOT_READ,
    r"transmission|actuator|Element '(motor|general|position|velocity|adhesion)'": NOT_READ,
    r"bodypair|in collision|Element '(pair|exclude)'": NOT_READ,
    r"keyframe|Element 'key'|in light": NOT_READ,
    r"tendon|in wrap|'coef'|missing: '(joint|site)'|Element '(fixed|spatial)'": NOT_READ,
    r"Element '(camera|light|headlight|global|quality|map|scale|rgba|statistic|size|numeric|text)'": NOT_READ,
    "top-level default class 'main' cannot be renamed": "older versions allowed it, and the meaning is clear",
}


def read_here(xml: str) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return read_mjcf(xml.encode(), "arm.xml")


def without_meshes(path: Path) -> str:
    """An MJCF file without its geoms and assets: the meshes that they name are not here."""
    xml = re.sub(r"<!--.*?-->|<asset>.*?</asset>", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"<geom\b[^>]*/>", "", xml)


def judge(seed: int, bases: Sequence[str] = ()) -> tuple[str, str]:
    """(outcome, why) of one file: agrees, DISAGREES, refused by both, refused here, READ HERE ONLY, FAILS."""
    xml = mutated(seed, bases)
    try:
        model, here = read_here(xml), ""
    except ModelError as error:
        model, here = None, str(error)
    except Exception as error:
        return "FAILS", f"{type(error).__name__}: {error}"
    try:
        peer, there = mujoco.MjModel.from_xml_string(xml), ""
    except ValueError as error:
        peer, there = None, " ".join(str(error).split())
    if model is None or peer is None:
        if model is None and peer is None:
            return "refused by both", here
        if model is None:
            return "refused here", here
        reason = next((why for part, why in LISTED.items() if re.search(part, there)), None)
        return ("READ HERE ONLY", there) if reason is None else ("read here, listed", reason)
    try:
        compare(model, peer, seed)
    except (Disagreement, LinkwiseError) as error:
        return "DISAGREES", str(error)
    return "agrees", ""


def loads_there(xml: str) -> bool:
    try:
        return mujoco.MjModel.from_xml_string(xml).nv > 0
    except ValueError:
        return False


def general(reason: str) -> str:
    """A reason without the names and numbers of its file."""
    reason = re.sub(r"arm.xml:\d+: <.*?>( of <.*?>)*: ", "", reason)
    reason = re.sub(r'"[^"]*"|\'[^\']*\'', "…", reason)
    return re.sub(r"[-+]?\d[\d.e+-]*", "#", reason).split(";")[0][:90]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000, help="files that both readers take")
    parser.add_argument("--seed", type=int, default=0, help="number of the first file")
    parser.add_argument(
        "--mutate", type=Path, nargs="*", default=(), help="files to mutate instead of random ones"
    )
    parser.add_argument("--show", action="store_true", help="print the files with findings")
    parser.add_argument("--reasons", action="store_true", help="list why files were refused")
    options = parser.parse_args()
    mujoco.set_mju_user_warning(lambda _: None)  # else it writes them into a file
    counts: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    findings = 0
    bases = [without_meshes(path) for path in options.mutate]
    bases = [xml for xml in bases if loads_there(xml)]
    seed = options.seed
    while counts["agrees"] + counts["DISAGREES"] < options.files:
        outcome, why = judge(seed, bases)
        counts[outcome] += 1
        reasons[outcome, general(why)] += 1
        if outcome.isupper():
            findings += 1
            print(f"file {seed}: {outcome}: {why}"[:400])
            if options.show:
                print(mutated(seed, bases))
        elif options.show and options.files == 1:
            print(f"file {seed}: {outcome}: {why}\n{mutated(seed, bases)}")
        seed += 1
    print(f"{seed - options.seed} files, seeds {options.seed} to {seed - 1}: ", end="")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
    if options.reasons:
        for (outcome, why), count in reasons.most_common():
            if why:
                print(f"{count:7}  {outcome}: {why}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
