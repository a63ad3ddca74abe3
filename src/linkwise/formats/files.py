"""Robots by name or by path: which reader or writer a file needs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np

from linkwise.errors import ExportWarning, LinkwiseError, ModelError, warn
from linkwise.files import outputs
from linkwise.formats.losses import Loss, losses
from linkwise.formats.xml import MAX_BYTES
from linkwise.model.checks import check_physics
from linkwise.model.model import Model, suggest

READ_ENDINGS = (".urdf", ".xml", ".toml", ".spec")
WRITE_ENDINGS = (".urdf", ".toml", ".xml")

_ROBOTS = "linkwise.model.robots"  # the package with one TOML file for each bundled robot


def bundled_names() -> tuple[str, ...]:
    """Names of the robots that come with Linkwise."""
    return tuple(
        sorted(
            Path(entry.name).stem
            for entry in resources.files(_ROBOTS).iterdir()
            if entry.name.endswith(".toml")
        )
    )


def read(
    source: str | os.PathLike[str],
    *,
    gravity: Sequence[float] | None = None,
    lock: Mapping[str, float] | None = None,
    strict: bool = False,
    mimic: str = "coupled",
    allow: Sequence[str | os.PathLike[str]] = (),
) -> Model:
    """A robot from a bundled name or a file: .urdf, .xml (URDF or MJCF, as its root element says), .toml or
    .spec.

    ``gravity`` [m/s²] in the base frame, shape (3,), replaces the file's; ``lock`` fixes joints at positions
    [rad or m]; ``strict`` makes physically impossible inertias an error instead of a warning; joints that
    ``mimic`` another one have no coordinate of their own ("coupled", unless the file says that they keep it) or
    keep it ("independent"). ``allow`` are folders, besides that of the file, whose files it may name. A bundled name
    goes before a file of the same name: write ``./panda`` for the file.
    """
    data, where, ending = _fetch(source)
    if mimic not in ("coupled", "independent"):
        raise ModelError(f"mimic: expected coupled or independent, got {mimic!r}")
    with _numbers_of(where):
        model = _reader(data, where, ending, [os.fsdecode(folder) for folder in allow])(data, where)
        model = _with_mimics(model, where, mimic == "coupled")
        if gravity is not None:
            model = model.with_gravity(gravity)
        if lock is not None:
            model = model.lock(lock)
        check_physics(model, strict=strict, where=where)
    return model


def save(model: Model, path: str | os.PathLike[str], *, strict: bool = False) -> list[Loss]:
    """Write a robot as .urdf, .toml or .xml (MJCF); the file appears whole or not at all.

    Gives what other programs will not see in the file, with an ``ExportWarning`` for each; with ``strict`` that is an
    error and nothing is written.
    """
    target = _path(path)
    ending = target.suffix.lower()
    if ending == ".urdf":
        from linkwise.formats.urdf.writer import write_urdf as write
    elif ending == ".toml":
        from linkwise.formats.toml.reader import write_toml as write
    elif ending == ".xml":
        from linkwise.formats.mjcf.writer import write_mjcf as write
    else:
        raise ModelError(
            f"{target}: unknown ending {ending!r}; a robot is saved as {', '.join(WRITE_ENDINGS)}"
        )
    lost = losses(model, ending)
    if strict and lost:
        raise ModelError(
            f"{target}: strict: other programs would not see this in the file: {'; '.join(map(str, lost))}"
        )
    try:
        text = write(model)
    except ModelError as error:
        raise ModelError(f"{target}: {error}") from error
    try:
        outputs.write(target, text)
    except outputs.OutputError as error:
        raise ModelError(str(error)) from error
    for loss in lost:  # Linkwise reads all but contacts back
        reader = "" if loss.term == "contact" else ", as other programs read it"
        warn(f"{target}{reader}: {loss}", ExportWarning)
    return lost


# -- reading ------------------------------------------------------------------------------------------------


def _fetch(source: str | os.PathLike[str]) -> tuple[bytes, str, str]:
    """The bytes of a robot, its name in messages, and its ending."""
    if isinstance(source, str) and source in bundled_names():
        data = resources.files(_ROBOTS).joinpath(f"{source}.toml").read_bytes()
        return data, f"{source}.toml", ".toml"
    path = _path(source)
    ending = path.suffix.lower()
    try:
        info = path.stat()
    except FileNotFoundError:
        raise ModelError(_not_found(path, ending)) from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # a NUL character in the name
        raise ModelError(f"{str(path)!r}: cannot be read: {error}") from error
    if stat.S_ISDIR(info.st_mode):
        raise ModelError(f"{path}: it is a directory; expected a file ({', '.join(READ_ENDINGS)})")
    if not stat.S_ISREG(info.st_mode):  # a device or a pipe may never end
        raise ModelError(f"{path}: it is not a regular file")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise ModelError(f"{path}: it has {info.st_size} bytes; at most {MAX_BYTES} are read")
    if not data.strip():
        raise ModelError(f"{path}: the file is empty")
    return data, str(path), ending


def _reader(data: bytes, where: str, ending: str, allow: Sequence[str]) -> Callable[[bytes, str], Model]:
    """The reader of this file. Readers are imported where used: a bundled robot needs no XML."""
    if ending == ".toml":
        from linkwise.formats.toml.reader import read_toml

        return read_toml
    if ending == ".spec":
        from linkwise.formats.spec1992 import read_spec

        return read_spec
    if ending not in READ_ENDINGS and not _looks_like_xml(data):
        raise ModelError(
            f"{where}: unknown ending {ending!r}; a robot is read from {', '.join(READ_ENDINGS)}"
        )
    from linkwise.formats.xml import root_tag

    tag = root_tag(data, where)
    if tag == "robot":
        from linkwise.formats.urdf.reader import read_urdf

        return read_urdf
    if tag == "mujoco":
        from linkwise.formats.mjcf.reader import read_mjcf

        return partial(read_mjcf, allow=allow)
    raise ModelError(f"{where}: the root element is <{tag}>; expected <robot> (URDF) or <mujoco> (MJCF)")


def _looks_like_xml(data: bytes) -> bool:
    return data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def _not_found(path: Path, ending: str) -> str:
    names = bundled_names()
    if str(path).lstrip().startswith("<"):
        return "this is the text of a robot, not the path of a file: write it to a file, then load that"
    if ending in READ_ENDINGS or len(path.parts) > 1:
        return f"{path}: no such file (bundled robots: {', '.join(names)})"
    beside = [name for end in READ_ENDINGS if os.path.exists(name := f"{path}{end}")]
    hint = f"did you mean {' or '.join(map(repr, beside))}?" if beside else suggest(str(path), names)
    return f"{path}: neither a file nor a bundled robot; {hint}"


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise ModelError(f"expected the name of a robot or the path of a file, got {path!r}") from None
    if not name:
        raise ModelError(f"expected the name of a robot or the path of a file, got {path!r}")
    return Path(name)


def _with_mimics(model: Model, where: str, coupled: bool) -> Model:
    """A robot that was saved with independent coordinates keeps them; "independent" frees those of any file."""
    try:
        return model.with_mimics(coupled, undecided_only=coupled)
    except ModelError as error:  # a joint that follows itself, say
        raise ModelError(f"{where}: {error}") from None


@contextmanager
def _numbers_of(where: str) -> Generator[None, None, None]:
    """Arithmetic errors due to a file's numbers are errors of the file, without warnings of NumPy."""
    try:
        with np.errstate(all="ignore"):
            yield
    except LinkwiseError:
        raise
    except RecursionError:
        raise ModelError(f"{where}: its elements are nested too deeply") from None
    except (ArithmeticError, ValueError) as error:  # np.linalg.LinAlgError is a ValueError
        raise ModelError(f"{where}: its numbers make no robot: {error}") from error
