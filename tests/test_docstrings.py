"""Public functions explain their arguments: where there is more than one, a section ``Args`` names all of them."""

import inspect
import re

from linkwise.arguments.described import SHARED, described
from public_functions import public_functions

EXCEPTIONS = {
    "gpu.Graph",  # made by ``graph``; users call it and read its attributes
}


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


CASES = [case for case in public_functions() if case.written and len(parameters(case.function)) > 1]


def test_every_argument_is_explained():
    for case in CASES:
        missing = set(parameters(case.function)).difference(*map(explained, case.texts))
        if case.label in EXCEPTIONS:
            assert missing, f"{case.label} is no longer an exception"
            continue
        assert not missing, f"{case.label}: Args of its docstring lacks {', '.join(sorted(missing))}"


def test_there_are_cases():
    assert {"Robot.inverse_dynamics", "load", "simulate.simulate", "identify.identify"} <= {
        case.label for case in CASES
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
