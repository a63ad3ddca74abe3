"""States and robots that the tests of all frameworks use."""

import numpy as np

import linkwise as lw
from linkwise.functions.table import FUNCTIONS


def states(*shape, number=3, dof=7, dtype="float64", seed=3):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(*shape, dof)).astype(dtype) for _ in range(number)]


def held_arm():
    """An arm whose tool is held by a joint at a point."""
    arm = lw.load("two_link")
    tool = arm.link_names[-1]
    return arm.with_constraints([lw.Point(tool, tuple(arm.pose(np.array([0.3, -0.4]), tool)[:3, 3]))])


def every_kernel():
    """A kernel of every function: those of constraints of an arm that has some."""
    constrained = ("constrain", "delassus", "impact")
    arm, held = lw.load("two_link"), held_arm()
    touching = arm.with_contacts([lw.Contact(arm.default_frame())])
    return [
        (
            touching
            if name.startswith("contact_")
            else held
            if any(word in name for word in constrained)
            else arm
        ).kernel(name)
        for name in sorted(FUNCTIONS)
    ]


def parts(result):
    """One result or several, as a tuple."""
    return result if isinstance(result, tuple) else (result,)
