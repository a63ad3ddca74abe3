"""Random MJCF files, and changes to them: attributes and elements changed, left out, misspelt, repeated or moved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from random import Random
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement


def random_file(rng: Random) -> Element:
    """An arm of a few bodies, with most of what MJCF has to describe one."""
    root = Element("mujoco", {"model": "arm"})
    if rng.random() < 0.6:
        SubElement(root, "compiler", some(rng, COMPILER))
    if rng.random() < 0.6:
        option = SubElement(root, "option", some(rng, OPTION))
        if rng.random() < 0.5:
            SubElement(option, "flag", some(rng, FLAG))
    classes = ["main"]
    if rng.random() < 0.7:
        top = SubElement(root, "default")
        defaults(rng, top)
        for name in ("x", "y"):
            if rng.random() < 0.6:
                inner = SubElement(rng.choice([e for e in top.iter("default")]), "default", {"class": name})
                defaults(rng, inner)
                classes.append(name)
    world = SubElement(root, "worldbody")
    if rng.random() < 0.4:
        SubElement(world, "geom", {"type": "plane", "size": "1 1 1"})
    places = [world]
    for k in range(rng.randint(1, 4)):
        place = rng.choice(places[-2:])
        if rng.random() < 0.2:
            place = SubElement(place, "frame", pose(rng))
        given = {"name": f"b{k}", **pose(rng)}
        if rng.random() < 0.2:
            given["childclass"] = rng.choice(classes)
        body = SubElement(place, "body", given)
        inside = body
        if rng.random() < 0.15:
            inside = SubElement(body, "frame", pose(rng))
        free = place is world and rng.random() < 0.1
        if free:
            SubElement(inside, "freejoint", {"name": f"f{k}"})
        for j in range(0 if free else rng.choice((0, 1, 1, 1, 1, 2))):
            SubElement(inside, "joint", {"name": f"j{k}{j}", **joint(rng), **classed(rng, classes)})
        stated = rng.random() < 0.6
        if stated:
            inertial(rng, body)
        for _ in range(rng.choice((0 if stated else 1, 1, 2))):
            SubElement(inside, "geom", {**geom(rng), **classed(rng, classes)})
        if rng.random() < 0.4:
            SubElement(inside, "site", {"name": f"s{k}", **pose(rng), **classed(rng, classes)})
        places.append(body)
    if rng.random() < 0.2:
        SubElement(SubElement(root, "actuator"), "motor", {"joint": "j00", "gear": "2"})
    if rng.random() < 0.2:
        SubElement(SubElement(root, "sensor"), "jointpos", {"joint": "j00"})
    return root


def number(rng: Random, low: float = -1.0, high: float = 1.0) -> str:
    return f"{rng.uniform(low, high):.4g}"


def vector(rng: Random, count: int = 3, low: float = -1.0, high: float = 1.0) -> str:
    return " ".join(number(rng, low, high) for _ in range(count))


ANGLES = {
    "euler": (3, -90, 90),
    "quat": (4, -1, 1),
    "axisangle": (4, -2, 2),
    "xyaxes": (6, -1, 1),
    "zaxis": (3, -1, 1),
}
# attribute -> how to draw a value for it
COMPILER = {
    "angle": lambda rng: rng.choice(("degree", "radian")),
    "eulerseq": lambda rng: rng.choice(("xyz", "XYZ", "zyx", "zYx", "xyx")),
    "autolimits": lambda rng: rng.choice(("true", "true", "true", "false")),
    "inertiafromgeom": lambda rng: rng.choice(("auto", "true", "false")),
    "inertiagrouprange": lambda rng: rng.choice(("0 5", "0 2", "1 3")),
    "balanceinertia": lambda rng: rng.choice(("true", "false")),
    "boundmass": lambda rng: rng.choice(("0", "1e-4", "0.3")),
    "boundinertia": lambda rng: rng.choice(("0", "1e-7", "0.05")),
    "settotalmass": lambda rng: rng.choice(("-1", "0", "2.5")),
    "fusestatic": lambda rng: "false",
    "usethread": lambda rng: "false",
}
OPTION = {
    "gravity": vector,
    "timestep": lambda rng: "0.002",
    "density": lambda rng: rng.choice(("0", "0", "1.2", "1000")),
    "viscosity": lambda rng: rng.choice(("0", "0", "0.5")),
    "wind": vector,
    "integrator": lambda rng: rng.choice(("Euler", "RK4", "implicitfast")),
}
FLAG = {
    key: (lambda rng: rng.choice(("enable", "disable")))
    for key in (
        "gravity",
        "damper",
        "spring",
        "constraint",
        "frictionloss",
        "equality",
        "limit",
        "contact",
        "energy",
    )
}
JOINT = {
    "type": lambda rng: rng.choice(("hinge", "hinge", "slide", "slide", "ball")),
    "axis": vector,
    "pos": vector,
    "ref": lambda rng: number(rng, -30, 30),
    "range": lambda rng: rng.choice((f"{number(rng, -3, 0)} {number(rng, 0, 3)}", "0 0", "-1 2", "2 -1")),
    "limited": lambda rng: rng.choice(("auto", "true", "false", "false")),
    "armature": lambda rng: number(rng, 0, 1),
    "damping": lambda rng: number(rng, 0, 2),
    "frictionloss": lambda rng: number(rng, 0, 1),
    "actuatorfrcrange": lambda rng: rng.choice(("-5 5", "-3 10", "0 0")),
    "actuatorfrclimited": lambda rng: rng.choice(("auto", "true", "false")),
    "stiffness": lambda rng: rng.choice(("0", number(rng, 0, 5))),
    "springref": number,
    "group": lambda rng: rng.choice(("0", "3")),
    "margin": lambda rng: "0.01",
}
GEOM = {
    "type": lambda rng: rng.choice(("sphere", "capsule", "cylinder", "ellipsoid", "box")),
    "size": lambda rng: vector(rng, rng.choice((1, 2, 3, 3)), 0.05, 0.4),
    "mass": lambda rng: rng.choice((number(rng, 0, 3), "0")),
    "density": lambda rng: rng.choice(("500", "0", "2000")),
    "fluidshape": lambda rng: rng.choice(("none", "ellipsoid")),
    "fluidcoef": lambda rng: rng.choice(("0.3 0.1 1.2 0.8 0.9", "0.4 0.3", "1")),
    "group": lambda rng: rng.choice(("0", "2", "4")),
    "fromto": lambda rng: vector(rng, 6),
    "shellinertia": lambda rng: rng.choice(("false", "false", "false", "true")),
    "contype": lambda rng: "0",
    "rgba": lambda rng: "1 0 0 1",
}


def some(rng: Random, attributes, share: float = 0.35) -> dict[str, str]:
    return {key: draw(rng) for key, draw in attributes.items() if rng.random() < share}


def pose(rng: Random) -> dict[str, str]:
    found = {}
    if rng.random() < 0.7:
        found["pos"] = vector(rng)
    if rng.random() < 0.5:
        key = rng.choice(list(ANGLES))
        found[key] = vector(rng, *ANGLES[key])
    return found


def geom(rng: Random) -> dict[str, str]:
    found = {**pose(rng), **some(rng, GEOM, 0.2), "size": vector(rng, 3, 0.05, 0.4)}
    if rng.random() < 0.6:
        found["type"] = GEOM["type"](rng)
    if "fromto" in found and rng.random() < 0.9:
        found["type"] = rng.choice(("capsule", "cylinder", "ellipsoid", "box"))
        found.pop("pos", None)
    return found


def joint(rng: Random) -> dict[str, str]:
    found = some(rng, JOINT)
    for switch, ends in (("limited", "range"), ("actuatorfrclimited", "actuatorfrcrange")):
        if found.get(switch) == "true":  # needs a range
            found[ends] = f"{number(rng, -3, -1)} {number(rng, 0, 3)}"
    return found


def inertial(rng: Random, body: Element) -> None:
    given = {"pos": vector(rng), "mass": number(rng, 0.1, 5)}
    moments = [rng.uniform(0.5, 0.9) for _ in range(3)]
    if rng.random() < 0.3:
        products = [rng.uniform(-0.1, 0.1) for _ in range(3)]
        given["fullinertia"] = " ".join(f"{x:.4g}" for x in (*moments, *products))
    else:
        given["diaginertia"] = " ".join(f"{x:.4g}" for x in moments)
        given.update({key: value for key, value in pose(rng).items() if key != "pos"})
    SubElement(body, "inertial", given)


def defaults(rng: Random, parent: Element) -> None:
    if rng.random() < 0.7:
        SubElement(
            parent, "joint", joint(rng) if rng.random() < 0.3 else {"damping": "0.3", "armature": "0.1"}
        )
    if rng.random() < 0.6:
        SubElement(parent, "geom", {**some(rng, GEOM, 0.08), **(pose(rng) if rng.random() < 0.2 else {})})
    if rng.random() < 0.3:
        SubElement(parent, "site", pose(rng) if rng.random() < 0.5 else {"size": "0.1"})


def classed(rng: Random, classes: list[str]) -> dict[str, str]:
    return {"class": rng.choice(classes)} if rng.random() < 0.15 else {}


VALUES = (
    "0",
    "1",
    "-1",
    "0.5",
    "3",
    "-20",
    "90",
    "1e-3",
    "1e-9",
    "1e-16",
    "1e3",
    "true",
    "auto",
    "0 0 1",
    "0 0 0",
)


def elements(root: Element) -> list[Element]:
    return [element for element in root.iter() if element is not root]


def parents(root: Element) -> dict[Element, Element]:
    return {child: parent for parent in root.iter() for child in parent}


def with_attributes(rng: Random, root: Element) -> Element | None:
    found = [element for element in root.iter() if element.attrib]
    return rng.choice(found) if found else None


def change_words(rng: Random, root: Element, changed: Callable[[list[str]], list[str]]) -> None:
    """Change the words of an attribute, if one is found that has any."""
    element = with_attributes(rng, root)
    if element is None:
        return
    key = rng.choice(list(element.attrib))
    words = element.get(key, "").split()
    if words:
        element.set(key, " ".join(changed(words)))


def change_number(rng: Random, root: Element) -> None:
    def other(words: list[str]) -> list[str]:
        k = rng.randrange(len(words))
        words[k] = rng.choice((rng.choice(VALUES), number(rng, -2, 2)))
        return words

    change_words(rng, root, other)


def change_length(rng: Random, root: Element) -> None:
    change_words(rng, root, lambda words: words[:-1] if rng.random() < 0.5 else [*words, words[-1]])


def drop_attribute(rng: Random, root: Element) -> None:
    element = with_attributes(rng, root)
    if element is not None:
        del element.attrib[rng.choice(list(element.attrib))]


def add_attribute(rng: Random, root: Element) -> None:
    pools = {"compiler": COMPILER, "option": OPTION, "flag": FLAG, "joint": JOINT, "geom": GEOM}
    element = rng.choice([e for e in root.iter() if e.tag in pools] or [root])
    if element is root:
        return
    pool = pools[element.tag]
    key = rng.choice(list(pool))
    element.set(key, pool[key](rng))


def turn(rng: Random, root: Element) -> None:
    """Another pose for something that has one."""
    found = [e for e in root.iter() if e.tag in ("body", "geom", "site", "frame", "inertial")]
    if found:
        rng.choice(found).attrib.update(pose(rng))


def misspell(rng: Random, root: Element) -> None:
    element = with_attributes(rng, root)
    if element is None:
        return
    key = rng.choice(list(element.attrib))
    k = rng.randrange(len(key))
    element.set(
        rng.choice((key[:k] + key[k + 1 :], key[:k] + "e" + key[k:], key.upper())) or "x",
        element.attrib.pop(key),
    )


def give_away(rng: Random, root: Element) -> None:
    """An attribute of one element to another one."""
    element = with_attributes(rng, root)
    if element is not None:
        key = rng.choice(list(element.attrib))
        rng.choice(elements(root)).set(key, element.get(key, ""))


def repeat(rng: Random, root: Element) -> None:
    everything = elements(root)
    if not everything:
        return
    element = rng.choice(everything)
    twin = copy.deepcopy(element)
    for k, inner in enumerate(twin.iter()):
        if "name" in inner.attrib and rng.random() < 0.9:
            inner.set("name", f"{inner.get('name')}_{rng.randrange(1000)}_{k}")
    above = parents(root)[element]
    above.insert(rng.randint(0, len(above)), twin)


def repeat_section(rng: Random, root: Element) -> None:
    """One more <compiler>, <option>, <default> or <worldbody>, somewhere in the file."""
    tag = rng.choice(("compiler", "option", "option", "default", "worldbody"))
    section = Element(tag, some(rng, {"compiler": COMPILER, "option": OPTION}.get(tag, {}), 0.25))
    if tag == "option" and rng.random() < 0.7:
        SubElement(section, "flag", some(rng, FLAG, 0.25))
    if tag == "default":
        defaults(rng, section)
    root.insert(rng.randint(0, len(root)), section)


def move(rng: Random, root: Element) -> None:
    everything = elements(root)
    element = rng.choice(everything)
    target = rng.choice([e for e in everything if e not in list(element.iter())] or [root])
    parents(root)[element].remove(element)
    target.insert(rng.randint(0, len(target)), element)


def nest(rng: Random, root: Element) -> None:
    """Put an element into a <frame> or a <body> of its own."""
    found = [e for e in root.iter() if e.tag in ("body", "geom", "site", "joint", "frame", "inertial")]
    if not found:
        return
    element = rng.choice(found)
    above = parents(root)[element]
    tag = rng.choice(("frame", "frame", "body"))
    k = list(above).index(element)
    above.remove(element)
    around = Element(tag, pose(rng))
    around.append(element)
    above.insert(k, around)


def drop(rng: Random, root: Element) -> None:
    everything = elements(root)
    if len(everything) > 1:
        element = rng.choice(everything)
        parents(root)[element].remove(element)


def swap(rng: Random, root: Element) -> None:
    above = rng.choice([e for e in root.iter() if len(e) > 1] or [root])
    if len(above) > 1:
        order = list(above)
        rng.shuffle(order)
        above[:] = order


MUTATIONS = (
    *(
        change_number,
        change_number,
        change_length,
        drop_attribute,
        add_attribute,
        add_attribute,
        turn,
        misspell,
    ),
    *(give_away, repeat, repeat, repeat_section, repeat_section, move, nest, drop, swap),
)


def mutated(seed: int, bases: Sequence[str] = ()) -> str:
    """File number ``seed``; from one of the given files instead of a random one, if there are any."""
    rng = Random(seed)
    root = ElementTree.fromstring(rng.choice(bases)) if bases else random_file(rng)
    for _ in range(rng.randint(0, 3)):
        if len(root):
            rng.choice(MUTATIONS)(rng, root)
    return ElementTree.tostring(root, encoding="unicode")
