"""Faults for stores: flipped bits, and every state that a loss of power could leave behind."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterator
from pathlib import Path

from linkwise.study.store.files import Disk

TINY = {
    "robot": "two_link",
    "seed": 5,
    "samples": 300,
    "chunk": 128,
    "vary": {"q": {"uniform": [-3.0, 3.0]}, "payload.mass": {"grid": [0.0, 2.0]}},
    "compute": {"g": {"function": "gravity_torques"}, "load": "max(abs(g))"},
    "keep": {
        "g": {"raw": True, "statistics": ["count", "mean", "max"], "quantiles": [0.5]},
        "load": {"statistics": ["mean"], "over": "sample"},
    },
    "failures": {"heavy": "load > 30"},
}


def flips(store: Path, count: int, seed: int) -> Iterator[str]:
    """Flip one bit after the other, each at a random place of a random file (of a random byte of the store half of the
    time), and turn it back when the next one is asked for. Gives where it was."""
    choice = random.Random(seed)
    files = sorted(path for path in store.rglob("*") if path.is_file() and path.stat().st_size)
    sizes = [path.stat().st_size for path in files]
    for number in range(count):
        path = choice.choice(files) if number % 2 else choice.choices(files, sizes)[0]
        data = path.read_bytes()
        place, bit = choice.randrange(len(data)), choice.randrange(8)
        changed = bytearray(data)
        changed[place] ^= 1 << bit
        path.write_bytes(changed)
        yield f"{path.relative_to(store)}, byte {place}, bit {bit}"
        path.write_bytes(data)


# -- loss of power ----------------------------------------------------------------------------------------------------


class File:
    """Bytes that are on the disk, and writes that may not be."""

    def __init__(self, data: bytes = b""):
        self.durable, self.pending = data, []

    def kept(self, choice: random.Random, how: str) -> bytes:
        """What a loss of power leaves: nothing of the pending writes, all of it, or something in between."""
        if how == "random":
            how = choice.choice(("none", "all", "torn", "zeros", "part"))
        whole = _written(self.durable, self.pending)
        if how == "all" or not self.pending:
            return whole
        if how == "torn":
            return whole[: choice.randint(min(len(self.durable), len(whole)), len(whole))]
        if how == "zeros":  # the length came to the disk, and the bytes did not
            return self.durable + bytes(max(0, len(whole) - len(self.durable)))
        if how == "part":
            return _written(self.durable, self.pending[: choice.randrange(len(self.pending) + 1)])
        return self.durable


def _written(data: bytes, writes: list) -> bytes:
    for write in writes:
        data = data[:write] if isinstance(write, int) else data + write
    return data


class Names:
    """A folder: names that are on the disk, and changes that may not be. A change is {name: what it is then}."""

    def __init__(self):
        self.now: dict[str, File | Names] = {}
        self.durable: dict[str, File | Names] = {}
        self.pending: list[dict[str, File | Names | None]] = []

    def change(self, **names) -> None:
        self.pending.append(names)
        _apply(self.now, names)

    def sync(self) -> None:
        self.durable = dict(self.now)
        self.pending.clear()

    def kept(self, choice: random.Random, how: str) -> dict[str, File | Names]:
        found = dict(self.durable)
        for names in self.pending:
            if how == "all" or (how == "random" and choice.random() < 0.5):
                _apply(found, names)
        return found


def _apply(entries: dict, names: dict) -> None:
    for name, node in names.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class Recorder(Disk):
    """Performs operations on files, and records what a loss of power would leave after each operation."""

    VARIANTS = (
        ("none", "none"),
        ("all", "none"),
        ("all", "all"),
        ("none", "journal"),
        ("random", "random"),
        ("random", "random"),
    )
    """What of the names, and what of the bytes."""

    def __init__(self, root: Path, every: int = 1, seed: int = 0):
        self.root, self.tree = root, Names()
        self.states: dict[str, dict[str, bytes]] = {}
        """What there could be, by its hash: files by name; a folder ends with a slash."""
        self.operations = 0
        self._every, self._choice, self._lock = every, random.Random(seed), threading.RLock()
        self._files: dict[int, File] = {}

    def _folder(self, path: Path) -> Names:
        found = self.tree
        for part in path.relative_to(self.root).parts:
            found = found.now[part]
        return found

    def _done(self) -> None:
        self.operations += 1
        if self.operations % self._every:
            return
        for names, data in self.VARIANTS:
            state: dict[str, bytes] = {}
            self._gather(self.tree, "", names, data, state)
            key = hashlib.sha256(repr(sorted(state.items())).encode()).hexdigest()
            self.states.setdefault(key, state)

    def _gather(self, folder: Names, path: str, names: str, data: str, state: dict[str, bytes]) -> None:
        for name, node in folder.kept(self._choice, names).items():
            if isinstance(node, Names):
                state[f"{path}{name}/"] = b""
                self._gather(node, f"{path}{name}/", names, data, state)
            else:
                how = data if data != "journal" else "all" if name == "journal" else "none"
                state[path + name] = node.kept(self._choice, how)

    def make_folder(self, path):
        with self._lock:
            super().make_folder(path)
            self._folder(path.parent).change(**{path.name: Names()})
            self._done()

    def open(self, path, mode="wb"):
        with self._lock:
            file = super().open(path, mode)
            folder = self._folder(path.parent)
            if "a" in mode and path.name in folder.now:
                node = folder.now[path.name]
            else:
                node = File()
                folder.change(**{path.name: node})
            self._files[id(file)] = node
            self._keep = [*getattr(self, "_keep", ()), file]  # so that no other file gets its number
            self._done()
            return file

    def write(self, file, data):
        with self._lock:
            super().write(file, data)
            self._files[id(file)].pending.append(bytes(data))
            self._done()

    def truncate(self, file, size):
        with self._lock:
            super().truncate(file, size)
            self._files[id(file)].pending.append(size)
            self._done()

    def sync(self, file):
        with self._lock:
            node = self._files[id(file)]
            node.durable, node.pending = _written(node.durable, node.pending), []
            self._done()

    def sync_folder(self, path):
        with self._lock:
            self._folder(path).sync()
            self._done()

    def rename(self, old, new):
        with self._lock:
            super().rename(old, new)
            assert old.parent == new.parent
            folder = self._folder(old.parent)
            folder.change(**{old.name: None, new.name: folder.now[old.name]})
            self._done()

    def unlink(self, path):
        with self._lock:
            super().unlink(path)
            self._folder(path.parent).change(**{path.name: None})
            self._done()


class Quick(Disk):
    """Waits for no disk."""

    def sync(self, file):
        pass

    def sync_folder(self, path):
        pass


def laid_out(state: dict[str, bytes], root: Path) -> None:
    """A state as files."""
    for name, data in sorted(state.items()):
        if name.endswith("/"):
            (root / name).mkdir()
        else:
            (root / name).write_bytes(data)
