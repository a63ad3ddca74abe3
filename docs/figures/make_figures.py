"""Pictures of README and documentation, taken in a real browser without a window.

    python docs/figures/make_figures.py --list          the names
    python docs/figures/make_figures.py                 all of them
    python docs/figures/make_figures.py view-others tour-report

A picture is a function with the decorator ``picture``: it gets a ``Camera``, opens pages with it and saves one or
several files. Needs chromium, chromedriver and the packages of ``linkwise[test]``; pictures of the documentation those
of ``linkwise[docs]``.
"""

from __future__ import annotations

import argparse
import base64
import functools
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).resolve().parent
ROOT = FIGURES.parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # browser.py

PHONE = (390, 844)
COLOURS = 128  # of a picture; fewer make the file smaller
PATIENCE = 60.0  # [s] for a page to be drawn in software


class Camera:
    """A browser, a folder for temporary files, and where pictures are saved."""

    def __init__(self, folder: Path, out: Path):
        self.folder, self.out = folder, out

    @functools.cached_property
    def driver(self) -> Any:
        """The browser, started when it is needed."""
        from browser import start

        driver = start(self.folder, 1280, 800)
        driver.set_script_timeout(PATIENCE)
        return driver

    def open(
        self,
        address: str | Path,
        *,
        size: tuple[int, int] = (1280, 800),
        dark: bool = False,
        zoom: float = 1.0,
    ) -> Any:
        """Show a page or a file in a window of ``size`` pixels; the driver is the result."""
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": zoom, "mobile": size[0] < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.get(address.as_uri() if isinstance(address, Path) else address)
        return self.driver

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition; SystemExit if it does not come true."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"waited in vain for {what}")
            time.sleep(0.1)

    def shoot(self, name: str, *, height: int | None = None, top: int = 0, colours: int = COLOURS) -> Path:
        """Save what the window shows as NAME.png; with ``height`` that part of the page, from ``top`` on [pixels]."""
        from PIL import Image

        asked: dict[str, Any] = {"format": "png"}
        if height is not None:
            width = self.driver.execute_script("return document.documentElement.clientWidth")
            asked |= {"captureBeyondViewport": True}
            asked["clip"] = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        data = base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", asked)["data"])
        image = Image.open(io.BytesIO(data)).convert("RGB")
        target = self.out / f"{name}.png"
        image.quantize(colours, kmeans=2, dither=Image.Dither.NONE).save(target, optimize=True)
        print(f"{target.name}: {image.width} × {image.height}, {target.stat().st_size / 1024:.0f} KiB")
        return target

    def close(self) -> None:
        if "driver" in self.__dict__:
            self.driver.quit()


PICTURES: dict[str, Callable[[Camera], None]] = {}


def picture(name: str) -> Callable[[Callable[[Camera], None]], Callable[[Camera], None]]:
    """Register a function that takes one picture, or several that belong together."""

    def registered(function: Callable[[Camera], None]) -> Callable[[Camera], None]:
        PICTURES[name] = function
        return function

    return registered


def linkwise(camera: Camera, *arguments: object) -> None:
    """Run a command of the command line in the temporary folder."""
    command = [sys.executable, "-m", "linkwise", *map(str, arguments)]
    ran = subprocess.run(command, cwd=camera.folder, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"linkwise {' '.join(map(str, arguments))}: {ran.stderr}")


# -- the 3-D page -----------------------------------------------------------------------------------------------------


@picture("view-panda")
def view_panda(camera: Camera) -> None:
    """The 3-D page with a Panda and a load of 2 kg: the picture of README and home page."""
    import linkwise as lw
    from linkwise.view.page import serve

    path = robot_file("panda_description/urdf/panda.urdf")
    robot = lw.load(path, lock={"panda_finger_joint1": 0.03})
    page = serve(robot, path, port=0, shadows=True)
    page.pose([0.2, -0.3, 0.1, -1.9, 0.1, 1.8, 0.8])
    page.carry(2.0)
    show_page(camera, page.url)
    camera.shoot("view-panda", colours=256)
    page.close()


@picture("view-tabs")
def view_tabs(camera: Camera) -> None:
    """The 3-D page with a PUMA 560: joints, a motion, a controller, generated code."""
    import linkwise as lw
    from linkwise.view.page import serve

    page = serve(lw.load("puma560"), port=0)
    page.pose([0.3, 0.5, -2.2, 0.4, 0.6, 0.0])
    show_page(camera, page.url)
    camera.shoot("view-puma560", colours=256)
    for title, button, wait in (
        ("Motion", "Play", 4.0),
        ("Control", "Simulate and play", 12.0),
        ("Code", "", 1.0),
    ):
        press(camera, "[role=tab]", title)
        if button:
            press(camera, "button", button)
        time.sleep(wait)
        camera.shoot(f"view-{title.lower()}", colours=256)
        if button:
            press(camera, "button", "Pause" if title == "Motion" else "Stop")
    page.close()


@picture("view-others")
def view_others(camera: Camera) -> None:
    """The 3-D page with an arm without meshes and its ellipsoids of inertia."""
    import linkwise as lw
    from linkwise.view.page import serve

    page = serve(lw.load("iiwa14"), port=0)
    page.pose([0.3, 0.7, 0.2, -1.2, 0.3, 0.9, 0.0])
    for group in ("ellipsoids", "masses"):
        page.scene.show(group, True)
    show_page(camera, page.url)
    camera.shoot("view-no-meshes", colours=256)
    page.close()


@picture("view-looks")
def view_looks(camera: Camera) -> None:
    """The 3-D page on a phone, and with two robots side by side."""
    import linkwise as lw
    from linkwise.view.page import serve

    q = [0.3, 0.5, -2.2, 0.4, 0.6, 0.0]
    robot = lw.load("puma560")
    page = serve(robot, port=0)
    page.pose(q)
    show_page(camera, page.url, size=PHONE)
    camera.shoot("view-phone", colours=256)
    page.close()
    page = serve(robot, port=0, others=[robot.with_payload(2.5)])
    page.pose(q)
    show_page(camera, page.url)
    camera.shoot("view-beside", colours=256)
    page.close()


@picture("page-file")
def page_file(camera: Camera) -> None:
    """A page file with a Panda and its meshes: light, and dark on a phone."""
    path = robot_file("panda_description/urdf/panda.urdf")
    linkwise(camera, "view", path, "--lock", "panda_finger_joint1=0.03", "--out", "panda.html")
    position = "linkwise.arm.values.set([0.2, -0.3, 0.1, -1.9, 0.1, 1.8, 0.8]); linkwise.refresh()"
    for name, options in (("page-file", {}), ("page-file-phone", {"size": PHONE, "dark": True})):
        driver = camera.open(camera.folder / "panda.html", **options)
        camera.until(
            lambda driver=driver: driver.execute_script("return Boolean(window.linkwise)"), "the page"
        )
        driver.execute_script(position)
        camera.until(lambda driver=driver: drawn(driver), "the robot")
        time.sleep(1.0)
        camera.shoot(name, colours=256)


def press(camera: Camera, kind: str, label: str) -> None:
    """Press the element with this text, when it is there."""
    script = """
        const found = [...document.querySelectorAll(arguments[0])].find(e => e.textContent.trim() === arguments[1]);
        for (const kind of ['keydown', 'keyup'])  // tabs answer to keys, buttons to clicks
            found?.dispatchEvent(new KeyboardEvent(kind, {key: 'Enter', code: 'Enter', bubbles: true}));
        found?.click();
        return Boolean(found);
    """
    camera.until(lambda: camera.driver.execute_script(script, kind, label), label)


def show_page(camera: Camera, url: str, **options: Any) -> None:
    """Open a 3-D page and wait until bars and robot are drawn."""
    driver = camera.open(url, **options)
    camera.until(lambda: driver.find_elements("css selector", ".lw-bar"), "the bars")
    camera.until(lambda: len(driver.find_elements("css selector", "[role=slider]")) > 1, "the sliders")
    camera.until(lambda: drawn(driver), "the robot")  # by software, which takes long
    time.sleep(2.0)
    driver.execute_script("document.querySelectorAll('[class*=Notification]').forEach(e => e.remove())")
    time.sleep(0.5)


def drawn(driver: Any) -> bool:
    """Whether the 3-D part has more shades than an empty floor."""
    from PIL import Image

    image = Image.open(io.BytesIO(driver.find_element("css selector", "canvas").screenshot_as_png)).convert(
        "RGB"
    )
    width, height = image.size
    middle = image.crop((width // 4, height // 4, 3 * width // 4, 3 * height // 4))
    return len(middle.getcolors(1 << 24) or ()) > 300


def robot_file(name: str) -> Path:
    """A robot with its meshes, of the package example-robot-data."""
    import importlib.metadata

    files = importlib.metadata.distribution("example-robot-data").files or []
    return next(Path(str(file.locate())) for file in files if str(file).endswith(name))


# -- charts and pages of the documentation ----------------------------------------------------------------------------


@picture("speed")
def speed(camera: Camera) -> None:
    """Speed against peers, as a chart of the figures in README's table: speed.svg."""
    target = camera.out / "speed.svg"
    target.write_text(speed_chart((ROOT / "README.md").read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{target.name}: {target.stat().st_size / 1024:.0f} KiB")


def speed_chart(readme: str) -> str:
    """Bars of every row of README's table of speed that has batches in float64: nanoseconds per state."""
    from linkwise.report import Bar, Figure, bar_chart

    rows = re.findall(r"^\| ([\w ]+), 4096 states, float64 \|(.+)\|$", readme, re.MULTILINE)
    bars = []
    for function, cells in rows:
        values = [re.match(r"\s*([\d.]+)", cell) for cell in cells.split("|")]
        names = ("Linkwise", "Pinocchio 4.1", "C generated by CasADi")
        for group, (name, value) in enumerate(zip(names, values, strict=True)):
            if value is not None:
                label = f"{function}, {name}" if group == 0 else name
                bars.append(Bar(label, float(value[1]), (0, 1, 4)[group], f"{value[1]} ns"))
    chart = Figure("speed", bar_chart(bars, width=720)).file()
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>'  # readable on dark pages too
    return re.sub(r"(<svg [^>]*>)", rf"\1{paper}", chart, count=1) + "\n"


def built_site(camera: Camera) -> Path:
    """The documentation, built into the temporary folder."""
    site = camera.folder / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return site


# -- reports ----------------------------------------------------------------------------------------------------------


@picture("tour-report")
def tour(camera: Camera) -> None:
    """The report of `linkwise tour panda`."""
    linkwise(camera, "tour", "panda", "--no-open", "--out", "tour.html")
    camera.open(camera.folder / "tour.html", size=(1000, 800))
    camera.shoot("tour-report", height=1500)


@picture("identification-report")
def identification_report(camera: Camera) -> None:
    """A part of the report of a simulated PUMA 560."""
    for seed, name in enumerate(("train", "test")):
        linkwise(camera, "excite", "puma560", "--duration", 8, "--seed", seed, "--out", f"{name}-motion.csv")
        follow = ["--trajectory", f"{name}-motion.csv", "--duration", 8, "--frequency", 80, "--every", 4]
        law = ["--controller", "computed_torque", *follow, "--noise", "1e-5"]
        linkwise(camera, "simulate", "puma560", *law, "--out", f"{name}.csv")
    given = ["puma560", "train.csv", "--validate", "test.csv", "--friction", "coulomb"]
    linkwise(camera, "identify", *given, "--report", "arm.html")
    driver = camera.open(camera.folder / "arm.html", size=(1000, 800))
    script = (
        "return [...document.querySelectorAll('h2')].map(e => [e.textContent, e.getBoundingClientRect().top])"
    )
    tops = {title: top for title, top in driver.execute_script(script)}
    first = next(top for title, top in tops.items() if "predict" in title)
    camera.shoot("identification-report", top=int(first) - 30, height=1200)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="pictures; by default all")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--out", type=Path, default=FIGURES, help="folder for the pictures")
    given = parser.parse_args()
    if given.list:
        for name, function in PICTURES.items():
            print(f"{name}: {(function.__doc__ or '').splitlines()[0]}")
        return
    unknown = [name for name in given.names if name not in PICTURES]
    if unknown:
        raise SystemExit(f"no picture {unknown[0]!r}; pictures: {', '.join(PICTURES)}")
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        camera = Camera(Path(folder), given.out)
        try:
            for name in given.names or PICTURES:
                PICTURES[name](camera)
        finally:
            camera.close()


if __name__ == "__main__":
    main()
