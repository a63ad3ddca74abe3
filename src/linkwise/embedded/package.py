"""A C package: the files of several functions of one robot, and a folder that has them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from linkwise.arguments.flags import flag
from linkwise.compiler.emit.clike import WORDS, SpellingError, spelt
from linkwise.compiler.runtime.host import is_x86
from linkwise.core import foreign
from linkwise.core.foreign import Code
from linkwise.core.once import once
from linkwise.embedded import counting, example, header, online_move, readme, rust, selftest, stack
from linkwise.embedded.coded import Coded
from linkwise.embedded.entries import Options, entries
from linkwise.embedded.package_files import support_file
from linkwise.embedded.processors import PROCESSORS
from linkwise.embedded.reference import states
from linkwise.errors import LinkwiseError
from linkwise.files import outputs
from linkwise.realtime import TwoRatePrograms
from linkwise.robot.robot import Robot
from linkwise.version import __version__

MANIFEST = "linkwise.json"
_CHECK_FILES = ("cortex_m.c", "cortex_m.ld", "cortex_r.c", "cortex_r.ld", "misra.txt")
_HEADERS = (
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdarg stdbool"
)
_TAKEN = {
    *(
        *_HEADERS.split(),
        "stdint",
        "stdio",
        "stdlib",
        "string",
        "tgmath",
        "time",
        "wchar",
        "wctype",
        "lw_fma",
    ),
    *(
        *WORDS,
        *rust.KEYWORDS,
        "std",
        "core",
        "alloc",
        "test",
        "main",
        "check",
        "array",
        "span",
        "all",
        "clean",
    ),
}
_BUILDS = ("build/", "rust/target/", "rust/Cargo.lock")  # what building makes; not contents of a package


class PackageError(LinkwiseError, ValueError):
    """A package cannot be made or written; the message says why."""


class Package:
    """Several functions of one robot as C, with header, C++ wrapper, self-test and files to build them.

    Args:
        robot: the robot.
        names: functions, controllers and other entries, see ``entries``.
        options: choices.
        prefix: how all names begin; by default the robot's name.
        fma: whether fused multiply-adds are used.
        constant_time: whether selects are written so that no branch depends on data.
        count: reference states of every function.
    """

    def __init__(
        self,
        robot: Robot,
        names: Iterable[str],
        options: Options | None = None,
        *,
        prefix: str | None = None,
        fma: bool = True,
        constant_time: bool = False,
        count: int = 32,
    ):
        self.robot, self.options = robot, Options() if options is None else options
        self.prefix = _prefix(robot.name) if prefix is None else prefix
        if prefix is not None and spelt(prefix) != prefix:
            raise SpellingError(f"{prefix!r} cannot begin the names of functions in C")
        self.fma, self.constant_time, self.count = (
            flag("fma", fma),
            flag("constant_time", constant_time),
            count,
        )
        names = tuple(dict.fromkeys(names))
        found = entries(robot, names, replace(self.options, constant_time=self.constant_time))
        self._runtime = TwoRatePrograms(robot, period=self.options.period) if "two_rate" in names else None
        if not found:
            raise PackageError("a package needs the name of a function or a controller, got none")
        self.functions: Sequence[Coded] = [
            Coded(e, f"{self.prefix}_{e.name}", f"{self.prefix}.h", self.fma, self.constant_time)
            for e in found
        ]

    def __repr__(self) -> str:
        return f"<Package {self.prefix}: {', '.join(f.entry.name for f in self.functions)}>"

    @property
    def about(self) -> str:
        kinds = [self.options.dtype, *(["constant time"] if self.constant_time else [])]
        kinds += [] if self.fma else ["without fused multiply-adds"]
        return f"{self.robot.name}: C code by Linkwise {__version__} ({', '.join(kinds)})"

    @once
    def files(self) -> dict[str, str]:
        """The text of every file by its path in the package."""
        functions, prefix = self.functions, self.prefix
        sources = {f"{f.name}.c": f.text for f in functions}
        if self.robot.nq == self.robot.dof and self.robot.dof:
            sources[f"{prefix}_limits.c"] = header.limits(self.robot, prefix, functions[0].real)
        sources |= {f"{f.name}_defaults.c": header.defaults(f, prefix) for f in functions if f.entry.settings}
        sources |= {f"{f.name}_tables.c": header.tables(f, prefix) for f in functions if f.entry.tables}
        if moves := online_move.functions_of(functions):
            sources[f"{prefix}_{online_move.NAME}.c"] = online_move.source(prefix, moves)
        own = {"lw_fma.h": support_file("lw_fma.h")}
        unmeasured = header.header(self.robot, prefix, functions, {}, "", self.about)
        flags = ("-O2", "-mfma") if is_x86() else ("-O2",)
        measured = stack.measured({**sources, **own, f"{prefix}.h": unmeasured}, flags=flags)
        measured_by = f"{stack.version()}, {' '.join(flags)}" if measured else ""
        checked = [(f, states(self.robot, f.entry, self.count, self.fma)) for f in functions]
        found = {
            f"include/{prefix}.h": header.header(
                self.robot, prefix, functions, measured, measured_by, self.about
            ),
            f"include/{prefix}.hpp": header.wrapper(prefix, functions, self.about),
            **{f"src/{name}": text for name, text in {**sources, **own}.items()},
            "check/check.c": selftest.program(prefix, checked),
            "check/count.c": counting.program(prefix, functions),
            **{f"check/{name}": support_file(name) for name in _CHECK_FILES},
            ".clang-tidy": support_file("clang-tidy"),
            "Makefile": self._filled("Makefile.in", sources, " "),
            **rust.crate(self.robot, prefix, functions, sources, self.about, self.constant_time),
            "CMakeLists.txt": self._filled("CMakeLists.txt.in", sources, "\n    "),
            f"{prefix}.pc.in": self._filled("package.pc.in", sources, " "),
            "README.md": readme.text(self.robot, prefix, functions, self.about, self.options),
            "example.c": example.program(self.robot, prefix, functions, self.options),
        }
        if self._runtime is not None:
            found |= {
                f"posix/{name}": text for name, text in self._runtime.files(f"{prefix}_two_rate").items()
            }
        return self.with_manifest(found)

    def with_manifest(self, found: dict[str, str]) -> dict[str, str]:
        """The files and the list of their digests."""
        digests = {name: digest(text) for name, text in found.items()}
        listed = {"linkwise": __version__, "robot": self.robot.name, "files": digests}
        return {**found, MANIFEST: foreign.json_text(listed, indent=1) + "\n"}

    def _filled(self, name: str, sources: Iterable[str], separator: str) -> str:
        text = support_file(name)
        values = {
            "prefix": Code(self.prefix),
            "sources": Code(separator.join(f"src/{source}" for source in sources)),
            "version": Code(__version__.split("+")[0].split(".dev")[0]),
            "about": self.about,
            "processors": Code("\n".join(processor.rules() for processor in PROCESSORS)),
            "goals": Code(" ".join(f"check-{processor.name}" for processor in PROCESSORS)),
            "no_errno": Code(" -fno-math-errno" if self.constant_time else ""),
        }
        emitter = foreign.pkg_config if name.endswith(".pc.in") else foreign.cmake_comment
        return foreign.fill(text, values, emitter)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> list[str]:
        """Write the folder; the paths of its files.

        It appears whole: it is made beside its place and renamed. A package that was made before and not changed since
        is replaced.

        Args:
            path: the folder.
            force: whether files are also written into a folder with other contents, which stay.

        Raises:
            OutputError: it cannot be written, or has other contents.
        """
        target, force = Path(path), flag("force", force)
        check_folder(target, force=force)
        files = self.files
        aside = Path(tempfile.mkdtemp(prefix=outputs.ASIDE, dir=target.absolute().parent))
        try:
            os.chmod(aside, 0o777 & ~_umask())
            for name, text in files.items():
                place = aside / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
            if target.is_dir() and _others(target):
                for name in files:
                    (target / name).parent.mkdir(parents=True, exist_ok=True)
                    os.replace(aside / name, target / name)
            else:
                _exchange(aside, target)
        except OSError as error:
            raise outputs.OutputError(f"{target}: {error.strerror or error}") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return [str(target / name) for name in files]


def _prefix(name: str) -> str:
    """How names begin by default: the robot's name, unless a language or a header of C has it for itself."""
    found = spelt(name).lower()
    return f"{found}_robot" if found in _TAKEN else found


def check_folder(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise where a package cannot be written, before any work is done for it.

    Args:
        path: the folder.
        force: whether other contents are no reason.
    """
    target = Path(path)
    if not os.path.isdir(parent := target.absolute().parent):
        raise outputs.OutputError(f"{target}: no such folder as {parent}")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise outputs.OutputError(f"{target}: no permission to write in the folder {parent}")
    if target.exists() and not target.is_dir():
        raise outputs.OutputError(f"{target}: a file; a package is a folder")
    if target.is_dir() and not force and (others := _others(target)):
        raise outputs.OutputError(
            f"{target}: it has contents that are not of an unchanged package ({others[0]}); choose another folder, or "
            "--force to write into it"
        )


def _others(folder: Path) -> list[str]:
    """Files in a folder that are not those of a package as it was written."""
    try:
        known = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        known = {}
    found = []
    for place in sorted(folder.rglob("*")):
        name = place.relative_to(folder).as_posix()
        if (
            name.startswith(_BUILDS)
            or (name == MANIFEST and known)
            or (place.is_dir() and not place.is_symlink())
        ):
            continue
        if place.is_symlink() or not isinstance(known, dict) or known.get(name) != _digest_of(place):
            found.append(name)
    return found


def _digest_of(place: Path) -> str | None:
    try:
        return hashlib.sha256(place.read_bytes()).hexdigest()
    except OSError:
        return None


def _exchange(new: Path, target: Path) -> None:
    """Put a folder in its place; one that was there goes."""
    if not target.is_dir():
        os.rename(new, target)
        return
    target = target.resolve()
    old = Path(tempfile.mkdtemp(prefix=outputs.ASIDE, dir=target.parent))
    os.rename(target, old / "old")
    try:
        os.rename(new, target)
    except OSError:
        os.rename(old / "old", target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
