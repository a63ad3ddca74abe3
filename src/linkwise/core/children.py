"""Python processes that the package starts: one function builds their command, and decides where they find modules.

``python -c`` and ``python -m`` put the current folder first on ``sys.path``, so that a file ``json.py`` that somebody
left there is executed. A child started here imports nothing from the folder it is started in. It imports the same
``linkwise`` as this process (also from a source folder, or where another version is installed), and finds other
modules where this process finds them. No other place of the package starts Python; ``tests/test_children.py`` checks
it.
"""

import os
import sys  # and no others at this point, not even __future__: see ``_leave_current_folder``

_START = """\
import importlib.util, json, os, sys
sys.path[:], package, sys.argv[1:] = json.loads(sys.argv[1])
class Here:
    @staticmethod
    def find_spec(name, path=None, target=None):
        start = os.path.join(package, "__init__.py")
        if name == "linkwise" and os.path.isfile(start):
            return importlib.util.spec_from_file_location(name, start, submodule_search_locations=[package])
sys.meta_path.insert(0, Here)
"""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_HOME = os.path.dirname(_PACKAGE)
_SAFE = "PYTHONSAFEPATH"


def can_start() -> bool:
    """Whether Python processes can be started: an embedded or frozen interpreter has no command of its own."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def command(program: str, *arguments: str, current_folder: bool = False) -> list[str]:
    """The command of a Python process; run it with ``environment()``.

    Args:
        program: its text, which imports what it needs of ``linkwise``.
        arguments: ``sys.argv[1:]`` of the program.
        current_folder: also search the current folder where this process does. Only for functions of the user,
            whose modules may be there; what this process imports from there runs here already.

    Returns:
        The words of the command.
    """
    import json

    path = [os.path.abspath(str(each)) for each in sys.path] if current_folder else search_path()
    isolated = "-I" if sys.flags.isolated else "-P"
    return [sys.executable, isolated, "-c", _START + program, json.dumps([path, _PACKAGE, arguments])]


def search_path() -> list[str]:
    """``sys.path`` without the current folder, and without relative folders, whose meaning changes with it.

    The folder that this package was imported from stays: whoever can write to it can change the package itself.
    """
    return [os.path.abspath(folder) for folder in map(str, sys.path) if _is_elsewhere(folder)]


def environment(more: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: that of this process, with the folders of PYTHONPATH that ``search_path`` has too.

    Args:
        more: further variables.

    Returns:
        All variables.
    """
    given = {**os.environ, **(more or {})}
    folders = [each for each in given.pop("PYTHONPATH", "").split(os.pathsep) if _is_elsewhere(each)]
    return {**given, "PYTHONPATH": os.pathsep.join(folders)} if folders else given


class OtherPackages:
    """Python processes that other packages start inside a block search the current folder as little as ours.

    ``import mujoco``, for example, starts ``python -c "import ctypes …"`` to find a library.
    """

    def __enter__(self) -> None:
        self._before = os.environ.get(_SAFE)
        os.environ[_SAFE] = "1"

    def __exit__(self, *_: object) -> None:
        os.environ.pop(_SAFE, None)
        if self._before is not None:
            os.environ[_SAFE] = self._before


def _is_elsewhere(folder: str) -> bool:
    outside = os.path.isabs(folder) and not _are_same(folder, os.curdir)
    return outside or _are_same(folder or os.curdir, _HOME)


def _are_same(folder: str, other: str) -> bool:
    try:
        return os.path.samefile(folder, other)
    except OSError:  # one of them does not exist
        return False


def _leave_current_folder() -> None:
    """``python -m linkwise`` imports nothing from the current folder either, from here on.

    Python has put that folder first on ``sys.path`` by then; ``sys.argv[0]`` is "-m" only while it looks for the module
    that was named. Where the package itself is in that folder, it stays.
    """
    if sys.argv[:1] == ["-m"] and not sys.flags.safe_path and not _are_same(sys.path[0] or os.curdir, _HOME):
        del sys.path[0]


_leave_current_folder()
