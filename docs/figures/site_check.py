"""Checks the built site in a real browser: what the search finds, weight of the home page, no addresses but files.

    python docs/figures/site_check.py                     builds the site first
    python docs/figures/site_check.py --site build/site

A word of a user must lead to a guide before the reference. Ends with status 1 where something is wrong. Needs what
``make_figures.py`` needs.
"""

from __future__ import annotations

import argparse
import base64
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlparse

from make_figures import Camera, built_site
from selenium.webdriver.common.keys import Keys

MOST = 500_000  # bytes of the home page with all that it loads
WORDS = tomllib.loads((Path(__file__).parents[1] / "search_words.toml").read_text(encoding="utf-8"))
PHRASES = {  # what users look for in several words, and the pages of which one must come first
    "gravity compensation": ("control",),
    "inverse kinematics": ("motion",),
    "mass matrix": ("cheat_sheet", "five_minutes", "which_library", "theory/estimation"),
    "real time": ("realtime", "control", "predictive_control"),
    "joint limits": ("motion", "optimal", "control", "conventions"),
    "time optimal": ("motion", "optimal"),
    "floating base": ("constraints",),
    "wrong inertia": ("your_own_robot",),
    "forward kinematics": ("which_library", "cheat_sheet", "motion"),
    "center of mass": ("constraints", "whole_body", "cheat_sheet", "theory/estimation"),
}


def first_results(camera: Camera, site: Path, word: str) -> list[str]:
    """Names of the pages that the search shows for a word, best first; the page stays open from word to word."""
    driver = camera.driver
    if not driver.current_url.endswith("index.html"):
        driver = camera.open(site / "index.html", size=(1366, 768))
        time.sleep(2.0)
        driver.find_element("css selector", ".md-search__input").click()
    field = driver.find_element("css selector", ".md-search__input")
    script = "return [...document.querySelectorAll('.md-search-result__item > a')].map(a => a.href)"
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.BACKSPACE)
    camera.until(lambda: not driver.execute_script(script), "an empty list")
    field.send_keys(word)
    camera.until(lambda: driver.execute_script(script), f"results of {word}")
    time.sleep(0.3)
    names = [
        Path(unquote(urlparse(link).path)).relative_to(site.resolve()).with_suffix("").as_posix()
        for link in driver.execute_script(script)
    ]
    return list(dict.fromkeys(names))


def loaded(camera: Camera, page: Path) -> tuple[int, list[str]]:
    """Bytes of a page with what it loads, and addresses that are not files."""
    driver = camera.open(page, size=(1366, 768))
    time.sleep(3.0)
    script = "return performance.getEntriesByType('resource').map(each => each.name)"
    addresses = [page.as_uri(), *driver.execute_script(script)]
    shown = driver.execute_script(
        "return [...document.querySelectorAll('[src], [poster], link[rel=stylesheet], link[rel=icon]')]"
        ".filter(e => e.tagName !== 'SOURCE' && e.tagName !== 'IFRAME').flatMap(e => [e.src, e.poster, e.href])"
    )
    foreign = [each for each in [*addresses, *shown] if each and urlparse(each).scheme in ("http", "https")]
    local = [each for each in [*addresses, *shown] if each and urlparse(each).scheme == "file"]
    files = {Path(unquote(urlparse(each).path)) for each in local}
    return sum(path.stat().st_size for path in files if path.is_file()), foreign


def printed_pages(camera: Camera, page: Path) -> int:
    """How many sheets of A4 a page takes."""
    driver = camera.open(page, size=(1366, 768))
    time.sleep(2.0)
    margins = {f"margin{side}": 0.4 for side in ("Top", "Bottom", "Left", "Right")}
    asked = {"paperWidth": 8.27, "paperHeight": 11.69, **margins}
    data = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", asked)["data"])
    return data.count(b"/Type /Page") - data.count(b"/Type /Pages")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--site", type=Path, help="a site that is built already")
    given = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        camera = Camera(Path(folder), Path(folder))
        try:
            site = given.site.resolve() if given.site else built_site(camera).resolve()
            wanted = {word: (page,) for page, words in WORDS.items() for word in words.split()} | PHRASES
            for word, pages in wanted.items():
                found = first_results(camera, site, word)
                print(f"{word}: {', '.join(found[:4])}")
                if found[0] not in pages:
                    wrong.append(f"{word}: leads to {found[0]}, wanted {' or '.join(pages)}")
            sheets = printed_pages(camera, site / "cheat_sheet.html")
            print(f"cheat sheet: {sheets} sheets of A4")
            if sheets > 2:
                wrong.append(f"the cheat sheet takes {sheets} sheets")
            size, foreign = loaded(camera, site / "index.html")
            print(f"home page: {size / 1000:.0f} kB with all that it loads")
            if size > MOST:
                wrong.append(f"the home page has {size} bytes")
            for page in ("index", "gallery", "control", "task_space", "api/robot", "notebooks/5_contact"):
                foreign += loaded(camera, site / f"{page}.html")[1]
            wrong += [f"not a file: {each}" for each in sorted(set(foreign))]
        finally:
            camera.close()
    print("\n".join(wrong) or "all is well")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
