"""What parts below use of parts above, each imported when it is first used (``core.upper``)."""

from __future__ import annotations

from typing import Any

from linkwise.core.upper import register


def _c() -> Any:
    from linkwise.compiler.emit.c import source

    return source


def _cuda() -> Any:
    from linkwise.compiler.emit.cuda.source import source

    return source


def _python() -> Any:
    from linkwise.compiler.emit.formulas import python_source

    return python_source


def _wasm() -> Any:
    from linkwise.compiler.emit.wasm import source

    return source


def _casadi() -> Any:
    from linkwise.compiler.emit.external import source

    return source


def _acados() -> Any:
    from linkwise.compiler.emit.acados import source

    return source


def _frameworks() -> Any:
    from linkwise import frameworks

    return frameworks


def _torch_calls() -> Any:
    from linkwise.frameworks import torch

    return torch


def _motion() -> Any:
    from linkwise import motion

    return motion


def _collision() -> Any:
    from linkwise import collision

    return collision


def _predictive() -> Any:
    from linkwise.optimal import Predictive

    return Predictive


def _report() -> Any:
    from linkwise import report

    return report


def _view() -> Any:
    from linkwise import view

    return view


register("source in c", _c)
register("source in cuda", _cuda)
register("source in python", _python)
register("source in wasm", _wasm)
register("source in casadi", _casadi)
register("source in acados", _acados)
register("frameworks", _frameworks)
register("torch_calls", _torch_calls)
register("collision", _collision)
register("motion", _motion)
register("predictive", _predictive)
register("report", _report)
register("view", _view)
