"""Checks pages with axe-core in a real browser: page file, 3-D page, reports, documentation; light, dark, phone.

    python docs/figures/accessibility.py                  axe-core is fetched with ``npm pack``
    python docs/figures/accessibility.py --axe axe.min.js

Prints every finding and ends with status 1 if one is serious or critical. Needs what ``make_figures.py`` needs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from make_figures import PHONE, Camera, built_site, linkwise, press, show_page

AXE = "axe-core@4.14.0"
GRAVE = ("serious", "critical")
RUN = "const done = arguments[0]; axe.run().then(found => done(found.violations), error => done(String(error)));"
LOOKS = {
    "light": {},
    "dark": {"dark": True},
    "phone, light": {"size": PHONE},
    "phone, dark": {"size": PHONE, "dark": True},
}


def fetched(folder: Path) -> str:
    """The script of axe-core from its package."""
    subprocess.run(["npm", "pack", "--silent", AXE], cwd=folder, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("axe-core-*.tgz"))) as package:
        found = package.extractfile("package/axe.min.js")
        assert found is not None
        return found.read().decode()


def checked(camera: Camera, axe: str, page: str, look: str) -> list[tuple[str, str]]:
    """Findings of what the browser shows: (impact, text)."""
    camera.driver.execute_script(axe)
    found: Any = camera.driver.execute_async_script(RUN)
    if isinstance(found, str):
        raise SystemExit(f"{page}: {found}")
    lines = [(each["impact"], f"{each['id']}: {each['help']} ({len(each['nodes'])})") for each in found]
    print(f"{page}, {look}: {'no finding' if not lines else ''}")
    for impact, text in lines:
        print(f"    {impact}: {text}")
    for each in found:
        if each["impact"] in GRAVE:
            for node in each["nodes"][:3]:
                print(f"        {node['html'][:160]}")
    return lines


def page_file(camera: Camera, axe: str) -> list[tuple[str, str]]:
    linkwise(camera, "view", "panda", "--out", "arm.html")
    found = []
    for look, options in LOOKS.items():
        driver = camera.open(camera.folder / "arm.html", **options)
        camera.until(
            lambda driver=driver: driver.execute_script("return Boolean(window.linkwise)"), "the page"
        )
        for tab in driver.find_elements("css selector", "[role=tab]"):
            tab.click()
            found += checked(camera, axe, f"page file, {tab.text}", look)
    return found


def live_page(camera: Camera, axe: str) -> list[tuple[str, str]]:
    import linkwise as lw
    from linkwise.view.page import serve

    found = []
    for look, options in LOOKS.items():
        page = serve(lw.load("puma560"), port=0, dark=options.get("dark", False), shadows=False)
        show_page(camera, page.url, **options)
        for title in ("Joints", "Motion", "Control", "Code", "Show"):
            press(camera, "[role=tab]", title)
            found += checked(camera, axe, f"3-D page, {title}", look)
        page.close()
    return found


def in_all_looks(camera: Camera, axe: str, file: str, title: str) -> list[tuple[str, str]]:
    found = []
    for look, options in LOOKS.items():
        camera.open(camera.folder / file, **options)
        found += checked(camera, axe, title, look)
    return found


def report(camera: Camera, axe: str) -> list[tuple[str, str]]:
    motion = ["--trajectory", "quintic", "--to", "3.5,0.5,0.5,-1,0.5,1"]
    linkwise(camera, "inverse", "puma560", *motion, "--report", "report.html", "--out", "torques.csv")
    return in_all_looks(camera, axe, "report.html", "report")


def tour(camera: Camera, axe: str) -> list[tuple[str, str]]:
    linkwise(camera, "tour", "two_link", "--no-open", "--out", "tour.html")
    return in_all_looks(camera, axe, "tour.html", "report of a tour")


def documentation(camera: Camera, axe: str) -> list[tuple[str, str]]:
    site = built_site(camera)
    found = []
    for name in (
        "index.html",
        "gallery.html",
        "task_space.html",
        "troubleshooting.html",
        "notebooks/9_planning.html",
        "api/motion.html",
    ):
        for look, options in LOOKS.items():
            camera.open(site / name, **options)
            time.sleep(1.5)  # its script lets code that scrolls have the focus
            found += checked(camera, axe, f"documentation, {name}", look)
    return found


PAGES = {"file": page_file, "report": report, "tour": tour, "live": live_page, "documentation": documentation}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", choices=(*PAGES, []), help="by default all")
    parser.add_argument("--axe", type=Path, help="axe.min.js; by default it is fetched")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        axe = given.axe.read_text(encoding="utf-8") if given.axe else fetched(Path(folder))
        camera = Camera(Path(folder), Path(folder))
        try:
            found = [each for name in given.pages or PAGES for each in PAGES[name](camera, axe)]
        finally:
            camera.close()
    grave = [text for impact, text in found if impact in GRAVE]
    print(f"{len(found)} findings, {len(grave)} serious or critical")
    sys.exit(1 if grave else 0)


if __name__ == "__main__":
    main()
