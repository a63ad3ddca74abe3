"""Computing the certificate of a package again, from the robot and the choices that the package has in its files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linkwise.embedded.entry import Options
from linkwise.errors import LinkwiseError
from linkwise.evidence.sheet import CERTIFICATE, MODEL, CertifiedPackage, operations_of
from linkwise.robot.loading import load

_CLOSE = 1e-6
"""Bounds that differ by less, relative to the largest of an output, are the same: sums are rounded in another order on
other processors."""


class RecomputeError(LinkwiseError, ValueError):
    """A certificate cannot be computed again; the message says why."""


def recompute(folder: str | os.PathLike[str]) -> list[str]:
    """Compute the certificate of a package again; sentences on what differs, none if all is the same.

    The robot is read from ``check/robot.toml``, the code is generated again and must be the same, byte by byte, and all
    bounds are computed again and must be those of ``certificate.json``.

    Args:
        folder: of the package.

    Raises:
        RecomputeError: the folder is no certified package, or its options are not all in the certificate.
    """
    try:
        written = json.loads(Path(folder, CERTIFICATE).read_text(encoding="utf-8"))
        made = written["recipe"]
    except (OSError, ValueError, KeyError) as error:
        raise RecomputeError(f"{folder}: no certificate that can be computed again: {error}") from error
    if made["options_not_here"]:
        raise RecomputeError(f"{folder}: the certificate does not have {', '.join(made['options_not_here'])}")
    package = CertifiedPackage(
        load(Path(folder, MODEL)),
        made["functions"],
        Options(**made["options"]),
        prefix=made["prefix"],
        fma=made["fma"],
        constant_time=made["constant_time"],
        bounds=made["bounds"],
    )
    found: list[str] = []
    for f, certificate, row in zip(
        package.functions, package.certificates, written["functions"], strict=True
    ):
        place, operations = operations_of(f, package.fma, package.bounds.get("numbers"))
        same = [Path(folder, name).read_text("utf-8") for name in (place, f"src/{f.name}.c")]
        if same != [operations, f.text]:
            found.append(f"{f.name}: the code is not what Linkwise generates for this robot")
        found += [f"{f.name}: {sentence}" for sentence in _differences(certificate.json(), row)]
    return found


def _differences(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    found = []
    if new["box"] != old["box"]:
        found.append("the box is another one")
    if new["problems"] != old["problems"]:
        found.append("what could not be excluded is not the same")
    for a, b in zip(new["outputs"], old["outputs"], strict=True):
        size = max(abs(a["low"]), abs(a["high"]), 1e-300)
        same = [abs(a[key] - b[key]) <= _CLOSE * size for key in ("low", "high")]
        if not (all(same) and abs(a["error"] - b["error"]) <= _CLOSE * a["error"]):
            found.append(
                f"{a['name']}[{a['index']}]: between {a['low']!r} and {a['high']!r} with errors up to {a['error']!r}, "
                f"the certificate has {b['low']!r}, {b['high']!r} and {b['error']!r}"
            )
    ranges = {node: (low, high) for node, low, high in new["nodes"]}
    for node, low, high in old["nodes"]:
        if node not in ranges:
            found.append(f"v{node}: the certificate has a range of a value that is not there")
            continue
        least, most = ranges[node]
        size = max(abs(least), abs(most), 1e-300)
        if not (abs(low - least) <= _CLOSE * size and abs(high - most) <= _CLOSE * size):
            found.append(f"v{node}: between {least!r} and {most!r}, the certificate has {low!r} and {high!r}")
    return found
