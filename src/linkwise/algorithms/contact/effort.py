"""How many sweeps and Newton's steps a contact problem gets, from tables of measured residuals.

``SINGLE`` is for contacts that have three joints of their own (the feet of a quadruped): the first entry with which the
robot's own problems mostly have the residual (``measured``); states that do not have it get further rounds.
``benchmarks/contact.py --table`` prints what each entry reaches.
Candidates are redundant where some have less than three directions of their own: several on one link, or on branches
with fewer than three axes that move no other candidate. They, and robots with many joints that stop or rub, are solved
without their matrix (``filtered``), with at most so many steps that 99.9 % of the states reach the residual.
"""

from __future__ import annotations

from dataclasses import replace

from linkwise.algorithms import joint_terms
from linkwise.algorithms.contact import measured
from linkwise.algorithms.contact.filtered import Schedule
from linkwise.algorithms.contact.law import Scene
from linkwise.algorithms.contact.solver import Effort
from linkwise.joint_laws import is_zero
from linkwise.model.mechanism import Mechanism

DEFAULT_ACCURACY = 1e-6
SINGLE = (
    Effort(1, 1, 1),
    Effort(1, 1, 2),
    Effort(2, 1, 1),
    Effort(2, 1, 2),
    Effort(3, 2, 1),
    Effort(4, 3, 1),
    Effort(6, 3, 1),
)
"""In the order of their cost. All repeat a step: after a single one what sticks still moves by ε of its impulses."""
REACHED = (0.7, 0.97)
"""Shares of the samples that must have the residual without further rounds, for the default accuracy and for a better
one. With the first 93 % of the states of simulations have it, and 99 % of those that start from the last step."""
FINEST = 1e-12
"""The smallest residual for which states get further rounds."""
UNMEASURED = (SINGLE[4], SINGLE[-1])
"""For the default accuracy and for a better one, where there are no numbers to measure."""
WILDEST = 1000.0
"""Times larger residuals after which a step is not taken where constraints are stiff."""
MOST = 128
"""Steps of ``filtered``. Few states need more than ten; batches compute these together (``compiler/emit/packing``)."""
REDUNDANT = {
    1e-2: Effort(filtered=Schedule(1e-4, 0.0, 1e-3, MOST)),
    1e-3: Effort(filtered=Schedule(1e-6, 0.0, 1e-4, MOST)),
    1e-6: Effort(filtered=Schedule(1e-12, 0.0, 1e-7, MOST)),
    1e-12: Effort(filtered=Schedule(1e-14, 0.0, 1e-12, MOST, exact=True)),
}
"""Efforts by the residual that nearly all states reach. Newton's steps square an error: an iteration that ends at the
square of the residual loses one step, and leaves contacts that stick at rest."""
RUBBING = {
    1e-2: Effort(filtered=Schedule(1e-4, 0.0, 1e-3, MOST, first=1e-7)),
    1e-3: Effort(filtered=Schedule(1e-5, 0.0, 1e-4, MOST, first=1e-7)),
    1e-6: Effort(filtered=Schedule(1e-12, 1e-8, 1e-10, MOST, first=1e-4)),
    1e-12: Effort(filtered=Schedule(1e-14, 0.0, 1e-12, MOST, exact=True)),
}
"""The same where many joints stop or rub: a smaller ε from the first step on. What slides takes most of the steps and
need not be as exact as what is at rest."""
STIFF = {
    reached: Effort(filtered=replace(effort.filtered, wildest=WILDEST))
    for reached, effort in REDUNDANT.items()
}
"""The same with constraints as stiff measurements: after a step that is far off, impulses of constraints would be so
large that their round-off stays."""
FEW_JOINTS = 8
"""Joints that stop or rub, up to which the matrix of a problem without redundant contacts is formed."""


def is_redundant(scene: Scene, links: Mechanism) -> bool:
    """Whether some candidate has fewer than three axes that move no other one."""
    branches = [each.axes_of(links) for each in scene.candidates]
    if len(branches) == 1:
        return sum(len(links[k].axes) for k in branches[0]) < 3
    for k, own in enumerate(branches):
        others = set[int]().union(*(branches[:k] + branches[k + 1 :]))
        if sum(len(links[link].axes) for link in own - others) < 3:
            return True
    return False


def joint_row_count(scene: Scene, links: Mechanism) -> int:
    """How many joints stop or have dry friction, and tendons."""
    rubbing = {
        coordinate
        for coordinate, (k, _) in enumerate(links.coordinates())
        if scene.friction
        and not all(is_zero(limit) for limit in joint_terms.dry_friction_limits(links[k], 1.0))
    }
    return len(rubbing | {stop.coordinate for stop in scene.stops}) + len(scene.tendons)


def _of_single(scene: Scene, links: Mechanism, wanted: float) -> Effort:
    """The least effort for contacts with joints of their own, measured once for a robot.

    Random states say nothing about stops, which are rare among them, and where a robot is held may be an input.
    """
    goal = max(0.1 * wanted, FINEST)
    unmeasured = replace(UNMEASURED[wanted < DEFAULT_ACCURACY], goal=goal)
    if scene.stops or scene.tendons or scene.held or not scene.candidates:
        return unmeasured
    known = scene.model.__dict__.setdefault("_contact_efforts", {})
    key = (scene.friction, wanted)
    if key not in known:
        share = REACHED[wanted < DEFAULT_ACCURACY]
        found = measured.least_effort(scene.model, links, scene, SINGLE, wanted, share)
        if found is None:
            return unmeasured
        known[key] = replace(found, goal=goal)
    return known[key]


def chosen(scene: Scene, links: Mechanism, accuracy: float | None = None) -> Effort:
    """The least effort of the table for this residual, or the largest one there is."""
    wanted = DEFAULT_ACCURACY if accuracy is None else accuracy
    turning = any(each.torsional_friction or each.rolling_friction for each in scene.candidates)
    many_joints = joint_row_count(scene, links) > FEW_JOINTS
    if not (turning or many_joints or is_redundant(scene, links)):
        return _of_single(scene, links, wanted)
    if scene.held:
        table = STIFF
    else:
        table = RUBBING if many_joints else REDUNDANT
    return next((effort for reached, effort in table.items() if reached <= wanted), list(table.values())[-1])
