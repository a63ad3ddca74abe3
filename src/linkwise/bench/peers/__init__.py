"""Other libraries, each behind a small adapter in a file of its own.

An adapter has ``make(subject)``, which gives a ``Peer`` or raises: ImportError where the library is not installed,
``Refusal`` where it cannot take this robot.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from linkwise.bench.peers.base import Peer, Refusal
from linkwise.bench.subject import Subject

PEERS = ("pinocchio", "mujoco", "casadi", "pybullet", "robotics_toolbox", "adam", "frax")

NOT_INSTALLED = "not installed"


def find(subject: Subject, names: Iterable[str] = PEERS) -> tuple[list[Peer], dict[str, str]]:
    """(the peers that are here, {name: why it is not}) for one robot."""
    found: list[Peer] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            found.append(importlib.import_module(f"linkwise.bench.peers.{name}").make(subject))
        except ImportError as error:
            needs = error.name or str(error)
            missing[name] = NOT_INSTALLED if needs == name else f"{NOT_INSTALLED} ({needs})"
        except Refusal as error:
            missing[name] = " ".join(str(error).split())
        except Exception as error:  # a library that fails is reported, whatever it raises
            if name not in PEERS:
                raise
            missing[name] = f"fails: {' '.join(str(error).split())}"
    return found, missing


def absent(missing: dict[str, str]) -> list[str]:
    """Lines that say which libraries are not here: one for all that are not installed, one for each other reason."""
    names = [
        name + reason.removeprefix(NOT_INSTALLED)
        for name, reason in missing.items()
        if reason.startswith(NOT_INSTALLED)
    ]
    others = [f"{name}: {reason}" for name, reason in missing.items() if not reason.startswith(NOT_INSTALLED)]
    return ([f"{NOT_INSTALLED}: {', '.join(names)}"] if names else []) + others


__all__ = ["PEERS", "Peer", "Refusal", "absent", "find"]
