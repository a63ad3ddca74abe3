"""3-D pages that commands serve: where they are, until Ctrl+C."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

import click

from linkwise.cli.support.output import say, say_json
from linkwise.core.foreign import line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise.view import Page


def announce(page: Page, wanted: int, as_json: bool) -> None:
    """Print the address of a page, and what it cannot show."""
    problems = page.looks.problems
    if as_json:
        say_json(
            {"url": page.url, "port": page.port, "meshes": len(page.looks.visuals), "problems": problems}
        )
    else:
        if wanted not in (0, page.port):
            say(f"port {wanted} is busy, {page.port} is not")
        for problem in problems[:3]:
            say(f"not shown: {problem}")
        if len(problems) > 3:
            say(f"and {len(problems) - 3} more, listed on the page")
        say(f"{line(page.robot.name)} is at {page.url} (Ctrl+C ends it)")
        if page.network_url is not None:
            say(f"from other machines: {page.network_url}")
    sys.stdout.flush()


@contextlib.contextmanager
def until_interrupted(page: Page, as_json: bool) -> Iterator[None]:
    """Keep a page until Ctrl+C or another signal.

    Its address is printed inside: whoever reads it may press Ctrl+C at once.
    """
    try:
        yield
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        if not as_json:
            click.echo(err=True)
    finally:
        page.close()
