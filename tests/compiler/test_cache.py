"""Compiled code on disk: found again, verified, bounded, and never a reason to fail."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from sample_programs import same_bits, samples, sweep

import linkwise
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.native import NativeProgram
from linkwise.compiler.runtime import cache, host, machine
from linkwise.core import identity

SOURCES = str(Path(linkwise.__file__).parents[1])
HERE = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", False)
    return tmp_path / "cache" / "code"


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.code"))


def kernel(key: bytes | None = b"sweep 3", builds: list | None = None) -> Kernel:
    def build(dtype):
        if builds is not None:
            builds.append(dtype)
        return sweep(3, dtype)

    return Kernel("sweep", [("q", 3), ("qd", 3), ("qdd", 3)], [("tau", (3,))], "float64", build, key)


@pytest.fixture(scope="module")
def states():
    return samples(sweep(3), 20)


@pytest.fixture(scope="module", autouse=True)
def code_of_all_kernels(states):
    """What a process compiles once for all of its kernels is there before anything is counted."""
    before = os.environ.get("LINKWISE_CACHE")
    os.environ["LINKWISE_CACHE"] = ""
    kernel()(*states)
    os.environ.pop("LINKWISE_CACHE")
    if before is not None:
        os.environ["LINKWISE_CACHE"] = before


def test_stored_code_is_found_without_building(folder, states, monkeypatch):
    wanted = kernel()(*states)
    assert len(entries(folder)) == 1
    builds = []
    monkeypatch.setattr(machine, "compile_text", lambda text: pytest.fail("compiled again"))
    assert same_bits(kernel(builds=builds)(*states), wanted)
    assert not builds


def test_without_a_key_the_text_is_the_key(folder, states, monkeypatch):
    wanted = kernel(None)(*states)
    builds = []
    monkeypatch.setattr(machine, "compile_text", lambda text: pytest.fail("compiled again"))
    assert same_bits(kernel(None, builds)(*states), wanted)
    assert builds == ["float64"]


def test_what_decides_the_code_is_in_the_key(monkeypatch):
    keys = {cache.key(b"a"), cache.key(b"b")}
    monkeypatch.setattr(host, "description", lambda: "another machine")
    keys.add(cache.key(b"a"))
    monkeypatch.undo()
    monkeypatch.setattr(cache, "_software", lambda: b"another version")
    keys.add(cache.key(b"a"))
    monkeypatch.undo()
    assert len(keys) == 4
    assert cache.key(b"a") in keys
    assert cache._llvmlite()


def test_precisions_widths_and_kernels_have_entries_of_their_own(folder, states):
    one = kernel()
    one(*states)
    one(*[a[0] for a in states])
    one(*[a.astype(np.float32) for a in states])
    kernel(b"another")(*states)
    assert len(entries(folder)) == 4


def test_the_folder_and_its_entries_are_private(folder, states):
    kernel()(*states)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(entries(folder)[0].stat().st_mode) == 0o600
    for opened in (0o755, 0o770, 0o740, 0o720, 0o710, 0o707):  # one bit of the group or of others is enough
        folder.chmod(opened)
        kernel()(*states)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


DAMAGE = {
    "empty": lambda data: b"",
    "short": lambda data: data[:20],
    "cut": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "one bit in the code": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "one bit in the checksum": lambda data: data[:30] + bytes([data[30] ^ 1]) + data[31:],
    "one bit in the magic": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "noise": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_entries_are_rebuilt(folder, states, damage, monkeypatch):
    wanted = kernel()(*states)
    (path,) = entries(folder)
    good = path.read_bytes()
    path.write_bytes(DAMAGE[damage](good))
    loaded = []
    monkeypatch.setattr(machine, "load", lambda data, load=machine.load: loaded.append(data) or load(data))
    builds = []
    assert same_bits(kernel(builds=builds)(*states), wanted)
    assert builds == ["float64"]
    assert len(loaded) == 1
    assert path.read_bytes()[:48] == good[:48]


def test_an_entry_under_another_name_is_not_taken(folder):
    cache.store("a" * 64, b"code")
    assert cache.load("a" * 64) == b"code"
    os.replace(folder / ("a" * 64 + ".code"), folder / ("b" * 64 + ".code"))
    assert cache.load("b" * 64) is None


def test_entries_others_could_write_are_not_taken(folder):
    cache.store("a" * 64, b"code")
    path = folder / ("a" * 64 + ".code")
    path.chmod(0o666)
    with pytest.warns(RuntimeWarning, match="not a private file"):
        assert cache.load("a" * 64) is None
    path.chmod(0o600)
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")
    assert cache.load("a" * 64) is None


BROKEN = {
    "a file": lambda base: base.write_text("no folder"),
    "a file inside": lambda base: (base.mkdir(), (base / "code").write_text("no folder")),
    "a link to nowhere": lambda base: base.symlink_to(base.parent / "missing" / "deep"),
    "a link loop": lambda base: base.symlink_to(base),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_folder_costs_one_warning(tmp_path, states, broken):
    BROKEN[broken](tmp_path / "cache")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [kernel()(*states) for _ in range(2)]
    assert same_bits(*results)
    assert [w.category for w in caught] == [RuntimeWarning]
    assert "without its cache" in str(caught[0].message)


def test_an_unwritable_folder_costs_one_warning(folder, states, monkeypatch):
    def refuse(*args, **options):
        raise OSError(28, "No space left on device")

    folder.mkdir(parents=True)
    monkeypatch.setattr(os, "link", refuse)
    with pytest.warns(RuntimeWarning, match="No space left"):
        kernel()(*states)
    assert not list(folder.iterdir())


def test_a_folder_of_another_user_is_not_used(folder, states, monkeypatch):
    kernel()(*states)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.load("a" * 64) is None


def test_the_cache_can_be_turned_off(folder, states, monkeypatch):
    monkeypatch.setenv("LINKWISE_CACHE", "")
    kernel()(*states)
    assert not folder.exists()


def test_the_usual_places(monkeypatch, tmp_path):
    monkeypatch.delenv("LINKWISE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache._base() == tmp_path / "linkwise"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache._base() == tmp_path / ".cache" / "linkwise"


def test_the_oldest_entries_go_first(folder, monkeypatch):
    monkeypatch.setattr(cache, "SIZE_LIMIT", 5 * cache.ENTRY_COST)
    now = time.time()
    for k in range(5):
        cache.store(f"{k:064}", bytes(1900))
        os.utime(folder / f"{k:064}.code", (now - 100 + k,) * 2)
    assert cache.load(f"{0:064}")  # used just now
    cache.store(f"{9:064}", bytes(1900))
    assert {path.stem[-1] for path in entries(folder)} == {"0", "2", "3", "4", "9"}


def test_what_dead_writers_left_is_removed(folder):
    cache.store("a" * 64, b"code")
    old, new = folder / ".old.1.x", folder / ".new.1.x"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache._until_scan.clear()  # as in a new process
    cache.store("b" * 64, b"code")
    assert not old.exists()
    assert new.exists()


def test_the_folder_is_bounded_without_looking_through_it_at_every_entry(folder, monkeypatch):
    monkeypatch.setattr(cache, "SIZE_LIMIT", 64 * cache.ENTRY_COST)
    scans, trim = [], cache._trim
    monkeypatch.setattr(cache, "_trim", lambda path: (scans.append(path), trim(path)))
    most = 0
    for k in range(200):
        cache.store(f"{k:064}", b"code")
        most = max(most, len(entries(folder)))
    assert 64 < most <= 64 + 64 // 16 + 1
    assert 200 // 5 <= len(scans) <= 200 // 4


PROCESS = """
import sys
sys.path[:0] = [{sources!r}, {here!r}]
from test_cache import cache, kernel, samples, sweep
import hashlib
cache._software = lambda: b"the same even if a source file is edited meanwhile"
result = kernel()(*samples(sweep(3), 20))
print(hashlib.sha256(result.tobytes()).hexdigest(), "llvmlite" in sys.modules)
"""


def start(folder: Path) -> subprocess.Popen:
    script = PROCESS.format(sources=SOURCES, here=HERE)
    environment = {**os.environ, "LINKWISE_CACHE": str(folder.parent)}
    return subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
    )


def test_many_processes_at_once_then_one_without_llvm(folder):
    processes = [start(folder) for _ in range(4)]
    printed = {process.communicate(timeout=60)[0].split()[0] for process in processes}
    assert [process.returncode for process in processes] == [0] * 4
    assert len(printed) == 1
    assert len(entries(folder)) == 2  # the kernel, and the way from Python to it
    later = start(folder)
    digest, loaded_llvm = later.communicate(timeout=60)[0].split()
    assert {digest} == printed
    if sys.platform == "linux" and host.vector_bits() > 128:
        assert loaded_llvm == "False"


def test_writers_killed_half_way_leave_nothing_that_is_used(folder, states):
    script = f"""
import sys
sys.path[:0] = [{SOURCES!r}]
from linkwise.compiler.runtime import cache
while True:
    cache.store("a" * 64, bytes(5_000_000))
"""
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", script])
        deadline = time.monotonic() + 20
        while not (folder.exists() and any(folder.iterdir())) and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(0.02)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert cache.load("a" * 64) in (None, bytes(5_000_000))


def test_only_the_needed_form_is_compiled(folder, states):
    native = NativeProgram(lambda: sweep(3), b"key")
    native.form(1)
    assert len(entries(folder)) == 1
    assert native.form(1) is native.form(1)
    assert native.known_form(8) is None


def test_equal_sizes_and_times_but_other_content_give_another_key(tmp_path, monkeypatch):
    """As in container images and package stores, where every file has the same time."""
    package = tmp_path / "package"
    (package / "algorithms").mkdir(parents=True)
    keys = []
    for text in ("x = 1\n", "x = 2\n", "x = 1\n"):
        (package / "algorithms" / "one.py").write_text(text)
        os.utime(package / "algorithms" / "one.py", (1, 1))
        os.utime(package / "algorithms", (1, 1))
        monkeypatch.setattr(identity, "PACKAGE", package)
        monkeypatch.setattr(identity, "IMPORTED", None)  # no file counts as changed since
        for remembered in (identity.package_files, identity.package_digest, cache._software):
            remembered.cache_clear()
        keys.append(cache.key(b"a"))
    monkeypatch.undo()
    for remembered in (identity.package_files, identity.package_digest, cache._software):
        remembered.cache_clear()
    assert keys[0] == keys[2] != keys[1]


def test_a_fifo_in_place_of_an_entry_does_not_hang(folder):
    """In a process of its own, which can be given up. The entry is built anew and takes the place of the FIFO."""
    folder.mkdir(parents=True, mode=0o700)
    os.mkfifo(folder / ("a" * 64 + ".code"), 0o600)
    script = f"""
import sys, warnings
sys.path[:0] = [{SOURCES!r}]
from linkwise.compiler.runtime import cache
warnings.simplefilter("ignore")
print(cache.load("a" * 64))
cache.store("a" * 64, b"code")
print(cache.load("a" * 64))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["None", "b'code'"], ran.stderr


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["FIFO", "folder"])
def test_an_entry_that_is_no_regular_file_is_refused(folder, make):
    folder.mkdir(parents=True, mode=0o700)
    make(folder / ("a" * 64 + ".code"))
    with pytest.warns(RuntimeWarning, match="not a private file"):
        assert cache.load("a" * 64) is None
