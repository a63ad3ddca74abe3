"""The proof sheet of a C package: certificate.json, a page for reviewers, and the program that checks them."""

from __future__ import annotations

import json
import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np

from linkwise.compiler.emit import c
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import Program
from linkwise.compiler.shapes import nest
from linkwise.core import foreign
from linkwise.core.once import once
from linkwise.embedded import stack
from linkwise.embedded.coded import Coded
from linkwise.embedded.entry import Options
from linkwise.embedded.package import MANIFEST, Package, digest
from linkwise.embedded.package_files import support_file
from linkwise.evidence import objects
from linkwise.evidence.certified_bounds import Certificate, OutputBounds, certify, straight_line
from linkwise.formats.toml.reader import write_toml
from linkwise.version import __version__

CERTIFICATE = "certificate.json"
PAGE = "CERTIFICATE.md"
CHECKER = "check/certificate.py"
MODEL = "check/robot.toml"
_PROBES = 8


class CertifiedPackage(Package):
    """A C package with bounds of all its functions.

    The arguments are those of ``Package``; ``bounds`` are options of ``certify``: velocity, acceleration,
    payload, given, tolerance, seconds.
    """

    def __init__(self, *args: Any, bounds: Mapping[str, Any] | None = None, **options: Any):
        super().__init__(*args, **options)
        self.bounds = dict(bounds or {})

    @once
    def certificates(self) -> list[Certificate]:
        """Of every function, in their order."""
        return [certify(self.robot, f.entry, fma=self.fma, **self.bounds) for f in self.functions]

    @once
    def files(self) -> dict[str, str]:
        """The text of every file by its path in the package."""
        found = {name: text for name, text in Package.files.function(self).items() if name != MANIFEST}
        numbers = self.bounds.get("numbers")
        sheets = []
        for f, certificate in zip(self.functions, self.certificates, strict=True):
            place, text = operations_of(f, self.fma, numbers)
            sheets.append(_function(f, certificate, self.fma, numbers, place, text))
            found[place] = text
        counted = objects.measured(
            {
                name.split("/")[1]: text
                for name, text in found.items()
                if name.startswith(("src/", "include/")) and not name.endswith("pp")
            },
            tuple(f.name for f in self.functions),
        )
        for sheet in sheets:
            sheet["objects"] = [
                {k: v for k, v in row.items() if k != "function"}
                for row in counted
                if row["function"] == sheet["name"]
            ]
        tools = {"linkwise": __version__, "python": platform.python_version(), "numpy": np.__version__}
        if compiler := stack.version_or_none():
            tools["compiler"] = compiler
        whole = {
            "assumptions": list(ASSUMPTIONS),
            "method": list(METHOD),
            "coverage": COVERAGE,
            "tools": tools,
            "recipe": recipe(self),
            "functions": sheets,
        }
        found[CERTIFICATE] = foreign.json_text(whole, indent=1) + "\n"
        found[MODEL] = write_toml(self.robot)
        found[CHECKER] = support_file("check_certificate.py.in", "linkwise.evidence")
        found[PAGE] = page(self.about, self.functions, self.certificates, sheets, tools)
        return self.with_manifest(found)


def operations_of(f: Coded, fma: bool, numbers: Mapping[str, int] | None = None) -> tuple[str, str]:
    """Path and text of the file with the operations of a function, one statement each.

    That is the code itself; of code with loops a file of its own, in which they are written out.

    Args:
        f: the function.
        fma: whether it uses fused multiply-adds.
        numbers: whole numbers that a call gives, such as the number of time steps of a loop.
    """
    if not _has_loops(f):
        return f"src/{f.name}.c", f.text
    program = straight_line(f.entry.program if fma else c.unfused(f.entry.program), numbers)
    return f"check/{f.name}_operations.txt", c.source(program, function_name=f.name, fma=fma)


def _has_loops(f: Coded) -> bool:
    program = f.entry.program
    return straight_line(program) is not program if isinstance(program, Program) else True


def _function(
    f: Coded, certificate: Certificate, fma: bool, numbers: Mapping[str, int] | None, place: str, text: str
) -> dict[str, Any]:
    """What certificate.json has of one function; of values only those that are statements of the code."""
    stated = {int(k) for k in re.findall(r"^ +const (?:double|float) v(\d+) =", text, re.MULTILINE)}
    whole = certificate.json()
    whole["nodes"] = [node for node in whole["nodes"] if node[0] in stated]
    source = {"file": f"src/{f.name}.c", "sha256": digest(f.text)}
    return {
        "name": f.name,
        "file": place,
        "sha256": digest(text),
        **({"code_with_loops": source} if _has_loops(f) else {}),
        **whole,
        "stack_bound": f.stack_bound,
        "operations": str(f.operations),
        "probes": _probes(f, certificate, fma, numbers),
    }


def _probes(
    f: Coded, certificate: Certificate, fma: bool, numbers: Mapping[str, int] | None
) -> list[dict[str, Any]]:
    """Random states of the box with the bits that the code returns there, its loops included."""
    code = nest(f.entry.program if fma else c.unfused(f.entry.program))
    kind = np.dtype(certificate.dtype)
    drawn = certificate.box.draw(np.random.default_rng(1), _PROBES, corners=0.2)
    found = []
    for k in range(_PROBES):
        state = {name: x[k].astype(kind) for name, x in drawn.items()}
        returned = interpret.nest_outputs(code, state, **(numbers or {}))
        outputs = {title: [float(x).hex() for x in values] for title, values in returned.items()}
        found.append({"state": {n: [float(x) for x in v] for n, v in state.items()}, "outputs": outputs})
    return found


def recipe(package: CertifiedPackage) -> dict[str, Any]:
    """All choices of a package, as JSON has them.

    Args:
        package: the package.
    """
    default = Options()
    chosen, left = {}, []
    for field in fields(Options):
        value = getattr(package.options, field.name)
        if value == getattr(default, field.name):
            continue
        try:
            chosen[field.name] = json.loads(json.dumps(value, default=_plain))
        except TypeError:
            left.append(field.name)
    return {
        "functions": [f.entry.name for f in package.functions],
        "options": chosen,
        "options_not_here": left,
        "prefix": package.prefix,
        "fma": package.fma,
        "constant_time": package.constant_time,
        "bounds": json.loads(json.dumps(package.bounds, default=_plain)),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


ASSUMPTIONS = (
    "IEEE 754 arithmetic, rounding to nearest, no excess digits (the code refuses to compile otherwise)",
    "inputs are numbers inside the box",
    "the constants of the robot are exact",
    "the compiler translates the C code as the standard says",
)
METHOD = (
    "Each function is one list of operations: straight-line code, or loops of known length, which are written out; no "
    "branch leaves it. Over the box, every value has a normal form, a sum of harmonics of the joint angles times "
    "monomials of the other inputs.",
    "Its size is bounded between the points of a grid by bounds of its second derivatives, and these by bounds of the "
    "fourth.",
    "The rounding error of an output is the sum over all operations of |∂output/∂operation| times half a unit in the "
    "last place of the largest value of that operation. Sines and cosines are polynomials whose error counts, too.",
    "Divisors of forward dynamics are pivots of the mass matrix, bounded from it; which is which is known from their "
    "values at random states.",
    "Instructions are counted in the object files. Code without conditional jumps and calls executes each once, so "
    "the number is exact for every call.",
)
COVERAGE = (
    "Every call executes every statement, and a condition only selects one of two computed values. One test covers all "
    "statements and branches; modified condition/decision coverage asks for nothing more than both values of each "
    "condition."
)
_HEAD = """\
# Bounds of this code

{about}.

Every bound below holds for **every** state of the box that is given with it, not for the states that were tried.
`make certify` checks this page's numbers with a program that shares no code with Linkwise, `check/certificate.py`.
Where Linkwise is installed it also computes all bounds again from `check/robot.toml`, and compares them.

**Assumptions.** {assumptions}.

**Method.** {method}

**Coverage of tests.** {coverage}

**Tools.** {tools}.
"""


def page(
    about: str,
    functions: Any,
    certificates: list[Certificate],
    sheets: Sequence[Mapping[str, Any]],
    tools: Mapping[str, str],
) -> str:
    """The page for reviewers.

    Args:
        about: the package in words.
        functions: of the package.
        certificates: of the functions, in the same order.
        sheets: what certificate.json has of each.
        tools: names and versions.
    """
    parts = [
        _HEAD.format(
            about=about,
            assumptions="; ".join(ASSUMPTIONS),
            method=" ".join(METHOD),
            coverage=COVERAGE,
            tools=", ".join(f"{name} {version}" for name, version in tools.items()),
        )
    ]
    for f, certificate, sheet in zip(functions, certificates, sheets, strict=True):
        parts.append(_section(f, certificate, sheet["objects"]))
    return "\n".join(parts)


def _section(f: Coded, certificate: Certificate, compiled: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        f"## {f.name}",
        "",
        f"SHA-256 of `src/{f.name}.c`: `{digest(f.text)}`",
        "",
    ]
    lines += [
        f"- assumed, because the model does not say it: {sentence}" for sentence in certificate.box.assumed
    ]
    lines += [
        f"- `{name}` from {_list(low)} to {_list(high)}"
        for name, (low, high) in certificate.box.bounds.items()
    ]
    if certificate.holds:
        lines.append(
            f"- all {len(certificate.nodes)} values are finite numbers: no NaN, no overflow, no division by 0"
        )
    lines += [f"- **not excluded**: v{p.node}: {p.what}" for p in certificate.problems]
    lines += [
        f"- divisor v{node} is a pivot of the mass matrix, up to its sign: between {_outwards(low, 6, ROUND_FLOOR)} "
        f"and {_outwards(high, 6, ROUND_CEILING)}"
        for node, low, high in certificate.nodes
        if node in certificate.divisors
    ]
    lines += [
        f"- operations: {f.operations}; at most {f.stack_bound} bytes of stack, however it is compiled",
        "",
        "### Bounds",
        "",
        "Bounds are rounded outwards. *Found* is what a search has reached; the relative error is that of the largest",
        "value of all numbers of that output.",
        "",
        "| output | lower bound | upper bound | lowest found | highest found | error bound | relative | worst error |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [_line(o, certificate.outputs) for o in certificate.outputs]
    return "\n".join([*lines, "", *_compiled(compiled)])


def _compiled(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if not rows:
        return []
    lines = [
        "### Time and memory",
        "",
        "Code generated with `--constant-time` has exact numbers of instructions wherever it calls no library.",
        "",
        "| processor | compiler | instructions of a call | bytes of stack (`-fstack-usage`) | with all calls (call "
        "graph) | functions of libraries, not counted |",
        "|---|---|---:|---:|---:|---|",
    ]
    for row in rows:
        count = "depends on data or calls" if row["instructions"] is None else str(row["instructions"])
        cells = (row["processor"], row["compiler"], count, row["stack"])
        deep = "no bound" if row["depth"] is None else row["depth"]
        lines.append(f"| {' | '.join(map(str, (*cells, deep, ', '.join(row['outside']) or 'none')))} |")
    return [*lines, ""]


def _line(o: OutputBounds, outputs: Sequence[OutputBounds]) -> str:
    largest = max(max(abs(x.lowest.value), abs(x.highest.value)) for x in outputs if x.name == o.name)
    cells = [
        _outwards(o.low, 6, ROUND_FLOOR),
        _outwards(o.high, 6, ROUND_CEILING),
        f"{o.lowest.value:.6g}",
        f"{o.highest.value:.6g}",
        _outwards(o.error, 2, ROUND_CEILING),
        _outwards(o.error / largest, 2, ROUND_CEILING) if largest else "",
        f"{o.worst.value:.2g}",
    ]
    return f"| `{o.name}[{o.index}]` | " + " | ".join(cells) + " |"


def _outwards(value: float, digits: int, direction: str) -> str:
    """A bound in decimal digits that is still a bound."""
    if not math.isfinite(value):
        return str(value)
    return f"{float(Context(prec=digits, rounding=direction).create_decimal(value)):.{digits}g}"


def _list(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{x:.6g}" for x in values) + ")"
