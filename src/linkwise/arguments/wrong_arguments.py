"""Which argument of a failed call does not fit its annotation, and what was expected instead."""

from __future__ import annotations

import ast
import importlib
import inspect
import numbers
import os
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from linkwise.errors import ArgumentError, DtypeError, LinkwiseError, suggest

_HERE = os.path.dirname(os.path.dirname(__file__))
_INSTALLED = tuple(
    {sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), os.path.dirname(np.__path__[0])}
)
_ARRAYS = ("ndarray", "Array", "ArrayLike", "Numbers", "Values")
_LISTS = ("Sequence", "Iterable", "list", "tuple", "frozenset", "set")
_MAPPINGS = ("Mapping", "dict")
_WORDS = {
    "str": "text",
    "float": "a number",
    "int": "a whole number",
    "bool": "True or False",
    "Robot": "a robot (linkwise.load gives one)",
    "Model": "a robot (linkwise.load gives one)",
    "Log": "a recording (linkwise.identify.read_log gives one)",
    "Trajectory": "a motion of linkwise.motion",
    "Controller": "a controller of linkwise.control",
    "PathLike": "a path",
    "Path": "a path",
    "Callable": "a function",
    "Generator": "a numpy.random.Generator",
    "None": "None",
    **dict.fromkeys(_ARRAYS, "numbers"),
    **dict.fromkeys(_MAPPINGS, "a dictionary"),
    **dict.fromkeys(_LISTS, "a list"),
}
BUG = "This is a bug in Linkwise, not a wrong argument; please report it with this traceback. The call was"
_INSTEAD = {  # options of other libraries that no argument of ours has
    "dtype": "results have the precision of the inputs: give float32 arrays for float32",
    "device": "results are on the device of the inputs: give arrays of CuPy, PyTorch or JAX",
}
_PLURALS = {"str": "names", "float": "numbers", "int": "whole numbers", "PathLike": "paths"}


def explanation(
    function: Callable[..., Any],
    label: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    error: Exception,
) -> LinkwiseError | None:
    """A better error for a failed call; None where the arguments fit or the error names one already.

    Args:
        function: what was called.
        label: its name in messages.
        arguments: positional arguments of the call.
        options: named arguments of the call.
        error: what it raised.
    """
    signature = inspect.signature(function)
    try:
        given = signature.bind(*arguments, **options).arguments
    except TypeError as refusal:
        return DtypeError(_unbound(function, label, signature, options, str(refusal)))
    certain = not isinstance(error, (ValueError, OverflowError))  # a value may be wrong though its type fits
    certain = certain and not any(each.kind is each.VAR_POSITIONAL for each in signature.parameters.values())
    names_it = isinstance(error, LinkwiseError) or _is_ours(error, [label.rpartition(".")[2], *given])
    for name, value in given.items():
        parameter = signature.parameters[name]
        if name == "self" or value is parameter.default:
            continue
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        annotation = None if parameter.annotation is parameter.empty else _parsed(parameter.annotation)
        if annotation is None or _fits(value, annotation, function):
            certain = certain and annotation is not None and _decides(value, annotation, function, error)
            continue
        shown = reprlib.repr(value)
        text_for_list = isinstance(value, (str, bytes)) and _named(annotation) & {*_LISTS, *_MAPPINGS}
        if names_it and (not text_for_list or shown in str(error)):
            continue
        said = _description(function, name)
        what = _words(annotation)
        what += f" ({said})" if said and "(" not in what else ""
        return DtypeError(f"{label}: {name}: expected {what}, got {shown}")
    if isinstance(error, LinkwiseError) or _from_users(error):
        return None
    if names_it:
        return (DtypeError if isinstance(error, TypeError) else ArgumentError)(str(error))
    shown = ", ".join(f"{name}: {_shown(value)}" for name, value in given.items() if name != "self")
    if certain:
        error.add_note(f"{BUG} {label} ({shown})")
        return None
    kind = DtypeError if isinstance(error, (TypeError, AttributeError)) else ArgumentError
    return kind(f"{label}: {type(error).__name__}: {' '.join(str(error).split())} (given {shown})")


def _decides(value: Any, annotation: ast.expr, function: Callable[..., Any], error: Exception) -> bool:
    """Whether a value that fits this annotation cannot have caused an error: numbers may have a wrong shape."""
    for name, part in ((_name(part), part) for part in _choices(annotation)):
        if name in _ARRAYS:
            if isinstance(error, IndexError) or isinstance(value, Mapping):
                return False
        elif name in _LISTS or name in _MAPPINGS:
            if not isinstance(value, str):
                return False
        elif name not in _WORDS:
            meant = _resolved(part, function)
            if not isinstance(meant, type) or meant in (Any, object):
                return False
    return True


def is_bug(error: BaseException) -> bool:
    """Whether an error was found to be a bug of the library."""
    return any(note.startswith(BUG) for note in getattr(error, "__notes__", ()))


def _shown(value: Any) -> str:
    """An argument in a few words: arrays by their shape."""
    try:
        shape = np.shape(value)
    except ValueError:  # rows of different lengths
        return reprlib.repr(value)
    return f"shape {shape}" if shape and not isinstance(value, str) else reprlib.repr(value)


def _from_users(error: Exception) -> bool:
    """Whether a function that the user gave has raised it: such errors stay as they are."""
    last = error.__traceback__
    while last is not None:
        file = last.tb_frame.f_code.co_filename
        if not file.startswith((_HERE, *_INSTALLED, "<")) and not file.endswith(".pyx"):
            return True
        last = last.tb_next
    return False


def _is_ours(error: Exception, names: list[str]) -> bool:
    """Whether a ValueError or TypeError was raised by Linkwise on purpose: it begins with a name, or says what was
    expected."""
    head, colon, rest = str(error).partition(": ")
    if type(error) not in (ValueError, TypeError) or not colon or not (head in names or "expected" in rest):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and str(last.tb_frame.f_globals.get("__name__", "")).startswith("linkwise")


def _unbound(
    function: Callable[..., Any], label: str, signature: inspect.Signature, options: dict[str, Any], said: str
) -> str:
    """What is wrong with a call that Python refuses: an argument that is missing, unknown or too many."""
    names = [name for name in signature.parameters if name != "self"]
    unknown = [name for name in options if name not in names]
    if unknown:
        return (
            f"{label}: no argument {unknown[0]!r}; {_INSTEAD.get(unknown[0]) or suggest(unknown[0], names)}"
        )
    missing = re.search(r"missing a required (?:\S+ )?argument: '(\w+)'", said)
    if missing:
        if label == "Robot":
            return "Robot: use linkwise.load('panda') or of a file; a robot is made of name, links and joints"
        text = _description(function, missing.group(1))
        return f"{label}: the argument {missing.group(1)!r} is missing{f': {text}' if text else ''}"
    return f"{label}: {said}; arguments: {', '.join(names)}"


def _parsed(annotation: Any) -> ast.expr | None:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _named(annotation: ast.expr) -> set[str]:
    """Names in an annotation, without those in brackets."""
    return {_name(part) for part in _choices(annotation)}


def _choices(annotation: ast.expr) -> list[ast.expr]:
    """The parts of a union."""
    if isinstance(annotation, ast.BinOp):
        return [*_choices(annotation.left), *_choices(annotation.right)]
    return [annotation]


def _name(part: ast.expr) -> str:
    """``PathLike`` of ``os.PathLike[str]``."""
    if isinstance(part, ast.Subscript):
        return _name(part.value)
    if isinstance(part, ast.Attribute):
        return part.attr
    return part.id if isinstance(part, ast.Name) else "None" if isinstance(part, ast.Constant) else ""


def _content(part: ast.expr) -> ast.expr | None:
    """What a list contains: ``str`` of ``Sequence[str]``; None where that is not one thing."""
    if not isinstance(part, ast.Subscript):
        return None
    inside = part.slice
    if isinstance(inside, ast.Tuple):
        few = len(inside.elts) == 2 and isinstance(inside.elts[1], ast.Constant)  # tuple[str, ...]
        return inside.elts[0] if few else None
    return inside


def _fits(value: Any, annotation: ast.expr, function: Callable[..., Any]) -> bool:
    return any(_fits_one(value, part, function) for part in _choices(annotation))


def _fits_one(value: Any, part: ast.expr, function: Callable[..., Any]) -> bool:
    name = _name(part)
    if name in _LISTS:
        content = _content(part)
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            return False
        if isinstance(value, Mapping) and name != "Iterable":
            return False
        if content is None or not isinstance(value, (list, tuple, set, frozenset, np.ndarray, Mapping)):
            return True
        return all(_fits(each, content, function) for each in value)
    if name in _MAPPINGS:
        return isinstance(value, Mapping)
    if name in _ARRAYS:
        return _numeric(value)
    checks: dict[str, Callable[[Any], bool]] = {
        "None": lambda v: v is None,
        "str": lambda v: isinstance(v, str),
        "bool": lambda v: isinstance(v, (bool, np.bool_)),
        "int": lambda v: isinstance(v, numbers.Integral) and not isinstance(v, bool),
        "float": lambda v: _numeric(v) and np.ndim(v) == 0 and not isinstance(v, Mapping),
        "PathLike": lambda v: isinstance(v, os.PathLike),
        "Path": lambda v: isinstance(v, (str, os.PathLike)),
        "Callable": callable,
    }
    if name in checks:
        return checks[name](value)
    wanted = _resolved(part, function)
    return wanted is Any or not isinstance(wanted, type) or isinstance(value, wanted)


def _numeric(value: Any) -> bool:
    """Whether it is numbers, or an array or a table of another library."""
    if isinstance(value, (str, bytes)) or value is None:
        return False
    if isinstance(value, Mapping) or hasattr(value, "__array__") or hasattr(value, "columns"):
        return not isinstance(value, np.ndarray) or value.dtype.kind in "biufV"
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except (ValueError, TypeError):
        return False


def _resolved(part: ast.expr, function: Callable[..., Any]) -> Any:
    """What a name in an annotation means, also one that is imported for type checkers only; None if unknown."""
    if isinstance(part, ast.Subscript):
        return _resolved(part.value, function)
    if isinstance(part, ast.Attribute):
        return getattr(_resolved(part.value, function), part.attr, None)
    space, name = getattr(inspect.unwrap(function), "__globals__", {}), _name(part)
    if name in space:
        return space[name]
    try:
        tree = ast.parse(inspect.getsource(sys.modules[space["__name__"]]))
        for line in ast.walk(tree):
            if isinstance(line, ast.ImportFrom) and any(alias.name == name for alias in line.names):
                return getattr(importlib.import_module(str(line.module)), name, None)
    except (OSError, SyntaxError, ImportError, KeyError, TypeError):
        pass
    return None


def _words(annotation: ast.expr) -> str:
    """What is expected, in words."""
    said = []
    for part in _choices(annotation):
        name, content = _name(part), _content(part)
        plural = _PLURALS.get(_name(content)) if content is not None and name in _LISTS else None
        if name == "str" and "PathLike" in _named(annotation):
            continue
        said.append(f"a list of {plural}" if plural else _WORDS.get(name, name))
    return " or ".join(dict.fromkeys(filter(None, said)))


def _description(function: Callable[..., Any], argument: str) -> str:
    """The first sentence about an argument in the docstring of a function, or of the class of a constructor."""
    written = inspect.unwrap(function)
    texts = [inspect.getdoc(written) or ""]
    if written.__name__ == "__init__":
        owner = getattr(sys.modules.get(written.__module__), written.__qualname__.split(".")[0], None)
        texts.append(inspect.getdoc(owner) or "")
    for text in texts:
        found = re.search(
            rf"^( +){argument}: (.*(?:\n\1 +.*)*)", text.partition("Args:\n")[2], flags=re.MULTILINE
        )
        if found:
            sentence = " ".join(found.group(2).split()).replace("``", "")
            return re.split(r"(?<=[^A-Z. ]{2})[.;](?: |$)", sentence)[0].rstrip(".")
    return ""
