"""Generated C of a function of this robot, with its operation counts."""

from __future__ import annotations

from linkwise.errors import LinkwiseError
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.report.svg import escape
from linkwise.robot.kernels import is_straight
from linkwise.view.tabs.tab import Tab

MOST_CHARACTERS = 200_000  # of source text that the page shows


class CodeTab(Tab):
    """Function, algorithm, counts, source."""

    title = "Code"

    def build(self) -> None:
        robot = self.page.robot
        names = [name for name, row in FUNCTIONS.items() if is_straight(row, Setting(robot))]
        if not names:
            self.gui.add_html('<div style="padding:.6em">too many joints for straight-line code</div>')
            return
        first = "gravity_torques" if "gravity_torques" in names else names[0]
        self.function = self.gui.add_dropdown("function", tuple(names), initial_value=first)
        self.algorithm = self.gui.add_dropdown("algorithm", FUNCTIONS[first].algorithms)
        self.source = self.gui.add_html("")
        self.function.on_update(lambda _event: self.chosen())
        self.algorithm.on_update(lambda _event: self.write())
        self.write()

    def chosen(self) -> None:
        self.algorithm.options = FUNCTIONS[self.function.value].algorithms
        self.algorithm.value = FUNCTIONS[self.function.value].algorithms[0]
        self.write()

    def write(self) -> None:
        """Show the source, or why there is none."""
        row = FUNCTIONS[self.function.value]
        algorithm = self.algorithm.value if self.algorithm.value in row.algorithms else row.default
        frame = self.page.live.tip if row.name in ("pose", "jacobian", "velocity") else None
        try:
            kernel = self.page.robot.kernel(row.name, algorithm=algorithm, frame=frame)
            counts, text = kernel.operations, kernel.source("c")
        except LinkwiseError as error:
            self.source.content = f'<div style="padding:.6em">{escape(error)}</div>'
            return
        numbers = (
            (counts.multiplications, "×"),
            (counts.additions, "+"),
            (counts.divisions, "÷"),
            (counts.trigonometric, "sin, cos"),
        )
        listed = " &nbsp; ".join(f"<b>{count}</b> {sign}" for count, sign in numbers)
        once = counts.per_iteration
        loop = (
            ""
            if once is None
            else f"<br>and per iteration <b>{once.multiplications}</b> × <b>{once.additions}</b> +"
        )
        shown = escape(text[:MOST_CHARACTERS]) + ("\n…" if len(text) > MOST_CHARACTERS else "")
        self.source.content = (
            f'<div class="lw-code" style="padding:.2em .6em .6em .6em"><div class="lw-operations" style="{_COUNTS}">'
            f'{listed}{loop}<br><span style="opacity:.85">{text.count(chr(10))} lines of C99, one state per call</span>'
            "</div>"
            f'<pre tabindex="0" aria-label="generated C code" style="{_SOURCE}">{shown}</pre></div>'
        )


_COUNTS = "font-size:.85em;margin:.3em 0 .6em 0;line-height:1.6"
_SOURCE = (
    "font-size:.72em;line-height:1.45;max-height:34em;overflow:auto;padding:.8em;border-radius:.4em;margin:0;"
    "background:rgba(128,138,150,.12);white-space:pre;tab-size:4"
)
