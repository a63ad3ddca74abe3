"""What a function consists of, by content: its bytecode and constants, defaults, closure, the globals that it refers
to, what those refer to in turn, and the project's files that are imported on the way.

``parts`` gives a digest for each of them, by a readable label. Functions and classes of the standard
library, of Linkwise and of installed packages count by their name only. Files count by their compiled code: comments
and blank lines do not matter. What a function reads from disk while it runs is not included.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import importlib.util
import inspect
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.core import identity

Parts = dict[str, str]
"""Digests by labels, such as "function 'heat' in own.py"."""

_INSTALLED = ("site-packages", "dist-packages")
_OF_A_CLASS = frozenset(
    [
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "__qualname__",
        "__firstlineno__",
        "__static_attributes__",
        "__annotations__",
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
        "__abstractmethods__",
        "_abc_impl",
        "__slotnames__",
        "__classcell__",
    ]
)


def parts(function: Any) -> Parts:
    """Everything that decides what a function of the user's own computes."""
    walk = _Walk()
    walk.begin(function)
    return walk.parts


class _Walk:
    """Follows references from one object on; what has a label of its own gets a part of its own."""

    def __init__(self):
        self.parts: Parts = {}
        self._labels: dict[int, str] = {}
        """What stands for an object that has been met, by its identity number: a label, or a digest."""
        self._keep: list[Any] = []  # so that no identity number is used twice
        self._open: dict[int, int] = {}  # containers on the way here, which may contain themselves
        self._given: set[str] = set()  # labels

    def begin(self, function: Any) -> None:
        module = getattr(function, "__module__", None) or type(function).__module__
        self._add_installed_package(module.partition(".")[0])
        kind = "kernel" if type(function).__module__.startswith("linkwise.") else "object"
        where = f" in {_file_label(module, '')}" if is_project(module) else ""
        self._add_part(f"{kind} {object_name(function)!r}{where}", function)

    # -- values ---------------------------------------------------------------------------------------------------

    def value(self, value: Any) -> str:
        """A digest of any object."""
        kind = type(value)
        if value is None or kind in (bool, int, float, complex, str, bytes):
            return identity.digest(kind.__name__.encode(), repr(value).encode())
        if value is Ellipsis or value is NotImplemented:
            return identity.digest(repr(value).encode())
        label = self._labels.get(id(value))
        if label is not None:
            return label
        if id(value) in self._open:
            return identity.digest(b"above", str(len(self._open) - self._open[id(value)]).encode())
        self._open[id(value)] = len(self._open)
        self._keep.append(value)
        try:
            label = self._digest(value)
        finally:
            del self._open[id(value)]
        return self._labels.setdefault(id(value), label)

    def _digest(self, value: Any) -> str:
        kind = type(value)  # classes that derive from these may have more than their entries
        if kind in (list, tuple):
            return self._all(kind.__name__, *value)
        if kind in (set, frozenset):
            return identity.digest(kind.__name__.encode(), *sorted(self.value(v).encode() for v in value))
        if kind is dict:
            return self._all("dict", *(part for pair in value.items() for part in pair))
        for kinds, digest in self._ways():
            if isinstance(value, kinds):
                return digest(value)
        return self._object(value)

    def _ways(self) -> tuple[tuple[Any, Callable[[Any], str]], ...]:
        return (
            (types.FunctionType, self._function),
            (types.MethodType, lambda v: self._all("method", v.__func__, v.__self__)),
            (types.ModuleType, self._module),
            (types.CodeType, self._code),
            (type, self._class),
            (functools.partial, lambda v: self._all("partial", v.func, v.args, v.keywords)),
            ((staticmethod, classmethod), lambda v: self._all(type(v).__name__, v.__func__)),
            (property, lambda v: self._all("property", v.fget, v.fset, v.fdel)),
            ((types.BuiltinFunctionType, types.MethodWrapperType), self._builtin),
            (np.ndarray, self._array),
            (np.generic, lambda v: identity.digest(v.dtype.str.encode(), v.tobytes())),
            (np.dtype, lambda v: identity.digest(b"dtype", v.str.encode())),
            ((bytearray, memoryview), lambda v: identity.digest(type(v).__name__.encode(), bytes(v))),
        )

    def _all(self, kind: str, *values: Any) -> str:
        return identity.digest(kind.encode(), *(self.value(value).encode() for value in values))

    def _array(self, value: np.ndarray) -> str:
        head = f"array {value.dtype.descr if value.dtype.names else value.dtype.str} {value.shape}"
        if value.dtype.hasobject:
            return self._all(head, *value.ravel().tolist())
        return identity.digest(head.encode(), np.ascontiguousarray(value).tobytes())

    def _builtin(self, value: Any) -> str:
        owner = getattr(value, "__self__", None)
        name = f"{getattr(value, '__module__', None)}.{value.__qualname__}"
        if owner is None or isinstance(owner, types.ModuleType):
            return identity.digest(name.encode())
        return self._all(value.__name__, owner)

    def _object(self, value: Any) -> str:
        """By its own identity, what it wraps, or what it would be pickled as; else by its type."""
        kind = type(value)
        content = getattr(kind, "content", None)
        if kind.__module__.partition(".")[0] == "linkwise" and callable(content):
            return self._all(kind.__qualname__, content(value))
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:
            return self._all(kind.__qualname__, wrapped)
        head = f"{kind.__module__}.{kind.__qualname__}"
        methods = self.value(kind)
        with contextlib.suppress(Exception):  # it cannot be taken apart
            return self._all(head, kind, *_reduction_of(value))
        return identity.digest(head.encode(), methods.encode())

    # -- code -----------------------------------------------------------------------------------------------------

    def _function(self, function: types.FunctionType) -> str:
        module = function.__module__ or ""
        if not is_project(module):
            name = f"{module}.{function.__qualname__}"
            if "<locals>" not in name:
                return identity.digest(name.encode())
            return self._all(
                name, *self._cells(function).values()
            )  # made by a function, for what it was given
        where = _file_label(module, function.__code__.co_filename)
        label = self._label(function, f"function {function.__qualname__!r} in {where}")
        self.parts[label] = self._all(
            "function",
            function.__code__,
            function.__defaults__,
            function.__kwdefaults__,
            {name: value for name, value in vars(function).items() if name != "__wrapped__"},
        )
        for name, value in self._cells(function).items():
            self._add_part(f"{name!r} in the closure of {label}", value)
        self._add_globals(function, label)
        if module != "__main__":
            self._file(module)
        return label

    def _cells(self, function: types.FunctionType) -> dict[str, Any]:
        """What a function has in its closure."""
        closure = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # an empty cell
                closure[name] = cell.cell_contents
        return closure

    def _add_part(self, label: str, value: Any) -> None:
        """A value that gets a part of its own, unless it is something that has one."""
        token = self.value(value)
        if token not in self._given and not isinstance(value, types.ModuleType):
            self.parts[label] = token

    def _add_globals(self, function: types.FunctionType, label: str) -> None:
        """The globals and modules that the code names, and what it takes from modules of the project."""
        known = function.__globals__
        for code in _codes_in(function.__code__):
            modules: list[types.ModuleType] = []
            package = ""
            for step in dis.get_instructions(code):
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in known:
                    value = known[step.argval]
                    if isinstance(value, types.ModuleType):
                        modules.append(value)
                    self._add_part(f"global {step.argval!r} of {label}", value)
                elif step.opname == "IMPORT_NAME":
                    self._add_module(package := step.argval)
                elif step.opname == "IMPORT_FROM":
                    self._add_module(f"{package}.{step.argval}")
            for module in modules:
                if is_project(module.__name__):
                    for name in code.co_names:
                        if name in vars(module):
                            self._add_part(
                                f"{name!r} in {_file_label(module.__name__, '')}", vars(module)[name]
                            )

    def _code(self, code: types.CodeType) -> str:
        """Without the names of files and numbers of lines."""
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        jumps = getattr(code, "co_exceptiontable", b"")
        return self._all("code", code.co_code, jumps, counts, names, code.co_consts)

    def _class(self, kind: type) -> str:
        if not is_project(kind.__module__):
            return identity.digest(f"{kind.__module__}.{kind.__qualname__}".encode())
        where = _file_label(kind.__module__, "")
        label = self._label(kind, f"class {kind.__qualname__!r} in {where}")
        own = {name: value for name, value in vars(kind).items() if name not in _OF_A_CLASS}
        self.parts[label] = self._all("class", kind.__bases__, {k: v for k, v in own.items() if not _slot(v)})
        if kind.__module__ != "__main__":
            self._file(kind.__module__)
        return label

    def _label(self, value: Any, text: str) -> str:
        """A label for an object; several of the same name are numbered in the order in which they are met."""
        label, number = text, 1
        while label in self.parts or label in self._given:
            number += 1
            label = f"{text} ({number})"
        self._labels[id(value)] = label
        self._given.add(label)
        return label

    # -- modules and files ----------------------------------------------------------------------------------------

    def _module(self, module: types.ModuleType) -> str:
        self._add_module(module.__name__)
        return identity.digest(b"module", module.__name__.encode())

    def _add_module(self, name: str) -> None:
        """The file of a module of the project, those of the packages around it, and what they import."""
        for known in _with_packages(name):
            if is_project(known) and known != "__main__":
                self._file(known)

    def _file(self, module: str) -> None:
        path = _origin(module)
        label = f"file {_file_label(module, '')}"
        if path is None or label in self.parts or not is_project(module):
            return
        try:
            data = path.read_bytes()
        except OSError:
            return
        self.parts[label] = identity.digest(data)
        if path.suffix != ".py":
            return
        with contextlib.suppress(SyntaxError, ValueError):
            tree = ast.parse(data)
            compiled = compile(data, "", "exec", dont_inherit=True)
            self.parts[label] = self.value(compiled)
            for name in _imports(tree, module, path.name == "__init__.py"):
                self._add_module(name)

    def _add_installed_package(self, package: str) -> None:
        """All code of the installed package that a function comes from: its version may never change."""
        path = _origin(package)
        if path is None or not set(path.parts) & set(_INSTALLED) or package == "linkwise":
            return
        if path.name == "__init__.py":
            files = dict(identity.files_below(path.parent, endings=(".py", ".so")))
        else:
            files = dict(identity.files_below(path.parent, endings=(path.name,)))
        self.parts[f"installed package {package!r}"] = identity.tree_digest(files)


# -- what belongs to the project --------------------------------------------------------------------------------------


@functools.cache
def _standard() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(Path(paths[key]).resolve() for key in ("stdlib", "platstdlib"))


def is_project(module: str) -> bool:
    """Whether a module is neither of the standard library nor an installed package nor Linkwise."""
    if module == "__main__":
        return True
    if module.partition(".")[0] in {"linkwise", *sys.builtin_module_names}:
        return False
    path = _origin(module)
    if path is None or set(path.parts) & set(_INSTALLED):
        return False
    return not any(path.is_relative_to(folder) for folder in _standard())


def _origin(module: str) -> Path | None:
    """The file of a module; None where there is none."""
    if not module:
        return None
    loaded = sys.modules.get(module)
    name = getattr(loaded, "__file__", None)
    if loaded is None:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, AttributeError, ValueError, TypeError):
            return None
        name = spec.origin if spec is not None and spec.has_location else None
    return Path(name).resolve() if name else None


def _file_label(module: str, filename: str) -> str:
    """How a file is named: by its module, so that it does not matter in which folder a project is."""
    if module == "__main__":
        return Path(filename).name if filename.endswith(".py") else "__main__"
    path = _origin(module)
    if path is None:
        return f"module {module}"
    if path.stem == "__init__":
        return f"{module.replace('.', '/')}/{path.name}"
    return "/".join((*module.split(".")[:-1], path.name))


def _with_packages(name: str) -> Iterator[str]:
    parts_of_name = name.split(".")
    for length in range(1, len(parts_of_name) + 1):
        yield ".".join(parts_of_name[:length])


def _imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """Modules that a file imports anywhere in its text; also those named in ``import_module("name")``."""
    around = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for name in _absolute(node.module or "", node.level, around):
                yield name
                yield from (f"{name}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            name = node.args[0].value
            if called in ("import_module", "__import__") and isinstance(name, str) and name.strip("."):
                yield name.lstrip(".")


def _absolute(name: str, level: int, around: str) -> Iterator[str]:
    """The full name of a module that is imported, relative to the package ``around`` where there are dots."""
    if level:
        package = around.split(".")
        base = ".".join(package[: len(package) - level + 1])
        name = f"{base}.{name}" if name else base
    if name:
        yield name


# -- small things -----------------------------------------------------------------------------------------------------


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes_in(constant)


def _reduction_of(value: Any) -> tuple:
    """What an object would be pickled as, without pickling what is inside."""
    pickled = value.__reduce_ex__(4)
    if isinstance(pickled, str):
        return (pickled,)
    state = list(pickled)
    for k in (3, 4):  # items of lists and dictionaries come as iterators
        if len(state) > k and state[k] is not None:
            state[k] = list(state[k])
    return tuple(state)


def _slot(value: Any) -> bool:
    return inspect.ismemberdescriptor(value) or inspect.isgetsetdescriptor(value)


def object_name(value: Any) -> str:
    return str(getattr(value, "name", None) or getattr(value, "__qualname__", type(value).__name__))
