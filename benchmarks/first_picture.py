"""How long a newcomer waits: from ``git clone`` to the first picture, the page of ``make demo``.

Clones the repository into an empty folder, runs ``make demo`` there with an empty cache of compiled code, and prints
the seconds of wall time and of processor time until each step is done. Packages come from where pip finds them.

    python benchmarks/first_picture.py [--repository PATH_OR_URL] [--dry-run] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS = {  # what appears, in this order
    "clone": "clone/Makefile",
    "environment": "clone/.venv/bin/python",
    "installed": "clone/.venv/.installed",
    "first picture (tour.html)": "clone/linkwise-demo/tour.html",
    "experiment of 1990 (report.html)": "clone/linkwise-demo/report.html",
}


def measured(repository: str, folder: Path) -> dict[str, float]:
    """Seconds from the start until each step is done."""
    environment = {**os.environ, "LINKWISE_CACHE": str(folder / "cache")}
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        environment.pop(name, None)  # as in a new shell; and no window is opened here
    command = f"git clone --quiet {repository} clone && make -C clone demo"
    begin, found = time.perf_counter(), {}
    with open(folder / "output.txt", "w", encoding="utf-8") as output:
        running = subprocess.Popen(
            ["sh", "-c", command], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        while running.poll() is None:
            for step, file in STEPS.items():
                if step not in found and (folder / file).exists():
                    found[step] = time.perf_counter() - begin
            time.sleep(0.02)
    if running.returncode:
        raise SystemExit((folder / "output.txt").read_text(encoding="utf-8")[-2000:])
    found["everything"] = time.perf_counter() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found | {"processor time": used.ru_utime + used.ru_stime}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repository", default=str(ROOT), help="what is cloned; by default this one")
    parser.add_argument("--dry-run", action="store_true", help="print the steps and stop")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    if given.dry_run:
        print("\n".join(STEPS))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = measured(given.repository, Path(folder))
    for step, seconds in found.items():
        print(f"{seconds:7.1f} s  {step}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
