"""Other systems, simulated: a process without the names that only Linux, or only POSIX systems, have.

The names are removed after the packages below Linkwise are imported, and before Linkwise is. What cannot be simulated
here: another format of object files, other C libraries, Windows' rules about open files (only the order of closing and
renaming is checked).
"""

import json
import os
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.emit import blocks
from linkwise.compiler.runtime import image, machine
from linkwise.compiler.shapes import nest
from linkwise.core import system
from linkwise.files import outputs
from linkwise.study.store.journal import Journal

SOURCES = str(Path(lw.__file__).parent.parent)

PREAMBLE = """
import sys, os, signal, mmap, json, ctypes, pathlib
import numpy, llvmlite.binding, click, rich.console, rich.table, subprocess, tempfile, threading, platform, zipfile
import multiprocessing, concurrent.futures, asyncio, uuid, shutil, socket, defusedxml.expatreader

def writable_code():
    with open("/proc/self/maps") as maps:
        parts = [line.split() for line in maps]
    return [line[0] for line in parts if "w" in line[1] and "x" in line[1]]

BEFORE = writable_code()  # llvmlite has callbacks of its own
LINUX = "O_TMPFILE sched_getaffinity sched_setaffinity memfd_create".split()
POSIX = '''O_NOFOLLOW O_CLOEXEC O_DIRECTORY O_NOCTTY O_NONBLOCK O_ACCMODE geteuid getuid getgid getegid fchmod fchown
    chown uname pread pwrite fork register_at_fork getloadavg mkfifo sysconf killpg setsid statvfs'''.split()

def remove(module, names):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

def refuse(function):
    def without_descriptors(*arguments, **options):
        if any(options.get(name) is not None for name in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError("dir_fd unavailable on this platform")
        if arguments and isinstance(arguments[0], (str, os.PathLike)) and function is opened:
            if os.path.isdir(arguments[0]):
                raise PermissionError(13, "Permission denied", arguments[0])
        return function(*arguments, **options)
    return without_descriptors

remove(os, LINUX)
usual = ctypes.CDLL
if SYSTEM == "win32":
    remove(os, POSIX)
    remove(sys, ["abiflags", "getdlopenflags", "setdlopenflags"])
    remove(signal, ["SIGHUP", "SIGUSR1", "SIGKILL", "SIGALRM", "setitimer"])
    remove(mmap, [name for name in dir(mmap) if name.startswith(("PROT_", "MAP_"))])
    for name in ("fcntl", "pwd", "grp", "resource", "termios"):
        sys.modules[name] = None
    opened = os.open
    for name in ("open", "replace", "rename", "unlink", "link", "mkdir"):
        setattr(os, name, refuse(getattr(os, name)))
    class Locks:
        LK_NBLCK, LK_UNLCK, taken = 2, 0, set()
        def locking(descriptor, how, size):
            assert os.lseek(descriptor, 0, 1) > 1 << 30 and size == 1
            status = os.fstat(descriptor)
            if how == Locks.LK_UNLCK:
                Locks.taken.discard(status.st_ino)
            elif status.st_ino in Locks.taken:
                raise PermissionError(13, "Permission denied")
    sys.modules["msvcrt"] = Locks
    def library(name=None, *rest, **options):
        if name is None:
            raise TypeError("bad argument type for built-in operation")
        return usual({"ucrtbase": "libm.so.6", "ntdll": "libc.so.6"}.get(name, name), *rest, **options)
    ctypes.CDLL = library
sys.platform = SYSTEM
"""

PROGRAM = """
import numpy as np, warnings
warnings.simplefilter("error")
import linkwise as lw
from linkwise.files import outputs
from linkwise.compiler.runtime import image, machine, native_threads

folder = sys.argv[1]
robot = lw.load("two_link")
q = np.linspace(0.1, 1.0, 2 * 4000).reshape(-1, 2)
found = {"one": robot.inverse_dynamics(q[0], q[1], q[2]).tolist()}
found["sum"] = robot.inverse_dynamics(q, q, q, threads=2).sum(axis=0).tolist()
found["kind"] = machine.compile_text("define double @run(double %x) { ret double %x }")[:6].decode()
found["pool"] = not native_threads.missing()
found["both"] = sorted({*writable_code()} - {*BEFORE})
found["entries"] = sorted(os.listdir(os.path.join(os.environ["LINKWISE_CACHE"], "code")))
robot.save(os.path.join(folder, "saved.toml"))
found["again"] = lw.load(os.path.join(folder, "saved.toml")).inverse_dynamics(q[0], q[1], q[2]).tolist()
outputs.write(os.path.join(folder, "text"), "one")
outputs.write(os.path.join(folder, "text"), "two")
found["text"] = pathlib.Path(folder, "text").read_text()
found["files"] = sorted(os.listdir(folder))
store = os.path.join(folder, "x.study")
study = lw.study(
    robot="two_link", seed=1, samples=200, chunk=64, vary={"q": {"uniform": [-1.0, 1.0]}},
    compute={"tau": {"function": "gravity_torques"}}, keep={"tau": ["mean"]},
)
found["complete"] = [study.run(store, progress=False, resume=resume).complete for resume in (False, True)]
from linkwise.cli import main
with open(os.path.join(folder, "info"), "w") as sys.stdout:
    found["info"] = main(["info", "two_link"])
    found["info"] += main(["generate", "two_link", "pose", "--states", "1", "--out", os.path.join(folder, "c")])
sys.stdout = sys.__stdout__
found["told"] = pathlib.Path(folder, "info").read_text()
print(json.dumps(found))
"""

SECOND = """
import numpy as np, linkwise as lw
from linkwise.compiler.runtime import machine
machine.compile_text = None  # everything is in the cache
q = np.linspace(0.1, 1.0, 2 * 4000).reshape(-1, 2)
print(json.dumps(lw.load("two_link").inverse_dynamics(q[0], q[1], q[2]).tolist()))
"""


def simulated(name: str, program: str, folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": SOURCES, "LINKWISE_CACHE": str(folder / "cache")}
    environment["LINKWISE_BACKGROUND"] = "0"
    text = f"SYSTEM = {name!r}\n{PREAMBLE}\n{textwrap.dedent(program)}"
    ran = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("name", ["win32", "darwin"])
def test_import_first_calls_cache_and_files(name, tmp_path):
    (tmp_path / "out").mkdir()
    first = json.loads(simulated(name, PROGRAM, tmp_path, tmp_path / "out"))
    assert first["kind"] == "object"  # linked by LLVM's own loader
    assert first["both"] == []  # no memory that is writable and executable
    assert first["pool"] is (name == "darwin")
    assert first["text"] == "two"
    assert first["files"] == ["saved.toml", "text"]
    assert first["entries"]
    robot = lw.load("two_link")
    q = np.linspace(0.1, 1.0, 2 * 4000).reshape(-1, 2)
    assert first["one"] == first["again"] == robot.inverse_dynamics(q[0], q[1], q[2]).tolist()
    assert first["sum"] == robot.inverse_dynamics(q, q, q).sum(axis=0).tolist()
    assert first["complete"] == [True, True]
    assert first["info"] == 0
    assert "two_link" in first["told"]
    if name == "win32":
        assert json.loads(simulated(name, SECOND, tmp_path)) == first["one"]


# -- files on Windows --------------------------------------------------------------------------------------------------


def test_files_are_closed_before_they_are_moved(tmp_path, monkeypatch):
    """Windows renames and removes no open file."""
    monkeypatch.setattr(system, "MOVES_OPEN_FILES", False)
    monkeypatch.delattr(os, "O_TMPFILE")
    usual, moved = os.replace, []

    def replace(old, new, **options):
        held = {os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")}
        moved.append(os.path.basename(new))
        assert not {os.path.realpath(tmp_path / old), os.path.realpath(tmp_path / new)} & held
        usual(old, new, **options)

    monkeypatch.setattr(os, "replace", replace)
    outputs.write(tmp_path / "text", "one")
    monkeypatch.delattr(os, "O_DIRECTORY")
    outputs.write(tmp_path / "text", "two")
    assert (tmp_path / "text").read_text() == "two"
    journal = Journal(tmp_path / "journal")
    journal.append(b"first")
    journal.rewrite([b"second"])
    journal.append(b"third")
    assert list(journal.records()) == [b"second", b"third"]
    journal.close()
    assert moved == ["text", "text", "journal"]
    assert sorted(os.listdir(tmp_path)) == ["journal", "text"]


def test_open_descriptors_of_this_process_on_macos(tmp_path, monkeypatch):
    """There /dev/fd is a folder of its own, and the status of an entry is that of the open file."""
    monkeypatch.setattr(os.path, "realpath", lambda path: str(path))
    monkeypatch.setattr(os.path, "islink", lambda _: False)
    with open(tmp_path / "open", "wb") as file:
        assert outputs._resolve(f"/dev/fd/{file.fileno()}").descriptor == file.fileno()


# -- object files of other systems -------------------------------------------------------------------------------------


@pytest.mark.parametrize("triple", ["x86_64-pc-windows-msvc", "arm64-apple-darwin"])
def test_code_for_other_systems_refers_only_to_names_that_the_loader_knows(triple):
    """COFF and Mach-O: their undefined symbols, read from the object file."""
    program = lw.load("two_link").kernel("inverse_dynamics").program()
    binary = cross_compiled(blocks.module(nest(program), 4), triple)
    with pytest.raises(image.UnsupportedObject):
        image.link(binary)
    names = undefined_in_coff(binary) if "windows" in triple else undefined_in_mach_o(binary)
    assert names <= image.C_LIBRARY | (machine.WINDOWS_NAMES if "windows" in triple else set())


def undefined_in_coff(binary: bytes) -> set[str]:
    start, count = struct.unpack_from("<II", binary, 8)
    strings = start + 18 * count
    found = set()
    for k in range(count):
        name, value, section, _, kind, _ = struct.unpack_from("<8sIhHBB", binary, start + 18 * k)
        if section == 0 and value == 0 and kind == 2:
            zeros, place = struct.unpack("<II", name)
            found.add(text_at(binary, strings + place) if zeros == 0 else name.rstrip(b"\0").decode())
    assert "fma" in found  # the parser found the table
    return found


def undefined_in_mach_o(binary: bytes) -> set[str]:
    place = 32
    for _ in range(struct.unpack_from("<I", binary, 16)[0]):
        command, size = struct.unpack_from("<II", binary, place)
        if command == 2:
            start, count, strings, _ = struct.unpack_from("<IIII", binary, place + 8)
            entries = [struct.unpack_from("<IBBHQ", binary, start + 16 * k) for k in range(count)]
            assert "_run" in {text_at(binary, strings + entry[0]) for entry in entries}
            return {
                text_at(binary, strings + entry[0]).removeprefix("_")
                for entry in entries
                if not entry[1] & 0x0E
            }
        place += size
    raise AssertionError("no table of symbols")


def text_at(binary: bytes, place: int) -> str:
    return binary[place : binary.index(b"\0", place)].decode()


def cross_compiled(text: str, triple: str, features: str = "") -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple).create_target_machine(
        features=features, opt=1, reloc="pic", codemodel="default"
    )
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = triple, str(target.target_data)
    return target.emit_object(module)
