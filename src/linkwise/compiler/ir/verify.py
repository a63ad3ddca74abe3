"""Checks that a program is well formed. A failure is a defect of the compiler, never of what a user wrote."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from linkwise.compiler.ir.graph import CONDITIONS, Node
from linkwise.compiler.ir.schedule import Body, LoopRegion
from linkwise.errors import LinkwiseError

if TYPE_CHECKING:
    from linkwise.compiler.ir.program import Program

# What the arguments of an operation of a lowered program are: n a number, c a condition.
SIGNATURES = {
    "add": "nn", "sub": "nn", "mul": "nn", "div": "nn", "neg": "n", "fma": "nnn", "sqrt": "n", "abs": "n",
    "lt": "nn", "le": "nn", "eq": "nn", "and": "cc", "or": "cc", "not": "c", "select": "cnn", "bit": "n",
}  # fmt: skip
HARDWARE = {"hardware_sin": "n", "hardware_cos": "n"}  # of a machine's own, not every target has them


class ProgramError(LinkwiseError, AssertionError):
    """The compiler made a program that is not well formed; the message names the node."""


def verify(program: Program) -> Program:
    """The program itself, or a ProgramError that names the first node that is wrong."""
    if program.dtype not in ("float64", "float32"):
        raise ProgramError(f"{program.name}: unknown dtype {program.dtype!r}")
    checker = _Checker(program)
    checker.body(program.body)
    if len(program.outputs) != len(program.values):
        raise ProgramError(
            f"{program.name}: {len(program.outputs)} outputs, values for {len(program.values)}"
        )
    for (name, shape), nodes in zip(program.outputs, program.values, strict=True):
        if math.prod(shape) != len(nodes):
            raise ProgramError(f"{program.name}: output {name} of shape {shape} has {len(nodes)} values")
        for node in nodes:
            checker.use(node, f"output {name}", "n")
    checker.nothing_unused()
    return program


class _Checker:
    def __init__(self, program: Program):
        self.name = program.name
        self.bits = 64 if program.dtype == "float64" else 32
        self.sizes = dict(program.inputs)
        self.defined: set[int] = set()  # indices of nodes that may be read here
        self.seen: dict[int, Node] = {}
        self.used: set[int] = set()
        self.results: set[int] = set()  # loops that have run, where their results may be read

    def fail(self, node: Node, reason: str) -> None:
        raise ProgramError(f"{self.name}: {node!r}: {reason}")

    def body(self, body: Body) -> None:
        for item in body:
            if isinstance(item, LoopRegion):
                self.region(item)
            else:
                self.node(item)

    def node(self, node: Node) -> None:
        kinds = SIGNATURES.get(node.op) or HARDWARE.get(node.op)
        if kinds is None:
            self.fail(node, f"a lowered program has no operation {node.op}")
            return
        if len(node.args) != len(kinds):
            self.fail(node, f"expected {len(kinds)} arguments, got {len(node.args)}")
        if node.index in self.seen:
            self.fail(node, "scheduled twice")
        if node.op == "bit" and not (isinstance(node.value, int) and 0 <= node.value < self.bits):
            self.fail(node, f"bit {node.value} of {self.bits}")
        for a, kind in zip(node.args, kinds, strict=True):
            self.use(a, node, kind)
        self.define([node])

    def region(self, region: LoopRegion) -> None:
        loop = region.loop
        if not len(loop.initial) == len(loop.phi) == len(loop.following):
            raise ProgramError(f"{self.name}: loop {region.number} carries unequal numbers of values")
        for node in loop.initial:
            self.use(node, f"initial value of loop {region.number}", "n")
        outside, results = set(self.defined), set(self.results)
        for k, node in enumerate(loop.phi):
            if node.op != "phi" or node.value != (region.number, k):
                self.fail(node, f"expected carried value {k} of loop {region.number}")
        self.define(loop.phi)
        self.body(region.body)
        self.use(loop.active, f"condition of loop {region.number}", "c")
        for node in loop.following:
            self.use(node, f"following value of loop {region.number}", "n")
        # Phis of a finished loop and what its body computed must not be read any more, only the results.
        self.used.update(node.index for node in loop.phi)
        self.defined, self.results = outside, results | {region.number}

    def define(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.seen[node.index] = node
            self.defined.add(node.index)

    def use(self, node: Node | None, user: Node | str, kind: str) -> None:
        """``kind``: n a number, c a condition."""
        if node is None:
            raise ProgramError(f"{self.name}: {user} is missing")
        if (node.op in CONDITIONS) != (kind == "c"):
            self.fail(node, f"used by {user} as a {'condition' if kind == 'c' else 'number'}")
        if node.op == "const":
            return
        if node.op == "input":
            name, k = node.value
            if not 0 <= k < self.sizes.get(name, 0):
                self.fail(node, f"{user} reads an input that is not declared")
        elif node.op == "result":
            if node.value[0] not in self.results:
                self.fail(node, f"{user} reads a loop that has not run")
        elif node.index not in self.defined:
            self.fail(node, f"{user} reads it before it is computed")
        self.used.add(node.index)

    def nothing_unused(self) -> None:
        for index, node in self.seen.items():
            if index not in self.used:
                self.fail(node, "is computed but never used")
