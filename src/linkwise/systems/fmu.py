"""Functional mock-up units (FMI 2.0 and 3.0): a robot or a controller in one zip file, as sources and as a binary."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path

from linkwise.compiler.emit.clike import SpellingError, spelt
from linkwise.core.once import once
from linkwise.embedded import Options
from linkwise.errors import UnknownNameError, suggest
from linkwise.files import outputs
from linkwise.robot.robot import Robot
from linkwise.systems import fmu_description
from linkwise.systems.fmu_model import SystemExportError, fmu_model, sources

VERSIONS = ("2.0", "3.0")
_DATE = (1980, 1, 1, 0, 0, 0)  # of every file in the zip, so that equal contents give equal files
_FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off")
_TIMEOUT = 300.0  # [s] for the compilation
_PLATFORMS = {
    ("2.0", "linux", "x86_64"): "linux64",
    ("3.0", "linux", "x86_64"): "x86_64-linux",
    ("3.0", "linux", "aarch64"): "aarch64-linux",
}


class Fmu:
    """A functional mock-up unit: a robot (``forward_dynamics``), a controller, an observer or another function.

    Args:
        robot: the robot.
        name: a function of the robot, a controller or an observer, as for C packages.
        options: choices; ``period`` is the step of the integrator or the sample period.
        version: of FMI, "2.0" or "3.0".
        identifier: name of the model and of its binary; by default from robot and function.

    Raises:
        SystemExportError: there is no FMU of this function.
        UnknownNameError: there is no such function or version.
    """

    def __init__(
        self,
        robot: Robot,
        name: str,
        options: Options | None = None,
        *,
        version: str = "2.0",
        identifier: str | None = None,
    ):
        if version not in VERSIONS:
            raise UnknownNameError(f"version: no FMI {version!r}; {suggest(str(version), VERSIONS)}")
        if identifier is not None and spelt(identifier) != identifier:
            raise SpellingError(f"{identifier!r} cannot be the name of a model: it is a name in C")
        self.robot, self.version = robot, version
        self.model = fmu_model(robot, name, Options() if options is None else options, identifier)

    def __repr__(self) -> str:
        return f"<Fmu {self.model.identifier}: FMI {self.version}, {len(self.model.variables)} variables>"

    @once
    def files(self) -> dict[str, str]:
        """The text of every file by its path in the zip, the binary apart."""
        model, version = self.model, self.version
        unnamed = sources(self.robot, model, "", version)
        compiled = sorted(name for name in unnamed if name.endswith(".c"))
        draft = fmu_description.model_description(model, version, "", compiled)
        digest = hashlib.sha256("\0".join([draft, *unnamed.values()]).encode()).digest()
        token = f"{{{uuid.UUID(bytes=digest[:16], version=4)}}}"
        found = {
            "modelDescription.xml": fmu_description.model_description(model, version, token, compiled),
            **{f"sources/{name}": text for name, text in sources(self.robot, model, token, version).items()},
        }
        if version == "3.0":
            found["sources/buildDescription.xml"] = fmu_description.build_description(model, compiled)
        return found

    @once
    def binary(self) -> tuple[str, bytes] | None:
        """The path in the zip and the content of the shared library for this machine; None without a C compiler, or
        where FMI has no name for this kind of machine.

        Raises:
            SystemExportError: the compiler failed.
        """
        folder = _PLATFORMS.get((self.version, sys.platform, platform.machine()))
        compiler = shutil.which("gcc") or shutil.which("cc")
        if folder is None or compiler is None:
            return None
        return f"binaries/{folder}/{self.model.identifier}.so", _compiled(compiler, self.files)

    @once
    def content(self) -> bytes:
        """The zip file; the same bytes for the same robot, options and compiler."""
        stream = io.BytesIO()
        files: dict[str, bytes] = {name: text.encode() for name, text in self.files.items()}
        if self.binary is not None:
            files[self.binary[0]] = self.binary[1]
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                entry = zipfile.ZipInfo(name, _DATE)
                entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
                entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
                archive.writestr(entry, content)
        return stream.getvalue()

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write the FMU; the number of its bytes. It is written to a temporary file that is renamed.

        Args:
            path: the file, which usually ends in .fmu.

        Raises:
            OutputError: it cannot be written.
        """
        return outputs.write(path, self.content)


def _compiled(compiler: str, files: Mapping[str, str]) -> bytes:
    """The shared library. It runs on every processor of its kind: fused multiply-adds are those of the C library."""
    with tempfile.TemporaryDirectory(prefix="linkwise-fmu-") as folder:
        names = []
        for path, text in files.items():
            name = Path(path).name
            if path.startswith("sources/"):
                Path(folder, name).write_text(text, encoding="utf-8")
                names += [name] if name.endswith(".c") else []
        command = [compiler, *_FLAGS, *sorted(names), "-o", "fmu.so", "-lm"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=_TIMEOUT)
        except subprocess.CalledProcessError as error:
            first = next(
                (line for line in error.stderr.splitlines() if "error" in line), error.stderr.strip()
            )
            raise SystemExportError(f"{Path(compiler).name} cannot compile the sources: {first}") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise SystemExportError(f"{compiler} cannot be run: {error}") from error
        return Path(folder, "fmu.so").read_bytes()
