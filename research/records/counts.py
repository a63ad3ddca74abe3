"""What this library needs, counted live: from the programs that run, and from the papers' algorithms as written.

``best`` counts what a kernel does after every pass of the compiler. ``as_written`` counts a trace in which only equal
expressions, zeros and ones have been found, in the frames that modified Denavit–Hartenberg numbers give, with all ten
parameters of every link: what an author would count by hand for that algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from linkwise.algorithms import compound_link
from linkwise.compiler.ir.derivative import jacobian
from linkwise.compiler.ir.graph import Graph, Node
from linkwise.compiler.ir.operations import Operations, count
from linkwise.compiler.ir.program import trace
from linkwise.compiler.ir.rules import simplify
from linkwise.compiler.ir.walks import reachable
from linkwise.functions.evaluation import outputs_of
from linkwise.functions.table import FUNCTIONS, ITERATED, Function, Setting
from linkwise.model.generators import RECORD_ROBOTS, record_robot
from linkwise.records.polynomial import Polynomial
from linkwise.robot.loading import general_chain, load, planar_chain
from linkwise.robot.robot import Robot

# -- robots -----------------------------------------------------------------------------------------------------------


@cache
def robot(name: str, seed: int = 0) -> Robot:
    """A robot by the name that the tables give it; another seed draws other numbers for its free symbols."""
    if name == "general_6r_aligned":
        return general_chain(6, seed=seed, base_offsets=False)
    if name in RECORD_ROBOTS:
        return Robot.from_model(record_robot(name, seed))
    return load(name)


@cache
def chain(kind: str, n: int) -> Robot:
    """n links: "general" or "perpendicular" as papers count them (α1 = a1 = d1 = 0), or "planar" (no length is 1)."""
    if kind == "planar":
        return planar_chain(n, length=0.7, mass=1.3)
    return general_chain(n, twists=kind, base_offsets=False)


# -- as it runs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ours:
    """The cheapest program for a task: by which algorithm, and its operations."""

    algorithm: str
    operations: Operations

    @property
    def multiplications(self) -> int:
        """Divisions among them, as the published counts have it."""
        return self.operations.multiplications + self.operations.divisions

    @property
    def additions(self) -> int:
        return self.operations.additions

    @property
    def total(self) -> int:
        return self.operations.total


@cache
def best(name: str, task: str, *, inputs: tuple[str, ...] = ()) -> Ours:
    """The algorithm of this function that takes the fewest operations on this robot, without friction."""
    return _cheapest(robot(name), task, inputs)


@cache
def best_of_chain(kind: str, n: int, task: str) -> Ours:
    return _cheapest(chain(kind, n), task)


def _cheapest(of: Robot, task: str, inputs: tuple[str, ...] = ()) -> Ours:
    names = FUNCTIONS[task].algorithms
    each = [Ours(name, _kernel(of, task, name, inputs).operations) for name in names]
    return min(each, key=lambda ours: ours.total)


def _kernel(of: Robot, task: str, algorithm: str, inputs: tuple[str, ...] = ()) -> Any:
    return of.kernel(task, algorithm=algorithm, inputs=inputs, friction=False)


@cache
def gradients(name: str, *, preconditioned: bool = False) -> Operations:
    """Conjugate gradients as they run: the set-up, and ``per_iteration``."""
    algorithm = "preconditioned_conjugate_gradient" if preconditioned else "conjugate_gradient"
    return _kernel(robot(name), "forward_dynamics", algorithm).operations


def iterated(operations: Operations, iterations: int) -> Operations:
    """Set-up and so many iterations in one count."""
    once = operations.per_iteration
    assert once is not None
    return Operations(
        operations.multiplications + iterations * once.multiplications,
        operations.additions + iterations * once.additions,
        operations.divisions + iterations * once.divisions,
        operations.trigonometric,
    )


@cache
def synchronous(n: int = 6) -> Operations:
    """Izaguirre's synchronous task: Σ_j D_ij q̈_j and the background's gravity and velocity torques."""

    def torques(D, background, qdd):
        return [sum((D[n * i + j] * qdd[j] for j in range(n)), start=background[i]) for i in range(n)]

    inputs = {"D": n * n, "background": n, "qdd": n}
    return trace(torques, inputs, {"tau": (n,)}, name="synchronous").operations


@cache
def diagonal_alone(kind: str, n: int) -> Operations:
    """The diagonal of the mass matrix and nothing else, by compound links."""

    def entries(setting: Setting, q):
        links = setting.links()
        _, compound = compound_link.compound_links(links, q)
        return [body.second_moment.zz for body in compound]

    setting = Setting(chain(kind, n), base_parameters=True)
    return count(simplify(_nodes(setting, ("q",), lambda q: entries(setting, q))))


def trigonometric_arguments(name: str, task: str, algorithm: str, inputs: tuple[str, ...] = ()) -> set[str]:
    """What sines and cosines are taken of: {"input"} alone means single joint coordinates."""
    kernel = _kernel(robot(name), task, algorithm, inputs)
    program = getattr(kernel, "whole", kernel).program()
    nodes = reachable(simplify([node for values in program.source_values for node in values]))
    return {node.args[0].op for node in nodes if node.op in ("sin", "cos")}


# -- derivatives ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derivatives:
    """Operations of the derivatives by q and by q̇: each alone, both together, and with the third matrix."""

    by_q: int
    by_qd: int
    both: Operations
    all_three: Operations


_DIFFERENTIATED = {"inverse_dynamics": "newton_euler", "forward_dynamics": "compound_link"}


@cache
def derivatives(name: str, task: str) -> Derivatives:
    """The derivatives of "inverse_dynamics" or "forward_dynamics", by the algorithm that takes fewest operations."""
    of = Robot.from_model(robot(name))  # a copy: large programs need not stay in memory
    program = _kernel(of, f"{task}_derivatives", _DIFFERENTIATED[task]).program()
    by_q, by_qd = program.source_values[:2]
    each = [program.explain(output).operations.total for output, _ in program.outputs[:2]]
    both = count(simplify([*by_q, *by_qd]))
    if task == "inverse_dynamics":  # or without the third matrix in view
        kernel = _kernel(of, task, _DIFFERENTIATED[task])
        each = [
            min(one, kernel.jacobian(by).operations.total) for one, by in zip(each, ("q", "qd"), strict=True)
        ]
        both = min(both, _joint_jacobian(kernel.program()), key=lambda operations: operations.total)
    return Derivatives(each[0], each[1], both, program.operations)


def _joint_jacobian(program: Any) -> Operations:
    """∂τ/∂(q, q̇), differentiated in one go."""
    tau = program.source_values[0]
    graph = tau[0].graph
    by = [x for name in ("q", "qd") for x in graph.inputs(name, len(tau))]
    return count(simplify([entry for row in jacobian(tau, by) for entry in row]))


# -- as it is written -------------------------------------------------------------------------------------------------


@cache
def as_written(
    kind: str,
    n: int,
    task: str,
    algorithm: str,
    *,
    slide: bool = False,
    simplified: bool = False,
    regroup: bool = False,
) -> Operations:
    """The algorithm as its file has it; ``slide``, ``simplified`` and ``regroup`` add what the compiler does."""
    function = FUNCTIONS[task]
    setting = Setting(chain(kind, n), friction=False, slide=slide, base_parameters=regroup)
    nodes = _nodes(setting, function.inputs, lambda **given: _outputs(function, setting, algorithm, given))
    return count(simplify(nodes) if simplified else nodes)


def _outputs(function: Function, setting: Setting, algorithm: str, given: dict[str, Any]) -> list[Any]:
    """The results of an algorithm, without outputs about how a loop ended."""
    outputs = outputs_of(function, setting, algorithm, **given)
    return next(iter(outputs.values())) if function.name == ITERATED else list(outputs.values())


def _nodes(setting: Setting, inputs: Sequence[str], function: Callable[..., Any]) -> list[Node]:
    graph = Graph()
    values = function(**{name: graph.inputs(name, setting.model.dof) for name in inputs})
    return [graph.lift(x) for x in _leaves(values)]


def _leaves(nested: Any) -> Iterable[Any]:
    if isinstance(nested, (list, tuple)):
        for part in nested:
            yield from _leaves(part)
    else:
        yield nested


# -- over n -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Formula:
    """Multiplications (with divisions) and additions as polynomials in n; None where they are none."""

    multiplications: Polynomial | None
    additions: Polynomial | None

    @property
    def total(self) -> Polynomial | None:
        if self.multiplications is None or self.additions is None:
            return None
        return self.multiplications + self.additions

    def __str__(self) -> str:
        return f"{_text(self.multiplications)} / {_text(self.additions)}"


def _text(polynomial: Polynomial | None) -> str:
    return "–" if polynomial is None else str(polynomial)


def formula(counted: Callable[[int], Operations], over: Iterable[int] = range(3, 9)) -> Formula:
    """The exact formula behind the counts for these n."""
    each = {n: counted(n) for n in over}
    return Formula(
        Polynomial.through({n: o.multiplications + o.divisions for n, o in each.items()}),
        Polynomial.through({n: o.additions for n, o in each.items()}),
    )
