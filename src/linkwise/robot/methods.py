"""Methods of robots that are one kernel each: found by the options of a call, called with little overhead.

A function decorated with ``computed`` becomes a ``Method`` in its class. It remembers, robot by robot, which kernel
computes a call with certain options (``algorithm``, ``friction``, ``frame``, whether a ``wrench`` is given), and the
interpreter then goes from the call to machine code; see ``linkwise.compiler.runtime.dispatch``. All other calls run the
function itself, which also has the error messages. The class and its robots stay as they are: ``inspect.signature``,
``help`` and pickling of bound methods use the function.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
from collections.abc import Callable, Mapping
from sys import modules
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from linkwise.arguments.described import described
from linkwise.arguments.explained import explained
from linkwise.compiler.runtime import dispatch, named, targets
from linkwise.compiler.runtime.arrays import is_foreign
from linkwise.compiler.runtime.layout import (
    OPTION,
    OPTIONAL_INPUT,
    OTHER,
    REQUIRED_INPUT,
    Entry,
    KnownCall,
    MethodTable,
)
from linkwise.errors import LinkwiseError
from linkwise.functions.contact_functions import CONTACT_INPUTS
from linkwise.functions.table import FUNCTIONS, ITERATED, Setting, labels_of

if TYPE_CHECKING:
    from linkwise.compiler.kernel import Kernel
    from linkwise.robot.robot import Robot

OPTIONAL_INPUTS = ("wrench", "start", *CONTACT_INPUTS)
MOST_METHODS = 64
MOST_KNOWN = 256  # calls with different options that a robot remembers
SLOT = "_known_calls"

_KEYS = {str, bool, int, float, type(None), np.bool_}  # types of options that never change
_FLAGS = (bool, np.bool_)
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def constant_kernel(kernel: Any) -> Kernel:
    """The kernel in which targets of constraints are numbers, for arrays of other libraries and their compilers."""
    return getattr(kernel, "constant", lambda: kernel)()


class Known(NamedTuple):
    """A call with certain options: its kernel, which parameters are the kernel's inputs, whether a NaN in the results
    is looked into."""

    kernel: Kernel
    order: tuple[int, ...]
    look: bool

    def __call__(self, inputs: tuple, out: Any, threads: int | None) -> Any:
        """The result; None where the function itself must be called: with symbols, and to explain a NaN."""
        if is_foreign(inputs[0]):
            return targets.call(constant_kernel(self.kernel), inputs, out, threads)
        result = self.kernel.quick(inputs, out, threads)
        if result is None:
            inputs = tuple(map(_plain, inputs))
            if not are_numbers(*inputs):
                return None
            result = self.kernel(*inputs, out=out, threads=threads)
        return None if self.look and not is_foreign(result) and _has_nan(result) else result


class KnownCalls(ctypes.c_int64 * (len(KnownCall) * MOST_METHODS)):  # type: ignore[misc]
    """What a robot remembers: by method and options for Python, and a list of entries for each method for machine
    code."""

    def __init__(self):
        super().__init__()
        self.by_options: dict[tuple, Known | None] = {}
        self.waiting: dict[tuple, list[Any]] = {}  # calls that machine code finds when there are entry points
        self.kept: list[Any] = []  # what machine code points to


@dispatch.connected_class(dispatch.METHOD_DESCRIPTOR)
class Method:
    """A function of robots, see above."""

    count = 0

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)
        self.function = function
        self._explained = explained(function, f"Robot.{function.__name__}")
        self.index = Method.count
        Method.count += 1
        parameters = list(inspect.signature(function).parameters.values())[1:]
        self.names = [parameter.name for parameter in parameters]
        self.defaults = [parameter.default for parameter in parameters]
        self.places = {name: k for k, name in enumerate(self.names)}
        self.roles = [_role(parameter) for parameter in parameters]
        self.positional = sum(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
        self.required = self.roles.count(REQUIRED_INPUT)
        self.out, self.threads = self.places["out"], self.places["threads"]
        self._options = [k for k, role in enumerate(self.roles) if role == OPTION]
        self._optional = [k for k, role in enumerate(self.roles) if role == OPTIONAL_INPUT]
        self._inputs = [k for k, role in enumerate(self.roles) if role in (REQUIRED_INPUT, OPTIONAL_INPUT)]
        self._flags = [k for k, default in enumerate(self.defaults) if isinstance(default, bool)]
        self._plain = self._key(self.defaults)
        self._kept: tuple = ()

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner = owner

    def __get__(self, robot: Any, owner: type | None = None) -> Any:
        if robot is None:
            return self
        if "torch" in modules and targets.is_compiling():  # the first test alone is a call less
            return functools.partial(self, robot)
        return MethodType(self, robot)

    def __call__(self, robot: Robot, /, *args: Any, **options: Any) -> Any:
        if targets.is_compiling():
            return targets.torch_calls().traced_method(self, robot, args, options)
        calls = getattr(robot, SLOT, None)
        if calls is not None and not options and len(args) == self.required:
            known = calls.by_options.get(self._plain)
            if known is not None and (result := known(args, None, None)) is not None:
                if calls.waiting:
                    self._add_waiting(calls, self._plain)
                return result
        values = self._values(args, options)
        if values is not None and named.any_named(values[k] for k in self._inputs):
            return self._call_named(robot, values)
        key = None if values is None else self._key(values)
        if values is None or key is None:  # an unusual option, or a call that cannot be right
            return self._explained(robot, *args, **options)
        known = None if calls is None else calls.by_options.get(key)
        if known is not None:
            inputs = tuple([values[k] for k in known.order])
            result = known(inputs, values[self.out], values[self.threads])
            if result is not None:
                if calls is not None and calls.waiting:
                    self._add_waiting(calls, key)
                return result
        result = self.function(robot, *args, **options)
        if calls is None or key not in calls.by_options:
            self._learn(robot, values, key)
        return result

    def _call_named(self, robot: Robot, values: list[Any]) -> Any:
        """A call in which the numbers of some inputs have names."""
        given = dict(zip(self.names, values, strict=True))
        inputs = without_names(robot, {self.names[k]: values[k] for k in self._inputs})
        given |= dict(zip((self.names[k] for k in self._inputs), inputs.arrays, strict=True))
        result = self(robot, **given)
        row = FUNCTIONS.get(self.__name__)  # type: ignore[attr-defined]
        if row is None or given["out"] is not None or isinstance(result, tuple):
            return result
        (output, *_) = row.shapes(robot)
        return inputs.dressed(result, labels_of(robot, [output]).get(output))

    def _values(self, args: tuple, options: dict[str, Any]) -> list[Any] | None:
        """The value of every parameter; None where the call is not complete or not allowed."""
        given = len(args)
        if given > self.positional:
            return None
        values = [*args, *self.defaults[given:]]
        for name, value in options.items():
            place = self.places.get(name, -1)
            if place < given:
                return None
            values[place] = value
        return None if any(value is inspect.Parameter.empty for value in values[: self.required]) else values

    def _key(self, values: list[Any]) -> tuple | None:
        """What decides the kernel: the options, and which optional inputs are given."""
        options = [values[k] for k in self._options]
        for value in options:
            if type(value) not in _KEYS:
                return None
        for k in self._flags:
            if type(values[k]) not in _FLAGS:  # 1 equals True, but is refused
                return None
        return (self.index, *options, *[values[k] is not None for k in self._optional])

    def options(self, given: dict[str, Any]) -> dict[str, Any]:
        """The options of a call with these, for ``kernel_for``: the defaults of the others."""
        roles = zip(self.names, self.defaults, self.roles, strict=True)
        plain = {
            name: default if role == OPTION else False
            for name, default, role in roles
            if role in (OPTION, OPTIONAL_INPUT)
        }
        return plain | given

    def chosen(self, robot: Robot, given: dict[str, Any]) -> tuple[Kernel, tuple[str, ...], bool]:
        """For a call that is only traced: the kernel, the names of its inputs, whether its first output alone is meant.

        ``given`` has the arguments by name, with an ellipsis in place of each array.
        """
        values = self._values((), given)
        if values is None:
            raise TypeError(f"expected {self.function.__name__}{inspect.signature(self.function)}")
        options = {
            name: value is not None if role == OPTIONAL_INPUT else value
            for name, value, role in zip(self.names, values, self.roles, strict=True)
            if role in (OPTION, OPTIONAL_INPUT)
        }
        order = tuple(
            name
            for name, value, role in zip(self.names, values, self.roles, strict=True)
            if role == REQUIRED_INPUT or (role == OPTIONAL_INPUT and value is not None)
        )
        found = robot.kernel_for(self.function.__name__, options)
        if found is not None:
            return constant_kernel(found[0]), order, False
        return _several(robot, self.function.__name__, options), order, True

    def _learn(self, robot: Robot, values: list[Any], key: tuple) -> None:
        """Remember the kernel that computes calls with these options; None: there is none."""
        if "_keeper" in vars(robot):  # it would be kept alive by that, see ``kernels.without_kernels``
            return
        options = {
            name: value is not None if role == OPTIONAL_INPUT else value
            for name, value, role in zip(self.names, values, self.roles, strict=True)
            if role in (OPTION, OPTIONAL_INPUT)
        }
        calls = getattr(robot, SLOT, None)
        if calls is None:
            calls = KnownCalls()
            object.__setattr__(robot, SLOT, calls)
        if len(calls.by_options) >= MOST_KNOWN:
            return
        found = robot.kernel_for(self.__name__, options)  # type: ignore[attr-defined]
        if found is None:
            calls.by_options[key] = None
            return
        kernel, look = found
        order = tuple(
            k
            for k, (value, role) in enumerate(zip(values, self.roles, strict=True))
            if role == REQUIRED_INPUT or (role == OPTIONAL_INPUT and value is not None)
        )
        calls.by_options[key] = known = Known(kernel, order, look)
        self._add_entry(calls, values, key, known)

    def _add_entry(self, calls: KnownCalls, values: list[Any], key: tuple, known: Known) -> None:
        """Let machine code find the kernel, too."""
        kernel, order, look = known
        plan = kernel.connect()
        if plan is None or not hasattr(type(self), "_vectorcall"):
            if dispatch.is_pending():
                calls.waiting[key] = [
                    True
                    if role == OPTIONAL_INPUT and value is not None
                    else value
                    if role == OPTION
                    else None
                    for value, role in zip(values, self.roles, strict=True)
                ]
            return
        calls.waiting.pop(key, None)
        if self._vectorcall == 0:  # type: ignore[attr-defined]
            self._connect()
        keys = (ctypes.c_int64 * len(values))()
        for k, (value, role) in enumerate(zip(values, self.roles, strict=True)):
            if role == OPTIONAL_INPUT:
                keys[k] = value is not None
            elif role == OPTION:
                keys[k] = id(value)
        places = (ctypes.c_int64 * len(order))(*(8 * k for k in order))
        place = len(KnownCall) * self.index
        entry = Entry.table(
            next=calls[place],
            plan=plan.address,
            look=int(look),
            keys=ctypes.addressof(keys),
            order=ctypes.addressof(places),
        )
        options = [value for value, role in zip(values, self.roles, strict=True) if role == OPTION]
        calls.kept.append((plan, kernel, keys, places, entry, options))
        calls[place] = ctypes.addressof(entry)
        if key == self._plain:
            calls[place + KnownCall.look // 8] = int(look)
            calls[place + KnownCall.plain // 8] = plan.address

    def _add_waiting(self, calls: KnownCalls, key: tuple | None) -> None:
        """Try again to let machine code find the kernel."""
        values, known = calls.waiting.get(key), calls.by_options.get(key)  # type: ignore[arg-type]
        if values is not None and known is not None:
            self._add_entry(calls, values, key, known)  # type: ignore[arg-type]

    def _connect(self) -> None:
        """Let the interpreter call machine code for this method from now on."""
        names = (ctypes.c_int64 * len(self.names))(
            *(id(dispatch.intern_for_ever(name)) for name in self.names)
        )
        roles = (ctypes.c_int64 * len(self.roles))(*self.roles)
        defaults = (ctypes.c_int64 * len(self.defaults))(
            *(0 if value is inspect.Parameter.empty else id(value) for value in self.defaults)
        )
        fallback = type(self).__call__
        table = MethodTable.table(
            globals=ctypes.addressof(dispatch.global_table()),
            fallback=id(fallback),
            owner=id(self.owner),
            slot=_slot_offset(self.owner),
            index=8 * len(KnownCall) * self.index,
            parameters=len(self.names),
            positional=self.positional,
            names=ctypes.addressof(names),
            roles=ctypes.addressof(roles),
            defaults=ctypes.addressof(defaults),
            out=8 * self.out,
            threads=8 * self.threads,
        )
        self._kept = (names, roles, defaults, fallback, table)
        self._table = ctypes.addressof(table)
        self._vectorcall = dispatch.entry_points()["call_method"]


def _several(robot: Robot, method: str, options: dict[str, Any]) -> Kernel:
    """The kernel of a call that also looks at its other outputs: constrained and iterated forward dynamics."""
    from linkwise.robot.kernels import compiled

    found = None
    if method == "forward_dynamics":
        algorithm = options["algorithm"]
        iterated = algorithm in FUNCTIONS[ITERATED].algorithms
        frame = options["wrench_frame"]
        if options["wrench"] and frame is None:
            frame = robot.default_frame()
        names = ("friction", "wrench", *(("tolerance", "limit", "start") if iterated else ("stabilization",)))
        setting = Setting(robot, frame=frame, **{name: options[name] for name in names})
        found = compiled(ITERATED if iterated else "constrained_forward_dynamics", setting, algorithm)
    found = None if found is None else constant_kernel(found)
    if found is None:
        raise LinkwiseError(f"{method}: with these options it is computed on NumPy arrays only")
    return found


def computed(function: AnyFunction) -> AnyFunction:
    """A decorator for methods of robots that are one kernel each."""
    return Method(described()(function))  # type: ignore[return-value]


QUANTITIES = {"q0": "q", "q1": "q", "v": "qd"}  # what arguments are, that are not named after their quantity


def without_names(robot: Any, given: Mapping[str, Any]) -> named.Unnamed:
    """Arguments of a robot's methods as plain arrays, matched by name where their numbers have names."""
    labels = labels_of(robot, ("q", "qd", "qdd", "tau", "start"))
    return named.Unnamed(
        (name, value, labels.get(QUANTITIES.get(name, name))) for name, value in given.items()
    )


def takes_names(method: AnyFunction) -> AnyFunction:
    """A decorator for other methods of robots: states whose numbers have names are matched by name."""
    signature = inspect.signature(method)

    @functools.wraps(described()(method))
    def wrapper(self: Any, *args: Any, **options: Any) -> Any:
        if not named.any_named((*args, *options.values())):
            return method(self, *args, **options)
        given = signature.bind(self, *args, **options).arguments
        inputs = {name: value for name, value in given.items() if named.kind(value) is not None}
        given |= dict(zip(inputs, without_names(self, inputs).arrays, strict=True))
        return method(**given)

    return wrapper  # type: ignore[return-value]


def _role(parameter: inspect.Parameter) -> int:
    if parameter.name in OPTIONAL_INPUTS:
        return OPTIONAL_INPUT
    if parameter.name in ("out", "threads"):
        return OTHER
    return REQUIRED_INPUT if parameter.default is parameter.empty else OPTION


def _plain(value: Any) -> Any:
    """An array of a derived class as a plain one, without a copy."""
    return (
        value.view(np.ndarray) if isinstance(value, np.ndarray) and type(value) is not np.ndarray else value
    )


def are_numbers(*values: Any) -> bool:
    """Whether these are arrays that a kernel takes, not symbols of a function that is being traced."""
    return all(type(value) is np.ndarray and value.dtype.kind == "f" for value in values)


def _has_nan(result: Any) -> bool:
    return any(np.isnan(part).any() for part in (result if isinstance(result, tuple) else (result,)))


@functools.cache
def _slot_offset(owner: type) -> int:
    """Where in the memory of a robot its ``KnownCalls`` is: found by looking for a value that was put there."""
    robot, value = object.__new__(owner), KnownCalls()
    object.__setattr__(robot, SLOT, value)
    for offset in range(16, owner.__basicsize__, 8):
        if ctypes.c_int64.from_address(id(robot) + offset).value == id(value):
            return offset
    raise AssertionError(f"{owner.__name__} has no slot {SLOT}")
