"""The errors of the project. All share one base class, so that ``except lw.LinkwiseError`` catches them."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from linkwise.core import foreign
from linkwise.core.other_names import meant, nearest


class LinkwiseError(Exception):
    """Base class of all errors of Linkwise. Messages have names from files: a terminal sees no control characters, and
    not all of a long text."""

    def __str__(self) -> str:
        return _readable(super().__str__())


LONGEST = 4000  # characters of a message


def _readable(message: str) -> str:
    """A message without control characters; the middle of a very long one is left out."""
    if len(message) > LONGEST:
        half = LONGEST // 2
        message = f"{message[:half]} […{len(message) - LONGEST} characters…] {message[-half:]}"
    return foreign.terminal(message)


def first_line(error: BaseException) -> str:
    """The first line of an error of other packages, or the name of its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class ModelError(LinkwiseError, ValueError):
    """A robot or a robot file is wrong; the message names the file, the element and the reason."""


class ArgumentError(LinkwiseError, ValueError):
    """The value of an argument cannot be used; the message names it, what was expected and what was given."""


class ShapeError(LinkwiseError, ValueError):
    """An array has the wrong shape; the message names the argument, the shape expected and the shape given."""


class DtypeError(LinkwiseError, TypeError):
    """An array or an option has a type that cannot be used; the message names the argument, what was expected and what
    was given."""


class UnknownNameError(LinkwiseError, ValueError):
    """A name is not known; the message lists the valid ones."""


class SingularError(LinkwiseError, ArithmeticError):
    """The mass matrix is singular in this configuration; the message names the joint."""


class ConstraintError(LinkwiseError, ArithmeticError):
    """A constraint cannot be met in this state; the message names it."""


class ConvergenceError(LinkwiseError, ArithmeticError):
    """An iteration did not reach its tolerance; the message states the residual."""


class TraceError(LinkwiseError, TypeError):
    """A function cannot be traced with symbols (for example, it branches on one)."""


class ModelWarning(UserWarning):
    """A robot file was read under a documented tolerance, or its inertias are not physically possible."""


class ExportWarning(ModelWarning):
    """A file format cannot hold a term of the robot that was saved: other programs will not see it. The message names
    the file, the joint, the term and its value."""


class SimulationWarning(UserWarning):
    """A simulated motion diverged, or a joint left its range; the message says when and which."""


class SlowWarning(UserWarning):
    """A call runs without compiled code, hundreds of times slower; the message says why and what to do."""


class MissingExtraError(LinkwiseError, ImportError):
    """A package of an extra is not installed; the message says which command installs it."""


def needed(module: str, extra: str) -> ModuleType:
    """A module of an optional package, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"this needs the package {package}: pip install 'linkwise[{extra}]' ({error})"
        ) from None


def suggest(name: str, valid: Iterable[str]) -> str:
    """'did you mean …' when something is close or another library's name for it, and the first thirty valid names."""
    names = list(valid)
    other = meant(str(name), names)
    close = nearest(str(name), names) if other is None else [other]
    listed = ", ".join(names[:30]) + (", …" if len(names) > 30 else "")
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}valid: {listed}"


_PACKAGE = str(Path(__file__).parent)


def warn(message: str, category: type[Warning]) -> None:
    """Warn about the line outside this package that made the call, through however many functions of ours.

    Args:
        message: what is odd, in one line.
        category: the class of the warning.
    """
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(_readable(message), category, stacklevel=level)
