"""How the functions of the table that are about contact are computed: one step, of which each takes a part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from linkwise.algorithms.contact import candidates, effort, law
from linkwise.errors import ModelError
from linkwise.functions.table import Setting
from linkwise.scalar import Scalar


def _stepped(
    setting: Setting,
    q: Any,
    qd: Any,
    tau: Any,
    time_step: Sequence[Scalar] | None = None,
    contact_friction: Sequence[Scalar] | None = None,
    ground_height: Sequence[Scalar] | None = None,
    start_impulse: Sequence[Scalar] | None = None,
) -> tuple[law.Stepped, Scalar]:
    """(the step, h)."""
    scene = law.scene_of(setting.model, setting.friction, setting.held())
    _check(setting, scene)
    h: Scalar = setting.step if time_step is None else time_step[0]
    given = law.Given(
        h,
        [each.friction for each in scene.candidates] if contact_friction is None else contact_friction,
        _heights(setting, scene.candidates) if ground_height is None else ground_height,
        start_impulse,
        setting.smoothing,
    )
    chosen = effort.chosen(scene, setting.links(), setting.accuracy)
    return law.step(setting.links(), q, qd, tau, scene, given, chosen), h


def _check(setting: Setting, scene: law.Scene) -> None:
    if not (scene.candidates or scene.stops or scene.tendons):
        raise ModelError(
            f"{setting.model.name} touches nothing; give it contacts with robot.with_contacts([lw.Contact(FRAME)])"
        )


def _heights(setting: Setting, scene: Sequence[candidates.Candidate]) -> list[Scalar]:
    from linkwise.model.contacts import ground_of

    return [ground_of(setting.model.contact_parts).height] * len(scene)


def _step(setting: Setting, *given: Any, **inputs: Any) -> tuple[Any, Any, Any]:
    stepped, _ = _stepped(setting, *given, **inputs)
    return stepped.q, stepped.qd, stepped.impulses


def _forces(setting: Setting, *given: Any, **inputs: Any) -> list[list[Scalar]]:
    stepped, h = _stepped(setting, *given, **inputs)
    rate = 1.0 / h
    return [[rate * p for p in impulse] for impulse in stepped.impulses]


def _velocities(setting: Setting, *given: Any, **inputs: Any) -> list[list[Scalar]]:
    return _stepped(setting, *given, **inputs)[0].velocities


def _residual(setting: Setting, *given: Any, **inputs: Any) -> Scalar:
    return _stepped(setting, *given, **inputs)[0].residual


def _gaps(setting: Setting, q: Any, ground_height: Sequence[Scalar] | None = None) -> list[Scalar]:
    scene = law.scene_of(setting.model)
    _check(setting, scene)
    height = _heights(setting, scene.candidates) if ground_height is None else ground_height
    return candidates.gaps(setting.links(), q, scene.candidates, height)


def _frames(
    setting: Setting, q: Any, ground_height: Sequence[Scalar] | None = None
) -> list[list[list[Scalar]]]:
    scene = law.scene_of(setting.model)
    _check(setting, scene)
    height = _heights(setting, scene.candidates) if ground_height is None else ground_height
    return candidates.frames(setting.links(), q, scene.candidates, height)


ALGORITHMS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "contact_step": {"compound_link": _step},
    "contact_forces": {"compound_link": _forces},
    "contact_velocities": {"compound_link": _velocities},
    "contact_residual": {"compound_link": _residual},
    "contact_gaps": {"compound_link": _gaps},
    "contact_frames": {"compound_link": _frames},
}
