"""A compiled program that takes arrays."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from linkwise.compiler.ir.structures import is_sequence
from linkwise.compiler.native import Native, NativeProgram
from linkwise.compiler.runtime import arrays, dispatch, host, layout, named, targets, threads
from linkwise.compiler.runtime.quick import QuickStates
from linkwise.errors import DtypeError, LinkwiseError, UnknownNameError

if TYPE_CHECKING:
    from linkwise.compiler.ir.operations import Operations
    from linkwise.compiler.ir.program import Explanation, Program
    from linkwise.compiler.ir.sweeps import SweptProgram
    from linkwise.compiler.trace.traced_function import TracedFunction

_DTYPES = ("float64", "float32")
MOST_QUICK_STATES = 4096  # of a batch; more are worth the time that it takes to compile well


class Portable:
    """Copying returns the kernel itself; pickling stores what it was made from, not machine code."""

    name: str
    origin: tuple[Callable[..., Any], tuple[Any, ...]] | str | None = None
    """How to make it again after pickling, or its name in its module; None: it cannot be pickled."""

    def __copy__(self) -> Self:
        return self  # nothing in it changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> Any:
        if self.origin is None:
            raise TypeError(f"{self.name}: this kernel cannot be pickled; make it again where it is needed")
        return self.origin


@dispatch.connected_class()
class Kernel(Portable):
    """A function of arrays, compiled for one program when it is first called.

    Each input has shape (..., size): any leading axes, broadcast together as in NumPy; the result has the
    same leading axes. The arithmetic is done in float64, in float32 if all inputs are float32 or the kernel's
    dtype is; real numbers of other types are converted to float64 first.

    ``build`` makes the program for a precision; ``key`` stands for everything the program depends on besides
    this package, so that code can be found in the cache without building the program (None: it is always
    built).

    Arrays of other libraries (CuPy, PyTorch, JAX) are computed where they are, see ``targets``. Once there is machine
    code the interpreter calls it directly and gives what it does not recognise to ``__call__``, see ``dispatch``.
    """

    def __init__(
        self,
        name: str,
        inputs: Iterable[tuple[str, int]],
        outputs: Iterable[tuple[str, tuple[int, ...]]],
        dtype: str,
        build: Callable[[str], Program | SweptProgram],
        key: bytes | None = None,
    ):
        if dtype not in _DTYPES:
            raise UnknownNameError(f"dtype: expected {' or '.join(_DTYPES)}, got {dtype!r}")
        self.name = name
        self.inputs = tuple(inputs)
        self.outputs = tuple((output, tuple(shape)) for output, shape in outputs)
        self.dtype = dtype
        self.key = key
        self.parameters_of: Callable[[str, int | None], tuple[str, ...]] | None = None  # for ``explain``
        self.labels: Mapping[str, named.Labels] = {}  # of the numbers of inputs, for those that have names
        self.output_labels: Mapping[str, named.Labels] = {}
        self.derivatives: Callable[[], Kernel] | None = (
            None  # of the only output by each input, if known apart
        )
        self.shapes: Mapping[str, tuple[int, ...]] = {}  # of inputs that may be given as matrices
        self.written_out: Callable[[str], Program] | None = None  # makes the program without its loops
        self.traced: TracedFunction | None = None  # the function, where it was written in the language
        self.one_by_one = False  # states of a batch take no lanes, because turns of loops inside fill them
        self._dtype = np.dtype(dtype)
        self._out_sizes = [math.prod(shape) for _, shape in self.outputs]
        self.row_size = sum(size for _, size in self.inputs) + sum(self._out_sizes)
        self._plan: dispatch.KernelPlan | None = None
        self._connection: dispatch.Connection | None = None
        self._quick: list[QuickStates] = []  # where machine code cannot be called directly
        if not layout.SUPPORTED:
            kinds = (arrays.FLOAT64, arrays.FLOAT32) if dtype == "float64" else (arrays.FLOAT32,)
            self._quick = [QuickStates(self, kind) for kind in kinds] if self.inputs else []
        self._forms: set[tuple[str, int]] = set()  # forms of machine code that are in the plan
        self._natives: dict[str, NativeProgram] = {}
        self._derivatives: dict[tuple[str, tuple[str, ...]], Kernel] = {}
        self.on_device: dict[Any, Any] = {}  # what other targets have compiled of this kernel
        for precision in _DTYPES:
            own_key = (
                None
                if key is None
                else f"{name}\0{self.inputs}\0{self.outputs}\0{precision}\0".encode() + key
            )
            self._natives[precision] = NativeProgram(lambda precision=precision: build(precision), own_key)

    # -- calls -----------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        """The outputs for these inputs; several outputs come as a tuple.

        ``out`` is an array to write to (a tuple of arrays for several outputs). ``threads`` is the number of
        threads to use; None: all cores when the batch is worth it, or as many as the environment variable
        LINKWISE_THREADS says.
        """
        check_number(self.name, self.inputs, args)
        if self.shapes:
            args = self._flattened(args)
        if targets.is_compiling():
            return targets.torch_calls().traced_kernel(self, args, out)
        if (result := self.quick(args, out, threads)) is not None:
            return result
        if (result := self._call_dense(args, out, threads)) is not None:
            return result
        if named.any_named(args):
            return self._call_named(args, out, threads)
        if targets.are_foreign(args):
            return targets.call(self, args, out, threads)
        given, batch, dtype = self._as_arrays(args)
        rows = [arrays.rows(a if arrays.is_same(a.dtype, dtype) else a.astype(dtype), batch) for a in given]
        if out is None:
            results = written = [dispatch.new_result((*batch, *shape), dtype) for _, shape in self.outputs]
        else:
            results = self._check_out(out, batch, dtype)
            written = self._written(results, [row.owner for row in rows])
        words = [*(arrays.address(t) for t in written), *(r.address for r in rows), *(r.stride for r in rows)]
        self._run(words, math.prod(batch), dtype.name, threads, (written, rows))
        for result, target in zip(results, written, strict=True):
            if result is not target:
                result[...] = target
        if out is None and not batch:
            results = [r if r.ndim else r[()] for r in results]
        return results[0] if len(results) == 1 else tuple(results)

    def _flattened(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with matrices as rows of numbers."""
        flat: list[Any] = []
        for (name, size), value in zip(self.inputs, args, strict=True):
            shape = self.shapes.get(name)
            array: Any = np.asarray(value) if is_sequence(value) else value
            given: tuple[int, ...] = tuple(getattr(array, "shape", ()))
            if shape is not None and given[-len(shape) :] == shape:
                array = array.reshape(*given[: -len(shape)], size)
            flat.append(array)
        return tuple(flat)

    def _call_dense(self, args: tuple[Any, ...], out: Any, threads: int | None) -> Any:
        """The result where inputs are dense tables of states and ``out`` can be written directly, else None.

        Batches on several threads are mostly like that, and the threads wait for what is done here.
        """
        first = args[0] if args else None
        if type(first) is not np.ndarray or first.ndim != 2 or len(first) < 2:
            return None
        count, dtype = len(first), self._dtype
        if not arrays.is_same(first.dtype, dtype):
            dtype = arrays.FLOAT32
        if not arrays.are_dense(args, [(count, size) for _, size in self.inputs], dtype):
            return None
        shapes = [(count, *shape) for _, shape in self.outputs]
        if out is None:
            results = [dispatch.new_result(shape, dtype) for shape in shapes]
        else:
            results = out if len(shapes) > 1 else (out,)
            if type(results) not in (tuple, list) or len(results) != len(shapes):
                return None
            if not arrays.are_dense(results, shapes, dtype) or not arrays.are_apart(results, args):
                return None
            if not all(result.flags.writeable for result in results):
                return None
        words = [
            *map(arrays.address, results),
            *map(arrays.address, args),
            *(size for _, size in self.inputs),
        ]
        precision = (
            "float32" if dtype is arrays.FLOAT32 else "float64"
        )  # the name of a dtype takes microseconds
        self._run(words, count, precision, threads, (results, args))
        return results[0] if len(results) == 1 else tuple(results)

    def _call_named(self, args: tuple[Any, ...], out: Any, threads: int | None) -> Any:
        """The same where numbers of some inputs have names."""
        names = [name for name, _ in self.inputs]
        inputs = named.Unnamed((name, x, self.labels.get(name)) for name, x in zip(names, args, strict=True))
        result = self(*inputs.arrays, out=out, threads=threads)
        if out is not None:
            return result
        labels = [self.output_labels.get(name) for name, _ in self.outputs]
        if len(labels) == 1:
            return inputs.dressed(result, labels[0])
        return tuple(inputs.dressed(part, found) for part, found in zip(result, labels, strict=True))

    def graph(self, *args: Any, out: Any = None) -> Any:
        """A call with these arrays of CuPy or PyTorch on a GPU, recorded as a CUDA graph.

        ``graph()`` repeats it with what ``graph.inputs`` hold by then and gives the same ``graph.outputs`` every time;
        see ``linkwise.gpu.graph``. ``out`` are arrays to write to, as in a call.
        """
        check_number(self.name, self.inputs, args)
        return targets.graph(self, args, out)

    def quick(self, args: tuple[Any, ...], out: Any, threads: int | None) -> Any:
        """The result of a small batch where machine code cannot be called directly, or None; see ``compiler.quick``."""
        if threads is not None and not (type(threads) is int and threads > 0):
            return None
        for precision in self._quick:
            result = precision(args, out)
            if result is not None:
                return result
        return None

    def _as_arrays(self, args: tuple[Any, ...]) -> tuple[list[np.ndarray], tuple[int, ...], np.dtype]:
        """The inputs as arrays of real numbers, their leading axes broadcast together, the precision."""
        given = [arrays.as_reals(name, value) for (name, _), value in zip(self.inputs, args, strict=True)]
        for k, (_, size) in enumerate(self.inputs):
            if size == 1 and not given[k].ndim:  # a single number for a robot with one joint
                given[k] = given[k].reshape(1)
        batch = arrays.batch_shape(given, self.inputs)
        single = bool(given) and all(arrays.is_same(a.dtype, arrays.FLOAT32) for a in given)
        return given, batch, arrays.FLOAT32 if single else self._dtype

    def _check_out(self, out: Any, batch: tuple[int, ...], dtype: np.dtype) -> list[np.ndarray]:
        """The arrays of the caller that the results go to."""
        shapes = [(*batch, *shape) for _, shape in self.outputs]
        several = len(self.outputs) > 1
        if several and (not is_sequence(out) or len(out) != len(shapes)):
            names = ", ".join(name for name, _ in self.outputs)
            raise DtypeError(
                f"out: expected {len(shapes)} arrays ({names}) as a tuple, got {type(out).__name__}"
            )
        given: Sequence[Any] = out if several else [out]
        labels = [f"out[{k}]" if several else "out" for k in range(len(shapes))]
        return [arrays.check_out(*each, dtype) for each in zip(labels, given, shapes, strict=True)]

    @staticmethod
    def _written(results: list[np.ndarray], inputs: list[np.ndarray]) -> list[np.ndarray]:
        """What the code writes to: the results, or new memory where they cannot be written while inputs are
        read."""
        written: list[np.ndarray] = []
        for result in results:
            direct = arrays.writes_directly(result, [*inputs, *written])
            written.append(result if direct else np.empty(result.shape, result.dtype))
        return written

    def _run(self, words: list[int], count: int, dtype: str, wanted: int | None, used: Any) -> None:
        """Compute ``count`` states; ``words`` are the arguments of the code, ``used`` what lies at the addresses."""
        if wanted is not None:
            wanted = threads.wanted(wanted)
        if count == 0:
            return
        width = 1 if count == 1 or self.one_by_one else host.lanes(dtype)
        native = self._natives[dtype].form(width, quick=count <= MOST_QUICK_STATES)
        arguments = np.array(words, np.int64)
        if wanted is None:
            wanted = threads.wanted(None) if count > native.states_for_one_thread else 1
        scratch = (native.width * self.row_size + native.room) * (8 if dtype == "float64" else 4)
        threads.run(native, count, arguments, scratch, wanted, used)
        if self._plan is None or (dtype, width) not in self._forms:
            self._connect_form(dtype, width)

    def _connect_form(self, dtype: str, width: int) -> None:
        """Let the interpreter call this form: not while it is quick code, nor while the entry points are compiled."""
        if self.known_native(dtype, width) is not None and self.connect() is not None:
            self._forms.add((dtype, width))

    def connect(self) -> dispatch.KernelPlan | None:
        """Let the interpreter call the machine code that there is by now; None where that is not possible."""
        if self._plan is None and dispatch.can_connect(self):
            self._plan = dispatch.KernelPlan(self)
            self._connection = dispatch.Connection(self, self._plan, None, Kernel.__call__)
        if self._plan is not None:
            self._plan.learn(self.known_native)
        return self._plan

    def native(self, dtype: str, width: int) -> Native:
        """The machine code for blocks of ``width`` states."""
        return self._natives[dtype].form(width)

    def native_program(self, dtype: str) -> NativeProgram:
        """The machine code of all widths."""
        return self._natives[dtype]

    def known_native(self, dtype: str, width: int) -> Native | None:
        """The machine code for blocks of ``width`` states if it is there already."""
        return self._natives[dtype].known_form(width)

    # -- what the kernel is ----------------------------------------------------------------------------------

    def program(self, dtype: str | None = None) -> Program | SweptProgram:
        """The program that is compiled, in the kernel's own or another precision."""
        return self._natives[dtype or self.dtype].program  # type: ignore[return-value]

    def identity(self, dtype: str) -> bytes | None:
        """What the program in this precision depends on besides this package; None: that is not known."""
        return self._natives[dtype].key

    def content(self) -> tuple[Any, ...]:
        """Everything besides this package that decides the results: equal content, equal kernel."""
        if self.key is not None:
            return (self.name, self.inputs, self.outputs, self.dtype, self.key)
        from linkwise.compiler.emit import blocks
        from linkwise.compiler.shapes import nest

        text = blocks.module(nest(self.program()), 1)
        return (self.name, self.inputs, self.outputs, self.dtype, hashlib.sha256(text.encode()).digest())

    @property
    def operations(self) -> Operations:
        """Operations of one evaluation."""
        return self.program().operations

    def explain(self, output: str | None = None, index: int | None = None) -> Explanation:
        """Which inputs and parameters an output (or one of its elements, row by row) depends on, and its cost alone."""
        name = output or self.outputs[0][0]
        found = self._straight_program().explain(name, index)
        return (
            found
            if self.parameters_of is None
            else replace(found, parameters=self.parameters_of(name, index))
        )

    def jacobian(self, by: str) -> Kernel:
        """Another kernel: the derivative of every output by one input, of shape (output..., size of the
        input)."""
        from linkwise.compiler.calculus import jacobian_kernel

        made = jacobian_kernel(self, by)
        made.origin = (Kernel.jacobian, (self, by))
        return made

    def vjp(self, *by: str) -> Kernel:
        """Another kernel: the gradient of Σ cotangent · output by these inputs (default: all of them).

        It takes the inputs, then the cotangent of each output as one row. Made once: this is what gradients in
        PyTorch and JAX use.
        """
        return self._derivative("vjp", by)

    def jvp(self, *by: str) -> Kernel:
        """Another kernel: how the outputs change along one direction of these inputs (default: of all of them).

        It takes the inputs, then the direction of each. Made once: this is what forward mode in PyTorch and JAX uses.
        """
        return self._derivative("jvp", by)

    def _derivative(self, what: str, by: tuple[str, ...]) -> Kernel:
        from linkwise.compiler.calculus import jvp_kernel, vjp_kernel

        names = by or tuple(name for name, _ in self.inputs)
        found = self._derivatives.get((what, names))
        if found is None:
            found = (vjp_kernel if what == "vjp" else jvp_kernel)(self, names)
            found.origin = (getattr(Kernel, what), (self, *names))
            self._derivatives[what, names] = found
        return found

    def source(self, target: str, **options: Any) -> str:
        """The program as source code in "c", "cuda", "python", "wasm", "casadi" (C for ``casadi.external``, with the
        Jacobian) or "acados" (C, one step of forward dynamics); the options are those of the target's ``source``."""
        from linkwise.compiler.emit import DIFFERENTIATED, source

        program = self._straight_program() if target in ("python", *DIFFERENTIATED) else self.program()
        if target in DIFFERENTIATED and self.derivatives is not None:
            options["jacobian"] = self.derivatives()._straight_program()
        return source(program, target, **options)

    def casadi(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> Any:
        """The kernel as a ``casadi.Function`` of SX, with its inputs and outputs by name.

        CasADi differentiates it exactly, to any order, and acados takes it. Vectors are columns, matrices matrices.

        Args:
            name: of the function; by default the kernel's.
            options: passed to ``casadi.Function``, as ``{"cse": True}``.
        """
        from linkwise.compiler.emit.sx import to_casadi

        return to_casadi(self._straight_program(), name, options)

    def sympy(self, **options: Any) -> Any:
        """The output as a SymPy expression or Matrix (a dictionary of them where there are several
        outputs)."""
        from linkwise.compiler.emit.formulas import to_sympy

        found = _written_out(self.name, to_sympy, self._straight_program(), **options)
        return next(iter(found.values())) if len(found) == 1 else found

    def latex(self, **options: Any) -> str:
        """The outputs as aligned LaTeX equations, with sines and cosines written as in papers."""
        from linkwise.compiler.emit.formulas import to_latex

        return _written_out(self.name, to_latex, self._straight_program(), **options)

    def _straight_program(self) -> Program:
        """The program as one list of operations, which is what source code and formulas are made from."""
        return self.straight(self.dtype)

    def straight(self, dtype: str) -> Program:
        """The program in this precision without loops, whatever its length."""
        from linkwise.compiler.ir.program import Program

        program = self.program(dtype)
        if isinstance(program, Program):
            return program
        if self.written_out is not None:
            return self.written_out(dtype)
        raise LinkwiseError(
            f"{self.name} has too many links to be written out: it is compiled as loops over its links; formulas take "
            "fewer joints (robot.lock)"
        )

    def __repr__(self) -> str:
        ins = ", ".join(f"{name} ({size})" for name, size in self.inputs)
        outs = ", ".join(f"{name} {shape}" for name, shape in self.outputs)
        return f"<Kernel {self.name}: {ins} -> {outs}, {self.dtype}>"


def check_number(name: str, inputs: tuple[tuple[str, int], ...], args: tuple[Any, ...]) -> None:
    """Raise where there are more or fewer arguments than inputs."""
    if len(args) != len(inputs):
        names = ", ".join(label for label, _ in inputs)
        raise TypeError(f"{name} takes {len(inputs)} arrays ({names}), got {len(args)}")


def _written_out(name: str, write: Callable[..., Any], program: Program, **options: Any) -> Any:
    """A formula of the program; SymPy walks over formulas by recursion, which long ones exceed."""
    try:
        return write(program, **options)
    except RecursionError:
        raise LinkwiseError(
            f"{name} has {program.operations.total} operations, too many for one formula; source('python') has a line "
            "for each"
        ) from None


def traced_kernel(
    name: str,
    function: Callable[..., Any],
    sizes: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    dtype: str,
    key: Any,
    steady: Sequence[str] = (),
) -> Kernel:
    """A function over scalars as a kernel.

    Args:
        name: of the kernel.
        function: takes a list of scalars for each input, by name.
        sizes: number of scalars of every input.
        shapes: of every output.
        dtype: "float64" or "float32".
        key: bytes that stand for all that the function depends on, or all of it, to be printed; None: unknown.
        steady: inputs that are mostly the same for all states of a batch.
    """
    from linkwise.compiler.ir.program import trace

    def build(precision: str) -> Program:
        return trace(function, sizes, shapes, name=name, dtype=precision, steady=steady)  # type: ignore[arg-type]

    if not (key is None or isinstance(key, bytes)):
        key = hashlib.sha256(repr(key).encode()).digest()
    return Kernel(name, sizes.items(), shapes.items(), dtype, build, key)
