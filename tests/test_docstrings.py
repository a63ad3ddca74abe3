"""Public functions explain their arguments: where there is more than one, a section ``Args`` names all of them."""

import importlib
import inspect
import re

import pytest

import linkwise as lw
from linkwise.described import SHARED, described

MODULES = (
    *("compat", "control", "gpu", "identify", "motion", "realtime", "report", "simulate", "view"),
    *("model", "study"),
)
EXCEPTIONS = {
    "gpu.Graph",  # made by ``graph``; users call it and read its attributes
}


def public():
    """(name, docstrings, function) of what the package and its parts export: functions, methods and constructors.

    Docstrings of base classes count: an override takes the arguments of what it overrides. Dataclasses explain their
    fields.
    """
    seen = set()
    for module in (lw, *(importlib.import_module(f"linkwise.{name}") for name in MODULES)):
        prefix = module.__name__.removeprefix("linkwise").removeprefix(".")
        for name in getattr(module, "__all__", None) or _own(module):
            value = getattr(module, name)
            label = f"{prefix}.{name}" if prefix else name
            if inspect.isfunction(value):
                yield label, [value.__doc__], value
            elif inspect.isclass(value) and _is_ours(value) and not issubclass(value, Exception):
                for method, function in _methods(value):
                    if function in seen:
                        continue
                    seen.add(function)
                    if method == "__init__":
                        yield label, [base.__doc__ for base in value.__mro__], function
                    else:
                        texts = [getattr(vars(base).get(method), "__doc__", "") for base in value.__mro__]
                        yield f"{label}.{method}", texts, function


def _own(module):
    return [
        n
        for n, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and n[0] != "_"
    ]


def _is_ours(value):
    return value.__module__.startswith("linkwise")


def _methods(owner):
    for name in dir(owner):
        value = inspect.getattr_static(owner, name)
        value = getattr(value, "__func__", getattr(value, "function", value))
        written = name == "__init__" and not hasattr(owner, "__dataclass_fields__")
        if inspect.isfunction(value) and _is_ours(value) and (written or not name.startswith("_")):
            yield name, value


def explained(text: str | None) -> set[str]:
    """Names in the section ``Args``."""
    lines = inspect.cleandoc(text or "").split("\n")
    if "Args:" not in lines:
        return set()
    names = set()
    for line in lines[lines.index("Args:") + 1 :]:
        if line and not line.startswith(" "):
            break
        found = re.match(r"    (\S[^:]*):", line)
        if found:
            names |= {name.strip(" *") for name in found[1].split(",")}
    return names


def parameters(function) -> list[str]:
    return [n for n in inspect.signature(function).parameters if n not in ("self", "cls")]


CASES = [case for case in public() if len(parameters(case[2])) > 1]


@pytest.mark.parametrize(("label", "texts", "function"), CASES, ids=[case[0] for case in CASES])
def test_every_argument_is_explained(label, texts, function):
    missing = set(parameters(function)).difference(*map(explained, texts))
    if label in EXCEPTIONS:
        assert missing, f"{label} is no longer an exception"
        return
    assert not missing, f"{label}: Args of its docstring lacks {', '.join(sorted(missing))}"


def test_there_are_cases():
    assert {"Robot.inverse_dynamics", "load", "simulate.simulate", "identify.identify"} <= {
        case[0] for case in CASES
    }
    assert len(EXCEPTIONS) < 10


def test_shared_descriptions_are_added_once():
    @described(gain="of the law.")
    def function(q, gain):
        """Something."""

    once = function.__doc__
    assert once == f"Something.\n\nArgs:\n    q: {SHARED['q']}\n    gain: of the law."
    assert described(gain="another one.")(function).__doc__ == once
    assert explained(once) == {"q", "gain"}


def test_without_a_description_of_every_argument_nothing_is_added():
    @described()
    def function(q, unheard_of):
        """Something."""

    assert function.__doc__ == "Something."
