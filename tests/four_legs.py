"""A body on four legs of three joints, which tests give feet of their own."""

import linkwise as lw


def four_legs(**limits) -> lw.Robot:
    """On a floating base, without contacts; joints are named as the links that they move.

    Args:
        **limits: of all joints, as ``lw.Limits`` takes them; where there are any, knees bend in one direction alone.
    """
    links = [lw.Link("body", lw.Inertia.from_com(8.0, (0, 0, 0), (0.1, 0.2, 0.25)))]
    joints = []
    for leg, (x, y) in enumerate(((0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1))):
        parent, at = "body", (x, y, 0.0)
        for part, axis, length in (
            ("side", (1, 0, 0), 0.0),
            ("hip", (0, 1, 0), 0.2),
            ("knee", (0, 1, 0), 0.2),
        ):
            name = f"{part}{leg}"
            links.append(lw.Link(name, lw.Inertia.from_com(0.5, (0, 0, -0.5 * length), (2e-3, 2e-3, 5e-4))))
            place = lw.Transform.from_rpy(at)
            own = {**limits, "upper": -0.5} if limits and part == "knee" else limits
            joints.append(lw.Joint(name, "revolute", parent, name, place, axis, limits=lw.Limits(**own)))
            parent, at = name, (0.0, 0.0, -length)
    return lw.Robot("legs", links, joints).with_base("floating")


def round_feet() -> list[lw.Contact]:
    """Spheres at the ends of the legs."""
    return [
        lw.Contact(f"knee{leg}", offset=(0, 0, -0.2), radius=0.02, friction=0.8, name=f"foot{leg}")
        for leg in range(4)
    ]
