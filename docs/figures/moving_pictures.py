"""Short moving pictures of the gallery and the README, taken from the project's own pages in a browser.

    python docs/figures/moving_pictures.py --list       the names
    python docs/figures/moving_pictures.py              all of them
    python docs/figures/moving_pictures.py walks plans
    python docs/figures/moving_pictures.py go2 --go2 scene.xml

Each runs an example, writes its page file, shows it moment by moment and gives the frames to ffmpeg: NAME.webm and
NAME.webp (the still) in ``docs/figures/films``. ``walks`` also makes the GIF of the README: the whole page that the
command beside it writes. A film in which a link goes through the floor is refused. Needs chromium, chromedriver, ffmpeg
and the packages of ``linkwise[test]``.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from make_figures import ROOT, Camera

import linkwise as lw
from linkwise.geometry.solids import Mesh, box, sphere
from linkwise.model import Transform
from linkwise.view import write_page
from linkwise.view.offline.page import _packed
from linkwise.view.parts import ScenePart, skeleton_parts

FILMS = Path(__file__).resolve().parent / "films"
SIZE, RATE = (640, 400), 25
MOST_BYTES = 1_000_000
sys.path.insert(0, str(ROOT / "examples"))  # modules that examples share
UNDER = 0.006  # [m] by which a drawn link may be below the floor: capsules are rounder than feet
GREEN, GREY = (46, 139, 87), (150, 160, 175)
BARE = "main, #hint { display: none } body { display: block } #view { position: absolute; inset: 0 }"


@dataclass
class Film:
    """What is shown: a robot at the positions of every frame, fixed solids, a solid that moves, forces of contacts."""

    robot: lw.Robot
    q: np.ndarray
    seconds: float
    solids: Sequence[tuple[Mesh, tuple[int, int, int]]] = ()
    target: np.ndarray | None = None  # (frames, 3): a ball
    points: np.ndarray | None = None
    forces: np.ndarray | None = None
    result: Any = None
    camera: dict[str, float] = field(
        default_factory=dict
    )  # yaw, pitch, distance; up [m]: how much higher it looks
    floor: float = 0.0  # [m]
    hidden: tuple[str, ...] = ()  # groups of solids; shapes that may touch are opaque then
    bodies: Sequence[tuple[str, Mesh, tuple[int, int, int]]] = ()  # solids that are fixed to frames

    @property
    def frames(self) -> int:
        return round(self.seconds * RATE)


MADE: dict[str, Callable[[], Film]] = {}
GIVEN: dict[str, str] = {}  # files of robots that are not part of the project


def film(function: Callable[[], Film]) -> Callable[[], Film]:
    MADE[function.__name__] = function
    return function


def example(name: str) -> dict[str, Any]:
    """The names of an example after it ran; what it prints is left out."""
    with contextlib.redirect_stdout(io.StringIO()):
        arguments, sys.argv = sys.argv, [name]
        try:
            return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
        finally:
            sys.argv = arguments


def at_times(t: np.ndarray, rows: np.ndarray, seconds: float, speed: float = 1.0) -> np.ndarray:
    """Rows at the times of the frames."""
    wanted = speed * np.arange(round(seconds * RATE)) / RATE
    return rows[np.clip(np.searchsorted(t, wanted + t[0]), 0, len(t) - 1)]


def of_result(robot: lw.Robot, result: Any, seconds: float, speed: float = 1.0, **camera: float) -> Film:
    rows = {
        name: at_times(result.t, np.asarray(values), seconds, speed)
        for name, values in (
            ("q", result.q),
            ("points", result.contact_points),
            ("forces", result.contact_arrows),
        )
    }
    return Film(robot, seconds=seconds, result=result, camera=camera, **rows)


# -- the films -----------------------------------------------------------------------------------------------


@film
def walks() -> Film:
    """A quadruped trots, is pushed to the side, turns and stops."""
    made = example("59_quadruped_walks")
    return of_result(made["robot"], made["result"], 4.0, distance=0.75)


@film
def go2() -> Film:
    """A Unitree Go2 stands, trots, turns and stops; needs --go2, the file scene.xml of MuJoCo's collection."""
    from linkwise import optimal
    from linkwise.simulate import simulate

    robot = lw.load(GIVEN["go2"], contact=True)
    stand = [0.0, 0.9, -1.8] * 4
    walk = optimal.Walking(
        robot, "trot", (0.5, 0.0, 0.0), stand=stand, torque_limits=np.tile([23.7, 23.7, 45.4], 4)
    )
    orders = {round(t, 3): order for t, order in ((1.5, (0.4, 0.0, 0.7)), (3.2, None))}

    def controller(t: float, q: np.ndarray, qd: np.ndarray, reference: Any) -> np.ndarray:
        if round(t, 3) in orders:
            order = orders.pop(round(t, 3))
            walk.halt() if order is None else walk.command(order)
        return walk(t, q, qd)

    begin = walk.feet.stand
    result = simulate(robot, controller, begin, duration=4.4, step=0.002, every=10, q=begin, accuracy=1e-4)
    return of_result(robot, result, 4.4, distance=0.8, yaw=0.9, pitch=0.3)


@film
def lifts() -> Film:
    """A gripper lifts a cube and holds it; slowed 2.5 times."""
    made = example("56_gripper_lifts_a_cube")
    film = of_result(made["scene"], made["result"], 3.0, 0.4, distance=0.8, yaw=-0.5, up=0.06)
    palm = box((0.03, 0.16, 0.02)).moved(Transform.from_rpy((0.0, 0.0, -0.04)))
    film.hidden, film.bodies = ("skeleton", "joints"), [("hand", palm, GREY)]
    return film


@film
def delta() -> Film:
    """A delta robot: closed loops."""
    made = example("30_delta_robot")
    result = made["found"]
    return Film(
        made["robot"],
        at_times(result.t, np.asarray(result.q), 4.0),
        4.0,
        camera={"distance": 0.6},
        floor=-1.5,
    )


@film
def plans() -> Film:
    """A Panda goes around a wall on a table."""
    from linkwise.collision import Box, HalfSpace, World

    robot = lw.load("panda").with_payload(1.0, (0.0, 0.0, 0.1), np.zeros((3, 3)))
    boxes = [((0.35, -0.7, 0.0), (0.85, 0.7, 0.3)), ((0.45, -0.05, 0.3), (0.85, 0.05, 0.75))]
    world = World([*(Box(*each) for each in boxes), HalfSpace((0, 0, 1), -0.05)])
    start, goal = np.array([[-0.7, 0.1, 0.0, -1.8, 0.0, 2.0, 0.0], [0.7, 0.1, 0.0, -1.8, 0.0, 2.0, 0.0]])
    found = lw.motion.plan(robot, start, goal, world, velocity=1.0, acceleration=3.0)
    assert found, found.message
    there = found.motion.at(np.linspace(0.0, found.motion.duration, 55)).q
    q = np.concatenate([np.repeat(there[:1], 8, 0), there, np.repeat(there[-1:], 8, 0), there[::-1]])
    solids = []
    for low, high in boxes:
        middle, edges = (np.array(low) + high) / 2, np.array(high) - low
        solids.append((box(edges).moved(Transform.from_rpy(middle)), GREY))
    return Film(robot, q, len(q) / RATE, solids, camera={"yaw": 2.3, "pitch": 0.45, "distance": 1.2})


@film
def follows() -> Film:
    """Predictive control: the flange of a Panda follows a target that moves."""
    from linkwise import optimal
    from linkwise.simulate import simulate

    robot = lw.load("panda")
    home = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.7, 0.8])
    pose = robot.pose(home)
    law = optimal.Predictive(robot, horizon=15, step=0.02, frequency=12.0, tip=True)
    seconds = 5.0

    def target(t: float) -> np.ndarray:
        s = 2.0 * np.pi * t / seconds
        return pose[:3, 3] + np.array([0.05 * np.sin(2 * s), 0.25 * np.sin(s), 0.12 * np.sin(2 * s)])

    def controller(t: float, q: np.ndarray, qd: np.ndarray, reference: Any) -> np.ndarray:
        wanted = pose.copy()
        wanted[:3, 3] = target(t)
        law.aim({"tip.target": wanted})
        return law(t, q, qd)

    result = simulate(
        robot, controller, home, duration=seconds, step=0.002, control_period=0.01, q=home, every=5
    )
    balls = np.array([target(k / RATE) for k in range(round(seconds * RATE))])
    q = at_times(result.t, np.asarray(result.q), seconds)
    return Film(robot, q, seconds, target=balls, camera={"yaw": 2.3, "pitch": 0.3, "distance": 0.85})


# -- the live page -------------------------------------------------------------------------------------------


def drags(camera: Camera) -> None:
    """Predictive control on the live page: the mouse drags the target, the arm follows at its limits."""
    from linkwise.view import serve

    size, seconds = (900, 520), 6.0
    page = serve(lw.load("panda"), port=8190, shadows=False)
    law = next(tab for tab in page.tabs if tab.title == "Control").dragged  # type: ignore[attr-defined]
    try:
        page.pose(np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.7, 0.8]))
        driver = camera.open(page.url, size=size)
        camera.until(lambda: driver.execute_script(TAB, "Control"), "the page")
        law.on.value = True
        camera.until(lambda: law.handle is not None and law._thread is not None, "the controller")
        law._running.clear()  # from here on a frame is advanced by a frame of the film
        law._thread.join()
        page.centre()
        camera.until(lambda: square_of(screenshot(camera)) is not None, "the handle")
        frames = camera.folder / "drags"
        frames.mkdir()
        at = np.array(square_of(screenshot(camera)))
        mouse(driver, "mouseMoved", at)
        mouse(driver, "mousePressed", at)
        for k in range(round(seconds * RATE)):
            s = (
                2.0 * np.pi * max(0.0, k / RATE - 0.4) / (seconds - 1.0)
                if k / RATE < seconds - 0.6
                else 2.0 * np.pi
            )
            mouse(driver, "mouseMoved", at + [70.0 * np.sin(s), -45.0 * np.sin(2.0 * s)])
            tau = law.advance(1.0 / RATE)
            page.pose(law.q, tau)
            driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
            screenshot(camera).save(frames / f"{k:04d}.png")
        mouse(driver, "mouseReleased", at)
        encode(frames, "drags", round(seconds * RATE))
    finally:
        page.close()


TAB = """
for (const note of document.querySelectorAll(".mantine-Notification-root")) note.remove();
const leaves = [...document.querySelectorAll("*")].filter((each) => !each.childElementCount);
const tab = leaves.find((each) => each.textContent.trim() === arguments[0]);
if (tab) tab.click();
return Boolean(tab);
"""


def mouse(driver: Any, kind: str, at: np.ndarray) -> None:
    """A move, a press or a release of the left button."""
    held = kind != "mouseReleased"
    given = {"type": kind, "x": float(at[0]), "y": float(at[1]), "button": "left", "clickCount": 1}
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", {**given, "buttons": int(held)})


def square_of(image: Any) -> tuple[float, float] | None:
    """The middle of the red square of the handle, which is dragged in a plane [pixels]."""
    from scipy import ndimage

    red, green, blue = np.moveaxis(np.asarray(image).astype(int), -1, 0)
    parts, _ = ndimage.label((red > 225) & (green < 100) & (blue < 150))
    for k, (rows, columns) in enumerate(ndimage.find_objects(parts)):
        inside = parts[rows, columns] == k + 1
        if inside.sum() > 400 and inside.mean() > 0.8:
            return (columns.start + columns.stop) / 2, (rows.start + rows.stop) / 2
    return None


# -- taking them ---------------------------------------------------------------------------------------------


def lowest(made: Film) -> float:
    """The height of the lowest drawn point of links in all frames [m]."""
    from linkwise.geometry.skeleton import body_poses, skeleton

    parts = [part for part in skeleton_parts(made.robot, skeleton(made.robot)) if part.body > 0]
    least = np.inf
    for q in made.q[::3]:
        poses = body_poses(made.robot, q)
        for part in parts:
            pose = poses[part.body] @ part.pose
            heights = part.mesh.vertices @ np.asarray(pose.rotation)[2] + pose.translation[2]
            least = min(least, float(heights.min()))
    return least


STYLE = "const style = document.createElement('style'); style.textContent = arguments[0]; document.head.append(style)"
SETUP = """
const {scene} = window.linkwise, [solids, ball, camera, hidden] = arguments;
for (const group of hidden) scene.shown[group] = false;
if (hidden.length) for (const part of scene.parts) if (part.group === "contacts") part.opacity = 1;
for (const part of solids) scene.parts.push(scene.solid(part));
window.ball = ball ? scene.solid(ball) : null;
if (window.ball) scene.parts.push(window.ball);
scene.shown.extra = true; scene.shown.arrows = true;
if (camera.yaw !== undefined) scene.camera.yaw = camera.yaw;
if (camera.pitch !== undefined) scene.camera.pitch = camera.pitch;
if (camera.distance !== undefined) scene.camera.distance *= camera.distance;
if (camera.up !== undefined) scene.camera.target[2] += camera.up;
"""
SHOW = """
const {scene, arm, data} = window.linkwise, [q, points, forces, ball, moved] = arguments;
scene.place(arm.functions.poses({q: Float64Array.from(q)}).poses);
if (window.ball) window.ball.pose = matrix([1, 0, 0, ball[0], 0, 1, 0, ball[1], 0, 0, 1, ball[2]]);
if (moved) scene.follow(moved);
if (points) scene.push(points, forces, data.simulation.scale);
scene.now();
"""


def solid(mesh: Mesh, colour: tuple[int, int, int], body: int = -1, pose: Transform | None = None) -> Any:
    return _packed(ScenePart("extra", body, "extra", mesh, colour, pose or Transform.identity()), mesh)


def screenshot(camera: Camera) -> Any:
    from PIL import Image

    data = camera.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


def take(camera: Camera, name: str, made: Film) -> None:
    under = made.floor - lowest(made)
    if under > UNDER:
        raise SystemExit(f"{name}: a link is {1000 * under:.0f} mm under the floor")
    page = camera.folder / f"{name}.html"
    write_page(made.robot, page, q=made.q[0], result=made.result, dark=False)
    driver = camera.open(page, size=SIZE)
    camera.until(lambda: driver.execute_script("return Boolean(window.linkwise)"), "the page")
    driver.execute_script(STYLE, BARE)
    ball = solid(sphere(0.03), GREEN) if made.target is not None else None
    fixed = [solid(*each) for each in made.solids]
    fixed += [solid(mesh, colour, *made.robot.locate(frame)) for frame, mesh, colour in made.bodies]
    driver.execute_script(SETUP, fixed, ball, made.camera, made.hidden)
    frames = camera.folder / name
    frames.mkdir()
    floats = made.robot.moving_joints[0].type == "floating"
    for k in range(made.frames):
        given = (
            [made.points[k].tolist(), made.forces[k].tolist()] if made.points is not None else [None, None]
        )
        place = made.target[k].tolist() if made.target is not None else None
        moved = (made.q[k, :3] - made.q[0, :3]).tolist() if floats else None
        driver.execute_script(SHOW, made.q[k].tolist(), *given, place, moved)
        screenshot(camera).save(frames / f"{k:04d}.png")
    encode(frames, name, made.frames)
    if name == "walks":
        page_of_the_readme(camera, made, page)


def encode(frames: Path, name: str, count: int) -> None:
    """NAME.webm from frames, and a still."""
    from PIL import Image

    FILMS.mkdir(exist_ok=True)
    target = FILMS / f"{name}.webm"
    options = ["-c:v", "libvpx-vp9", "-crf", "38", "-b:v", "0", "-pix_fmt", "yuv420p", "-an", str(target)]
    source = ["ffmpeg", "-y", "-loglevel", "error", "-framerate", str(RATE), "-i", str(frames / "%04d.png")]
    subprocess.run([*source, *options], check=True)
    Image.open(frames / f"{count // 3:04d}.png").save(FILMS / f"{name}.webp", quality=80)
    report(target)


def page_of_the_readme(camera: Camera, made: Film, page: Path) -> None:
    """The whole page that the command of the README writes, as a GIF."""
    driver = camera.open(page, size=(900, 440))
    camera.until(lambda: driver.execute_script("return Boolean(window.linkwise)"), "the page")
    frames = camera.folder / "readme"
    frames.mkdir()
    for k in range(35):
        driver.execute_script(
            "window.linkwise.simulation.at(arguments[0]); window.linkwise.scene.now()", k / 10
        )
        screenshot(camera).save(frames / f"{k:04d}.png")
    target = FILMS.parent / "walk.gif"
    colours = (
        "scale=680:-1:flags=lanczos,split[a][b];[a]palettegen=max_colors=48[p];[b][p]paletteuse=dither=none"
    )
    source = ["ffmpeg", "-y", "-loglevel", "error", "-framerate", "10", "-i", str(frames / "%04d.png")]
    subprocess.run([*source, "-vf", colours, str(target)], check=True)
    report(target)


def report(path: Path) -> None:
    size = path.stat().st_size
    print(f"{path.name}: {size / 1024:.0f} KiB")
    if size > MOST_BYTES:
        raise SystemExit(f"{path.name} has {size} bytes, more than {MOST_BYTES}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=(*MADE, "drags", []), help="by default all")
    parser.add_argument("--go2", help="file of a Unitree Go2 with the ground, for the film of that name")
    parser.add_argument("--list", action="store_true", help="print the names")
    given = parser.parse_args()
    if given.list:
        every = {**MADE, "drags": drags}
        print("\n".join(f"{name}: {function.__doc__}" for name, function in every.items()))
        return
    if given.go2:
        GIVEN["go2"] = given.go2
    with tempfile.TemporaryDirectory() as folder:
        camera = Camera(Path(folder), FILMS)
        try:
            for name in given.names or [*(each for each in MADE if each != "go2" or given.go2), "drags"]:
                drags(camera) if name == "drags" else take(camera, name, MADE[name]())
        finally:
            camera.close()


if __name__ == "__main__":
    main()
