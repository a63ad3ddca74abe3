"""Every method of a robot by every kind of call: what a call costs beyond its arithmetic.

The arithmetic of one state is measured apart: the machine code runs through many states in one go. The rest is the
overhead of the call. Results of all kinds of calls are compared with those of the plain call, bit for bit, before
they are timed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.bench.clock import medians
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.runtime import host
from linkwise.errors import LinkwiseError
from linkwise.robot.methods import Method
from linkwise.robot.robot import Robot

DENSE, KEYWORD, CONVERTED = 0.15e-6, 0.3e-6, 1.5e-6  # [s] that a call may cost beyond its arithmetic
FASTER_THAN_PINOCCHIO = {
    "inverse_dynamics_derivatives": 8.0,
    "forward_dynamics_derivatives": 6.0,
}  # others: 5
BATCHES = (2, 16, 256)
SAMPLE = 1e-3  # [s]
_SMALL = 40  # scalars in and out
_MANY = 1024  # states that the arithmetic is measured with
_POSITIONS = ("q", "q0", "q1")

Action = Callable[[], Any]


@dataclass(frozen=True)
class Kind:
    """One way to call a method, ready to be timed."""

    function: str
    name: str
    limit: float  # [s] beyond the arithmetic
    run: Action
    kernel: Kernel
    states: int = 1
    dtype: str = "float64"


@dataclass(frozen=True)
class Cost:
    """What was measured, in seconds for a call."""

    kind: Kind
    seconds: float
    arithmetic: float

    @property
    def over(self) -> float:
        return self.seconds - self.arithmetic

    @property
    def is_out_of_line(self) -> bool:
        return self.over > self.kind.limit


def methods(robot: Robot) -> list[str]:
    """The methods that are one kernel each and that this robot has."""
    found = []
    for name in dir(Robot):
        if isinstance(method := getattr(Robot, name), Method):
            fixed = needed_options(robot, method)
            try:
                getattr(robot, name)(*states(robot, method), **fixed)
            except LinkwiseError:
                continue  # constraints that it has not, symbols that do not exist
            if robot.kernel_for(name, plain_options(method) | fixed) is not None:
                found.append(name)
    return found


def needed_options(robot: Robot, method: Method) -> dict[str, Any]:
    """Options that every call of this robot needs: a frame where there is no default."""
    return {"frame": robot.leaf_names[0]} if "frame" in method.places and len(robot.leaf_names) != 1 else {}


def plain_options(method: Method) -> dict[str, Any]:
    """The options of a call without any."""
    named = zip(method.names, method.defaults, strict=True)
    left_out = {*method.names[: method.required], "out", "threads"}
    return {name: default for name, default in named if name not in left_out} | dict.fromkeys(
        {"wrench", "start"} & set(method.names), False
    )


def states(robot: Robot, method: Method, *batch: int) -> list[np.ndarray]:
    """Random arguments of a method."""
    rng = np.random.default_rng(5)
    made = []
    for name in method.names[: method.required]:
        position = name in _POSITIONS
        values = robot.random(rng, batch) if position and batch else robot.random(rng) if position else None
        made.append(rng.normal(size=(*batch, robot.dof)) if values is None else np.ascontiguousarray(values))
    return made


def kinds(robot: Robot, name: str) -> Iterator[Kind]:
    """Every kind of call of a method."""
    method: Method = getattr(Robot, name)
    call, args = getattr(robot, name), states(robot, method)
    fixed = needed_options(robot, method)
    plain = plain_options(method) | fixed
    kernel = _kernel(robot, name, plain)
    plain_result = call(*args, **fixed)
    dense = KEYWORD if fixed else DENSE

    def kind(title: str, limit: float, given: list[Any], options: dict[str, Any] | None = None) -> Kind:
        return Kind(name, title, limit, bound(call, given, fixed | (options or {})), kernel)

    yield kind("arrays", dense, args)
    few = [a.astype(np.float32) for a in args]
    yield Kind(name, "float32", dense, bound(call, few, fixed), kernel, dtype="float32")
    yield kind("out", KEYWORD, args, {"out": _empty(plain_result)})
    yield kind("threads=1", KEYWORD, args, {"threads": 1})
    yield kind("names", KEYWORD, [], dict(zip(method.names, args, strict=False)))
    for title, options in _options(robot, name):
        given = {key: value if key not in ("wrench", "start") else True for key, value in options.items()}
        other = _kernel(robot, name, plain | given)
        yield Kind(name, title, KEYWORD, bound(call, args, fixed | options), other)
    yield kind("lists", CONVERTED, [a.tolist() for a in args])
    yield kind("tuples", CONVERTED, [tuple(a.tolist()) for a in args])
    yield kind("strided", CONVERTED, [np.repeat(a, 2)[::2] for a in args])
    yield kind("mixed precision", CONVERTED, [few[0], *args[1:]] if len(args) > 1 else [_whole(args[0])])
    for count in BATCHES:
        batch = states(robot, method, count)
        yield Kind(name, f"batch {count}", KEYWORD, bound(call, batch, fixed), kernel, count)
        if count == BATCHES[1] and len(args) > 1:
            mixed = [batch[0], *args[1:]]
            yield Kind(name, "broadcast", CONVERTED, bound(call, mixed, fixed), kernel, count)
    yield Kind(name, "kernel", DENSE, bound(kernel, args, {}), kernel)
    if kernel.row_size <= _SMALL:  # else compiling the derivative takes seconds
        jacobian = kernel.jacobian(kernel.inputs[0][0])
        yield Kind(name, "jacobian", DENSE, bound(jacobian, args, {}), jacobian)


def _options(robot: Robot, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    method: Method = getattr(Robot, name)
    if "friction" in method.places:
        yield "friction=False", {"friction": False}
    if "algorithm" in method.places:
        yield "algorithm", {"algorithm": robot.algorithms(name)[0]}
    if name == "forward_dynamics" and not robot.constraints:
        yield "conjugate_gradient", {"algorithm": "conjugate_gradient"}
    if "frame" in method.places:
        yield "frame", {"frame": robot.leaf_names[0]}
    if "wrench" in method.places:
        where = {"wrench_frame": robot.leaf_names[0]} if len(robot.leaf_names) != 1 else {}
        yield "wrench", {"wrench": np.ones(6), **where}


def _kernel(robot: Robot, name: str, options: dict[str, Any]) -> Kernel:
    found = robot.kernel_for(name, options)
    assert found is not None, f"{name} is no kernel with {options}"
    return found[0]


def _whole(array: np.ndarray) -> np.ndarray:
    return np.rint(array).astype(np.int64)


def _empty(result: Any) -> Any:
    return tuple(map(np.empty_like, result)) if isinstance(result, tuple) else np.empty_like(result)


def bound(call: Callable[..., Any], args: list[Any], options: dict[str, Any]) -> Action:
    """The call as it is written in a program: arguments by name or place, nothing unpacked while it is timed."""
    names = [f"a{k}" for k in range(len(args))]
    text = ", ".join([*names, *(f"{key}=o_{key}" for key in options)])
    scope = {**dict(zip(names, args, strict=True)), **{f"o_{key}": value for key, value in options.items()}}
    parameters = ", ".join(["call", *scope])
    made = eval(f"lambda {parameters}: lambda: call({text})", {})
    return made(call, *scope.values())


def arithmetic(kind: Kind) -> tuple[Action, float]:
    """The machine code of a call alone, over many states in one go; and which part of its time is that of the call."""
    width = 1 if kind.states == 1 else host.lanes(kind.dtype)
    native = kind.kernel.native(kind.dtype, width)
    rng = np.random.default_rng(1)
    arrays = [np.empty((_MANY, int(np.prod(shape))), kind.dtype) for _, shape in kind.kernel.outputs]
    arrays += [rng.normal(size=(_MANY, size)).astype(kind.dtype) for _, size in kind.kernel.inputs]
    words = [array.ctypes.data for array in arrays] + [size for _, size in kind.kernel.inputs]
    arguments = (ctypes.c_int64 * len(words))(*words)
    scratch = np.empty(width * kind.kernel.row_size + native.room + 16, kind.dtype)
    run, kept = native.run, (arrays, scratch)
    where, room = ctypes.addressof(arguments), scratch.ctypes.data

    def all_states(kept: Any = (arguments, kept)) -> None:
        run(0, _MANY, where, room)

    return all_states, -(-kind.states // width) * width / _MANY


def check(listed: list[Kind]) -> None:
    """Raise where a kind of call of the same numbers in the same precision gives other bits than the plain one."""
    wanted = listed[0].run()
    for kind in listed:
        if kind.name in (
            "out",
            "threads=1",
            "names",
            "lists",
            "tuples",
            "strided",
            "kernel",
            "algorithm",
            "frame",
        ):
            found = kind.run()
            pairs = zip(parts(found), parts(wanted), strict=True)
            if not all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs):
                raise LinkwiseError(f"{kind.function} by {kind.name} gives other bits than by arrays")


def parts(result: Any) -> tuple:
    return result if isinstance(result, tuple) else (result,)


def measure(listed: list[Kind], rounds: int, others: Sequence[Action] = ()) -> tuple[list[Cost], list[float]]:
    """The costs of all kinds of calls of one method, and the seconds of other actions; all take turns."""
    check(listed)
    alone = {_code(kind): arithmetic(kind) for kind in listed}
    actions = [*(kind.run for kind in listed), *(action for action, _ in alone.values()), *others, _nothing]
    *times, nothing = medians(actions, rounds, SAMPLE)
    parts = zip(alone, times[len(listed) :], strict=False)
    arithmetics = {code: seconds * alone[code][1] for code, seconds in parts}
    costs = [
        Cost(kind, seconds - nothing, arithmetics[_code(kind)])
        for kind, seconds in zip(listed, times, strict=False)
    ]
    return costs, [seconds - nothing for seconds in times[len(actions) - 1 - len(others) :]]


def _code(kind: Kind) -> tuple:
    """What decides the machine code of a call and how long it runs."""
    return id(kind.kernel), kind.dtype, kind.states


def _nothing() -> None:
    pass
