"""Compiling before the first call: ``robot.compile``, and the handle of what is compiled in the background."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from linkwise.arguments.flags import flag
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.parametric import ParametricKernel
from linkwise.compiler.runtime import background as processes
from linkwise.compiler.runtime import dispatch, host
from linkwise.errors import UnknownNameError, suggest
from linkwise.functions.table import FUNCTIONS
from linkwise.robot.methods import OPTIONAL_INPUTS, Method

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot

DTYPES = ("float64", "float32")


class Preparation:
    """What ``robot.compile`` is doing; everything is usable before it is done, only slower."""

    def __init__(self, forms: Sequence[tuple[Kernel, str, int]], background: bool):
        self._total = len(forms)
        self._job: processes.Job | None = None
        missing = [form for form in forms if form[0].known_native(*form[1:]) is None]
        if background and processes.is_on():
            missing = self._given_away(missing)
        for kernel, dtype, width in missing:
            kernel.native(dtype, width)
        if not background or not processes.is_on():
            dispatch.entry_points(wait=True)

    def _given_away(self, forms: list[tuple[Kernel, str, int]]) -> list[tuple[Kernel, str, int]]:
        """Let another process compile these; what cannot be pickled is compiled by this one."""
        sent = [form for form in forms if _can_be_sent(form[0])]
        tasks = [processes.Task(dispatch.stored_entry, ())]
        tasks += [processes.Task(stored_form, form) for form in sent]
        self._job = processes.start_all(tasks) if sent else None
        if self._job is None:
            return forms
        dispatch.expect_entry(processes.Result(self._job, 0))
        for place, (kernel, dtype, width) in enumerate(sent, start=1):
            kernel.native_program(dtype).expect(width, processes.Result(self._job, place))
        return [form for form in forms if form not in sent]

    @property
    def progress(self) -> float:
        """The part that is compiled, from 0 to 1."""
        if self._job is None:
            return 1.0
        return 1.0 - (self._job.count - len(self._job.results())) / (self._total + 1)

    @property
    def done(self) -> bool:
        """Whether nothing more is being compiled. A process that failed is done, too: the first call compiles then."""
        return self._job is None or self._job.is_over or self.progress == 1.0

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all is compiled, at most so long [s]; whether it is."""
        return self._job is None or self.done or self._job.wait(timeout)

    def __repr__(self) -> str:
        return f"<Preparation: {self.progress:.0%} of {self._total} pieces of code>"


def stored_form(kernel: Kernel, dtype: str, width: int) -> bytes:
    """The code of a kernel as the cache has it."""
    return kernel.native_program(dtype).stored(width)


def _can_be_sent(kernel: Kernel) -> bool:
    try:
        pickle.dumps(kernel)
    except (TypeError, AttributeError, pickle.PicklingError):
        return False
    return True


def compile(
    self: Robot,
    functions: str | Kernel | ParametricKernel | Sequence[str | Kernel | ParametricKernel],
    *,
    background: bool = False,
    dtype: str | Sequence[str] = "float64",
    batches: bool = True,
    **options: Any,
) -> Preparation:
    """Compile functions before they are called first, now or in another process.

    Args:
        functions: names of methods ("inverse_dynamics"), kernels, or several of them.
        background: whether to return at once and compile in another process. Calls that come
            before it is done compile on their own.
        dtype: "float64", "float32" or both.
        batches: whether the code for batches is compiled, too.
        **options: of the methods, for those that have them: ``algorithm``, ``friction``, ``frame``,
            ``wrench_frame``; ``wrench=True`` where one will be given.

    Returns:
        A handle: ``done``, ``progress`` from 0 to 1, ``wait(timeout)``.

    Raises:
        UnknownNameError: no such function, algorithm, frame or precision.
    """
    background, batches = flag("background", background), flag("batches", batches)
    listed = (
        list(functions) if isinstance(functions, Iterable) and not isinstance(functions, str) else [functions]
    )
    precisions = (dtype,) if isinstance(dtype, str) else tuple(dtype)
    for name in precisions:
        if name not in DTYPES:
            raise UnknownNameError(f"dtype: expected {' or '.join(DTYPES)}, got {name!r}")
    _check_options(type(self), [each for each in listed if isinstance(each, str)], options)
    kernels: list[Kernel] = []
    for each in listed:
        kernels += _kernels(self, each, options)
    widths = {name: (1, host.lanes(name)) if batches else (1,) for name in precisions}
    forms = [(kernel, name, width) for kernel in kernels for name in precisions for width in widths[name]]
    return Preparation(forms, background)


def _kernels(robot: Any, wanted: Any, options: dict[str, Any]) -> list[Kernel]:
    """What is compiled for a name or a kernel; nothing where a function runs without machine code."""
    if isinstance(wanted, ParametricKernel):
        return [part for part in (wanted.prelude, wanted.main) if part is not None]
    if isinstance(wanted, Kernel):
        return [wanted]
    if not isinstance(wanted, str):
        raise TypeError(f"compile: expected names of functions or kernels, got a {type(wanted).__name__}")
    method = getattr(type(robot), wanted, None)
    if not isinstance(method, Method):
        own = {name: value for name, value in options.items() if name != "wrench_frame"}
        return _kernels(robot, robot.kernel(wanted, **own), {})
    given = {name: value for name, value in options.items() if name in method.places}
    for name in OPTIONAL_INPUTS:
        if name in given:
            given[name] = flag(name, given[name])
    found = robot.kernel_for(wanted, method.options(given))
    return [] if found is None else [getattr(found[0], "kernel", found[0])]  # (the code of a ``HeldKernel``)


def _check_options(owner: type, names: list[str], options: dict[str, Any]) -> None:
    """Raise for an unknown function, and for an option that none of the functions has."""
    methods = {name: getattr(owner, name, None) for name in names}
    valid = [name for name in dir(owner) if isinstance(getattr(owner, name), Method)]
    for name, method in methods.items():
        if not isinstance(method, Method) and name not in FUNCTIONS:
            raise UnknownNameError(f"compile: no function {name!r}; {suggest(name, valid)}")
    for option in options:
        known = [method for method in methods.values() if isinstance(method, Method)]
        if option in ("out", "threads") or not any(option in method.places for method in known):
            raise TypeError(f"compile: none of the functions has an option {option!r}")
