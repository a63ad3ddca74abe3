"""From a function's name and a setting to results: finds or makes the kernel, calls it.

A kernel is made once per robot, function, algorithm and choice of options: straight-line code where that is small
enough, loops over the links or the joints where it is not, and where there are no loops straight-line code up to some
seconds of compilation. What is larger still runs on the array path, with a warning.
"""

from __future__ import annotations

import hashlib
import math
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np

from linkwise.compiler.kernel import Kernel, Portable
from linkwise.compiler.runtime import targets as compiler_targets
from linkwise.compiler.runtime.arrays import is_foreign
from linkwise.core import forks
from linkwise.errors import DtypeError, ShapeError, SlowWarning, warn
from linkwise.functions import arrays
from linkwise.functions.contact_functions import CONTACT_FUNCTIONS
from linkwise.functions.sizes import is_chain
from linkwise.functions.table import (
    FUNCTIONS,
    Function,
    Setting,
    function_named,
    labels_of,
    reads_targets,
)
from linkwise.joint_laws.direction import MEMORY
from linkwise.language import Elements
from linkwise.model.constraints import TARGETS, target_values

if TYPE_CHECKING:
    from linkwise.compiler.ir.graph import Node
    from linkwise.compiler.ir.program import Program, Recorded
    from linkwise.compiler.parametric import ParametricKernel
    from linkwise.model import Model

T = TypeVar("T")
R = TypeVar("R", bound="Model")

# Estimated operations of straight-line code. Up to here it is faster than loops; beyond, it leaves the instruction
# cache and takes seconds to compile (see benchmarks/long_chains.py).
STRAIGHT_LINE_LIMIT = 20_000
# The same for functions that are not one pass over the links: their loops go over the links once for every direction,
# or there are none, and compiling for some seconds is worth it.
FACTOR_WITHOUT_SWEEPS = 1.75
# The same for functions that have no loops at all. On trees the estimate is about four times what is counted, so such a
# program has about 50 000 operations, is traced and compiled in about ten seconds (once, then it is in the cache) and
# takes tens of microseconds a state, where the array path takes tens of milliseconds.
MOST_WRITTEN_OUT = 200_000
# Functions that are loops over joints although they could be written out: they grow with the cube of the joints.
MUCH_SHORTER = ("christoffel", "forward_dynamics_derivatives")
# Estimated operations from which the origins are not chosen by recording the program twice.
RECORDED_ONCE = 40_000
# Loops over the links of a chain pass values on in registers: they are as fast as straight-line code from about 28
# links on and compile in a tenth of a second.
FACTOR_OF_CHAINS = 0.7
# Estimated operations of derivatives from which origins are chosen as for the function itself: recording the
# derivatives twice would take longer than all the rest.
LARGE_DERIVATIVE = 10_000

MOST_SHARED = 32
# What a robot remembers of itself besides kernels.
WORKED_OUT = ("_carriers", "_contact_efforts", "_content", "_extent", "_labels", "_mechanisms", "_motors")
_SHARED: dict[Any, Any] = {}  # kernels of robots with constraints, those used last at the end
_SHARED_LOCK = forks.lock()


def evaluate(
    name: str,
    setting: Setting,
    algorithm: str | None,
    given: Mapping[str, Any],
    out: Any = None,
    threads: int | None = None,
) -> Any:
    """The outputs of a function for these inputs: one array, or a tuple where there are several outputs."""
    function, setting, algorithm = _settled(name, setting, algorithm)
    if any(_is_traced(value) for value in given.values()):
        return _traced(function, setting, algorithm, given)
    if compiles(function, setting, algorithm):
        found: Any = compiled(name, setting, algorithm)
        if found is None or any(map(is_foreign, given.values())):
            found = kernel(function, setting, algorithm)
        return found(*(given[key] for key, _ in found.inputs), out=out, threads=threads)
    if any(map(is_foreign, given.values())):
        raise DtypeError(f"{name}: with these options {algorithm} is computed on NumPy arrays only")
    _say_slow(function, setting)
    results = tuple(arrays.run_on_arrays(function, setting, algorithm, given).values())
    if out is not None:
        results = _written(out, results)
    results = tuple(result if result.ndim else result[()] for result in results)
    return results[0] if len(results) == 1 else results


def _say_slow(function: Function, setting: Setting) -> None:
    """Warn, once per robot and function, that nothing is compiled; robots without joints need no code."""
    model = setting.model
    said: set[str] = model.__dict__.setdefault("_said_slow", set())
    if model.dof == 0 or function.name in said:
        return
    said.add(function.name)
    warn(
        f"{function.name} of {model.name} runs without compiled code, which takes milliseconds a state: about "
        f"{function.size(model):,} operations without loops, and at most {MOST_WRITTEN_OUT:,} are compiled; "
        "lock joints that do not move (robot.lock) to make it smaller",
        SlowWarning,
    )


def _is_traced(value: Any) -> bool:
    """Whether an argument holds symbols: the call is part of a function that is being traced."""
    if isinstance(value, Elements):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(hasattr(part, "graph") for part in value.flat)
    return isinstance(value, (list, tuple)) and any(hasattr(part, "graph") for part in value)


def _traced(function: Function, setting: Setting, algorithm: str, given: Mapping[str, Any]) -> Any:
    """The function inside another function's trace: arrays of symbols in, arrays of symbols out."""
    from linkwise.functions.evaluation import outputs_of

    sizes = function.input_sizes(setting)
    inputs = {}
    for name, size in sizes.items():
        array = np.asarray(given[name], dtype=object)
        if array.shape != (size,):
            raise ShapeError(f"{name}: expected shape ({size},) inside a traced function, got {array.shape}")
        inputs[name] = list(array)
    results = tuple(
        np.array(value, dtype=object) if shape else value
        for value, shape in zip(
            outputs_of(function, setting, algorithm, **inputs).values(),
            function.shapes(setting.model).values(),
            strict=True,
        )
    )
    return results[0] if len(results) == 1 else results


class HeldKernel(Portable):
    """The kernel of a robot whose frames are held to the world: their targets are inputs of the code, which robots that
    differ there alone share.

    ``constant`` makes the kernel in which targets are numbers: for arrays of other libraries.
    """

    def __init__(self, kernel: Kernel, targets: np.ndarray, constant: Callable[[], Kernel]):
        self.kernel, self.constant = kernel, constant
        self.inputs = kernel.inputs[:-1]
        self._targets = {"float64": targets, "float32": targets.astype(np.float32)}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        if compiler_targets.is_compiling() or any(map(is_foreign, args)):
            return self.constant()(*args, out=out, threads=threads)
        single = all(type(a) is np.ndarray and a.dtype == np.float32 for a in args)
        return self.kernel(*args, self._targets["float32" if single else "float64"], out=out, threads=threads)

    def quick(self, args: tuple[Any, ...], out: Any, threads: int | None) -> Any:
        return None

    def connect(self) -> None:
        """The interpreter calls it in Python, because no argument of a method has the targets."""
        return


def compiled(name: str, setting: Setting, algorithm: str | None) -> Kernel | HeldKernel | None:
    """The kernel that ``evaluate`` calls; None where it runs without one."""
    function, setting, algorithm = _settled(name, setting, algorithm)
    if not compiles(function, setting, algorithm):
        return None
    if not reads_targets(function, setting) or TARGETS in setting.parameters:
        found = kernel(function, setting, algorithm)
        return found if isinstance(found, Kernel) else None
    return _held(setting, lambda chosen: kernel(function, chosen, algorithm))


def _held(setting: Setting, make: Callable[[Setting], Any]) -> HeldKernel:
    """A kernel whose targets are inputs, made for a setting with these."""
    setting = replace(setting, model=without_kernels(setting.model))
    free = make(replace(setting, parameters=(*setting.parameters, TARGETS)))
    return HeldKernel(free, target_values(setting.model.constraints), lambda: make(setting))


def checked(
    name: str, setting: Setting, algorithm: str | None, tolerance: Mapping[str, float]
) -> Kernel | HeldKernel | None:
    """A kernel of the first output alone, NaN in states whose second output exceeds the tolerance of the precision.

    None where the function runs without a kernel. A call then needs no look at the second output: there is a NaN.
    """
    base = compiled(name, setting, algorithm)
    if base is None or isinstance(base, Kernel):
        return None if base is None else _checked(name, setting, algorithm, tolerance)
    return _held(setting, lambda chosen: _checked(name, chosen, algorithm, tolerance))


def _checked(name: str, setting: Setting, algorithm: str | None, tolerance: Mapping[str, float]) -> Kernel:
    """The same where targets are numbers, or inputs as the setting says."""
    function, setting, algorithm = _settled(name, setting, algorithm)
    base = cast("Kernel", kernel(function, setting, algorithm))
    known = kernels_of(setting.model)
    key = ("checked", base.key, tuple(tolerance.items()))
    found = known.get(key)
    if found is None:
        (output, shape), *_ = base.outputs

        def build(precision: str) -> Program:
            from linkwise.compiler.ir.program import lower

            program = cast("Program", base.program(precision))
            values, (judged,) = program.source_values[:2]
            graph = judged.graph
            good = graph.compare("le", judged, graph.const(tolerance[precision]))
            kept = [graph.select(good, value, graph.const(math.nan)) for value in values]
            outputs = {output: (shape, kept)}
            return lower(outputs, dict(program.inputs), name=base.name, dtype=program.dtype)

        content = repr((base.key, sorted(tolerance.items()))).encode()
        made = Kernel(
            base.name, base.inputs, [(output, shape)], base.dtype, build, hashlib.sha256(content).digest()
        )
        found = known[key] = shared(setting.model, made)
        setting = replace(setting, model=without_kernels(setting.model))
        found.origin = (_checked, (name, setting, algorithm, dict(tolerance)))
    return found


def evaluate_checked(
    kernel: Kernel | HeldKernel | None, given: Mapping[str, Any], out: Any, threads: int | None
) -> Any:
    """The result of such a kernel; None where it has a NaN, and for symbols and arrays of other libraries."""
    if kernel is None or any(_is_traced(value) or is_foreign(value) for value in given.values()):
        return None
    result = kernel(*(given[key] for key, _ in kernel.inputs), out=out, threads=threads)
    return None if np.isnan(result).any() else result


def _settled(name: str, setting: Setting, algorithm: str | None) -> tuple[Function, Setting, str]:
    """The function, its algorithm, and the setting with parameters regrouped where results are the same."""
    function = function_named(name)
    algorithm = chosen_algorithm(function, setting, algorithm)
    if regroups(function, algorithm):
        setting = replace(setting, base_parameters=True)
    return function, setting, algorithm


def compiles(function: Function, setting: Setting, algorithm: str) -> bool:
    """Whether the function of this robot becomes a kernel."""
    return setting.model.dof > 0 and form(function, setting, algorithm) is not None


def form(
    function: Function, setting: Setting, algorithm: str
) -> Literal["straight", "joints", "links", "long"] | None:
    """What the kernel of a function is: straight-line code, loops over joints (``looped``) or over links (``swept``),
    or straight-line code that takes seconds to compile; None: it is too large for any of them."""
    if is_straight(function, setting, algorithm):
        return "straight"
    can_be_long = _can_be_long(function, setting, algorithm)
    if is_looped(function, setting, algorithm) and (not can_be_long or function.name in MUCH_SHORTER):
        return "joints"
    if has_loops(function, setting, algorithm):
        return "links"
    return "long" if can_be_long else None


def _can_be_long(function: Function, setting: Setting, algorithm: str) -> bool:
    """Whether a function that has no loops over links is straight-line code that can be compiled in seconds: formulas
    and derivatives are made from that, too, where the kernel itself is loops over joints."""
    if has_loops(function, setting, algorithm) or algorithm in function.scanned:
        return False
    return function.size(setting.model) <= MOST_WRITTEN_OUT


def regroups(function: Function, algorithm: str) -> bool:
    """Whether inertial parameters may be regrouped; scans join links by inertias, which must not be negative."""
    return function.regroups and algorithm not in function.scanned


def is_straight(function: Function, setting: Setting, algorithm: str | None = None) -> bool:
    """Whether the function of this robot is small enough to be written out."""
    factor = FACTOR_WITHOUT_SWEEPS
    if function.swept:
        factor = FACTOR_OF_CHAINS if is_chain(setting.model) else 1.0
    limit = STRAIGHT_LINE_LIMIT * factor
    return algorithm not in function.scanned and function.size(setting.model) <= limit


def sweeps(function: Function, setting: Setting, algorithm: str) -> bool:
    """Whether the algorithm only goes outward and inward over the links, so that it can be loops."""
    return (
        algorithm in (*function.swept, *function.scanned)
        and not setting.wrench
        and _loops_know(setting.model)
    )


def _loops_know(model: Model) -> bool:
    """Whether loops over links have code for the robot, see ``swept``: not for followers and constraints."""
    return len(model.coordinate_joints) == len(model.moving_joints) and not model.constraints


def has_loops(function: Function, setting: Setting, algorithm: str) -> bool:
    """Whether the algorithm can be written as loops over the links: sweeps, or sweeps for every direction."""
    base = function if function.derivative_of is None else function_named(function.derivative_of)
    return sweeps(base, setting, algorithm) and (base is function or algorithm not in base.scanned)


def is_looped(function: Function, setting: Setting, algorithm: str) -> bool:
    """Whether the function of this robot can be loops over joints after straight-line code, see ``looped``."""
    model = setting.model
    if algorithm not in function.looped or setting.wrench or setting.parameters:
        return False
    if function.derivative_of and model.constraints:
        return False
    shared = model.fluid is not None or any(joint.number("load_friction") for joint in model.moving_joints)
    if function.derivative_of and setting.friction and shared:  # friction that is not that of one joint
        return False
    if any(relation is not None and len(relation.leaders) > 1 for relation in model.followed):
        return False
    return (
        FUNCTIONS["kinetic_energy"].size(model) <= MOST_WRITTEN_OUT
    )  # one pass over the links is written out


def chosen_algorithm(function: Function, setting: Setting, name: str | None) -> str:
    """The name of an algorithm, checked; None is the default, or one that can be loops where that is too long."""
    algorithm = function.algorithm(name)
    if name is not None or form(function, setting, algorithm) not in (None, "long"):
        return algorithm
    others = [other for other in function.algorithms if has_loops(function, setting, other)]
    if form(function, setting, algorithm) is None:
        others += [other for other in function.algorithms if is_looped(function, setting, other)]
    return next(iter(others), algorithm)


def kernel(
    function: Function, setting: Setting, algorithm: str, dtype: str = "float64"
) -> Kernel | ParametricKernel:
    """The compiled form of a function, made once per robot."""
    if setting.base_parameters and not regroups(function, algorithm):
        setting = replace(setting, base_parameters=False)
    known = kernels_of(setting.model)
    key = (function.name, algorithm, setting.options(), dtype)
    found = known.get(key)
    if found is None:
        setting = replace(setting, model=without_kernels(setting.model))
        found = known[key] = shared(setting.model, _make(function, setting, algorithm, dtype))
        found.origin = (_remade, (function.name, setting, algorithm, dtype))
    return found


def kernels_of(model: Model) -> dict[Any, Any]:
    """The kernels that were made for a robot, which keeps them; also for what ``without_kernels`` gave."""
    known = model.__dict__.get("_kernels")
    if known is None:
        keeper = model.__dict__.get("_keeper", lambda: None)() or model
        known = keeper.__dict__.setdefault("_kernels", {})
    return known


def made_once(robot: R, key: tuple[Any, ...], make: Callable[[R], T]) -> T:
    """What is made once for a robot and is kept by it, such as a kernel: made of an equal robot.

    Args:
        robot: the robot.
        key: the kind, then what else it depends on.
        make: a function of the robot.
    """
    known = kernels_of(robot)
    if key not in known:
        known[key] = make(without_kernels(robot))
    return known[key]


def without_kernels(model: R) -> R:
    """An equal robot for what kernels refer to: if they kept alive what keeps them, only the collector would free it.

    Both share what is worked out of the robot when it is first needed.
    """
    if "_keeper" in model.__dict__:
        return model
    known = model.__dict__.get("_without_kernels")
    if known is None:
        for name in ("_mechanisms", "_contact_efforts"):
            model.__dict__.setdefault(name, {})
        known = object.__new__(type(model))
        parts = dict(model.__dict__)  # another thread may add some
        own = [name for name in parts if name[0] != "_" or name in WORKED_OUT]
        known.__dict__.update((name, parts[name]) for name in own)
        known.__dict__["_keeper"] = weakref.ref(model)
        model.__dict__["_without_kernels"] = known
    return known


def shared(model: Model, made: T, key: Any = None) -> T:
    """The kernel of another robot with the same code, where there is one: robots whose frames are held elsewhere.

    ``key``: what the code is found by; that of a ``Kernel`` by default. The last ones are kept, because footholds
    change often, and the robot before may be gone.
    """
    if key is None and isinstance(made, Kernel) and made.key is not None:
        key = (made.name, made.inputs, made.outputs, made.dtype, made.key)
    if not model.constraints or key is None:
        return made
    with _SHARED_LOCK:
        kernel: Any = _SHARED.pop(key, made)
        _SHARED[key] = kernel
        while len(_SHARED) > MOST_SHARED:
            _SHARED.pop(next(iter(_SHARED)))
    return kernel


def _remade(name: str, setting: Setting, algorithm: str, dtype: str) -> Kernel | ParametricKernel:
    """Unpickle a kernel: make it again for the robot that was pickled with it."""
    return kernel(function_named(name), setting, algorithm, dtype)


def _make(function: Function, setting: Setting, algorithm: str, dtype: str) -> Kernel | ParametricKernel:
    sizes = function.input_sizes(setting)
    shapes, kind = function.shapes(setting.model), form(function, setting, algorithm)

    def build(precision: str) -> Any:
        if kind == "links":
            return _swept_program(function, setting, algorithm, precision)
        if kind == "joints":
            from linkwise.functions import looped

            return looped.program(function, setting, precision)  # type: ignore[arg-type]
        return written_out(precision)

    def written_out(precision: str) -> Program:
        from linkwise.compiler.ir.program import lower

        _, nodes = _cheapest(function, replace(setting, dtype=precision), algorithm)
        return lower(nodes, sizes, name=function.name, dtype=precision)  # type: ignore[arg-type]

    # directions of friction belong to a state, and targets are few; the other parameters are the same for many states
    parameters = [name for name in sizes if name in setting.parameters and name not in (MEMORY, TARGETS)]
    if parameters:
        from linkwise.compiler.parametric import ParametricKernel

        states = [(name, size) for name, size in sizes.items() if name not in parameters]
        kernel = ParametricKernel(
            function.name, states, [(name, sizes[name]) for name in parameters], shapes.items(), dtype, build
        )
        kernel.main.labels, kernel.main.output_labels = _labels(setting.model, sizes, shapes)
        return kernel
    constant = reads_targets(function, setting) and TARGETS not in setting.parameters
    content = setting.model.content() if constant else setting.model.content_without_targets()
    identity = repr((content, algorithm, setting.options(), kind)).encode()
    made = Kernel(
        function.name, sizes.items(), shapes.items(), dtype, build, hashlib.sha256(identity).digest()
    )
    made.labels, made.output_labels = _labels(setting.model, sizes, shapes)
    made.derivatives = _derivatives(function, setting, algorithm)
    if kind == "joints" and _can_be_long(function, setting, algorithm):
        made.written_out = written_out
    made.parameters_of = lambda output, index: _parameters_of(function, setting, algorithm, output, index)
    return made


def _labels(model: Model, inputs: Iterable[str], outputs: Iterable[str]) -> tuple[dict, dict]:
    return labels_of(model, inputs), labels_of(model, outputs)


def _derivatives(function: Function, setting: Setting, algorithm: str) -> Callable[[], Kernel] | None:
    """What makes the kernel of the derivatives of a function by each of its inputs, where there is one."""
    row = FUNCTIONS.get(f"{function.name}_derivatives")
    model = setting.model
    if row is None or setting.wrench or model.nq != model.dof or model.constraints:
        return None
    name = algorithm if algorithm in row.algorithms else row.default
    return lambda: kernel(row, setting, name)  # type: ignore[return-value]


def _parameters_of(
    function: Function, setting: Setting, algorithm: str, output: str, index: int | None
) -> tuple[str, ...]:
    """The labels of the robot's parameters that an output depends on: traced with all of them as symbols."""
    from linkwise.compiler.ir.graph import Graph
    from linkwise.compiler.ir.walks import reachable
    from linkwise.functions.evaluation import outputs_of

    labels = setting.model.parameter_labels
    symbolic = replace(setting, parameters=labels, base_parameters=False)
    graph = Graph()
    inputs = {name: graph.inputs(name, size) for name, size in function.input_sizes(symbolic).items()}
    entries = _flat(outputs_of(function, symbolic, algorithm, **inputs)[output])
    chosen = [graph.lift(x) for x in (entries if index is None else [entries[index]])]
    used = {node.value[0] for node in reachable(chosen) if node.op == "input"}
    return tuple(label for label in labels if label in used)


def cheapest(function: Function, setting: Setting, algorithm: str) -> Setting:
    """The choice of origins (slid along the joint axes or as in the file) for which the algorithm needs less."""
    return _cheapest(function, setting, algorithm)[0]


def _cheapest(function: Function, setting: Setting, algorithm: str) -> tuple[Setting, Recorded]:
    """The same with what was recorded for it, which took as long as all the rest."""
    from linkwise.compiler.ir.program import record
    from linkwise.functions.evaluation import outputs_of

    def recorded(candidate: Setting) -> Recorded:
        return record(
            lambda **inputs: outputs_of(function, candidate, algorithm, **inputs),
            function.input_sizes(candidate),
            function.shapes(candidate.model),
            name=function.name,
        )

    choices = (setting, replace(setting, slide=False))
    if function.size(setting.model) > RECORDED_ONCE:
        choices = choices[:1]
    if function.name in CONTACT_FUNCTIONS:
        # the solver is most of the program, and the origins do not change it: those of its equation of motion count
        plain = replace(setting, contact_inputs=(), accuracy=None, smoothing=0.0)
        chosen, _ = _cheapest(function_named("mass_matrix"), plain, "compound_link")
        choices = (replace(setting, slide=chosen.slide),)
    if function.derivative_of is not None and function.size(setting.model) > LARGE_DERIVATIVE:
        base = function_named(function.derivative_of)
        chosen, _ = _cheapest(base, setting, algorithm if algorithm in base.algorithms else base.default)
        choices = (chosen,)
    return cheapest_recorded(choices, recorded)


def cheapest_recorded(choices: Iterable[T], recorded: Callable[[T], Recorded]) -> tuple[T, Recorded]:
    """The choice whose program needs the fewest operations, with what was recorded for it."""
    from linkwise.compiler.ir.operations import total

    def values(pair: tuple[T, Recorded]) -> list[Node]:
        return [node for _, nodes in pair[1].values() for node in nodes]

    pairs = [(choice, recorded(choice)) for choice in choices]
    best = min(pairs, key=lambda pair: total(values(pair))) if len(pairs) > 1 else pairs[0]
    for pair in pairs:
        if pair is not best:
            for node in values(pair)[:1]:
                node.graph.finish()
    return best


def _flat(nested: Any) -> list[Any]:
    return (
        [leaf for part in nested for leaf in _flat(part)] if isinstance(nested, (list, tuple)) else [nested]
    )


def _swept_program(function: Function, setting: Setting, algorithm: str, dtype: str):
    from linkwise.functions.evaluation import ALGORITHMS
    from linkwise.functions.swept import SweptLinks

    links = SweptLinks(setting.links())
    chosen = replace(setting, stand_in=links, dtype=dtype)
    base = function.derivative_of or function.name
    return links.program(
        function.name,
        lambda _, **inputs: ALGORITHMS[base][algorithm](chosen, **inputs),
        function.inputs,
        list(function.shapes(setting.model)),
        dtype,
        derivatives=function.derivative_of is not None,
    )


def _written(out: Any, results: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    from linkwise.compiler.runtime.arrays import check_out

    targets = out if isinstance(out, tuple) else (out,)
    written = []
    for target, result in zip(targets, results, strict=True):
        if target is not None:
            check_out("out", target, result.shape, result.dtype)[...] = result
        written.append(result if target is None else target)
    return tuple(written)
