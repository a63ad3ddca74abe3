"""The papers' own tables, row by row, beside our trace of the same algorithm.

"traced" is the algorithm as its file has it, in the frames of modified Denavit–Hartenberg numbers, with all ten
parameters of every link, before any pass of the compiler (``counts.as_written``): the formulas are exact. "compiled" is
what the compiler leaves of it: origins slid along the axes and sums factored, still with all ten parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from linkwise.compiler.ir.operations import Operations
from linkwise.model.dh import DhJoint
from linkwise.model.dh import chain as dh_chain
from linkwise.model.generators import random_model
from linkwise.records.polynomial import Polynomial
from linkwise.records.published import PUBLISHED, Published
from linkwise.records.table import Table
from linkwise.robot.robot import Robot
from research.records import counts
from research.records.counts import Formula, as_written, formula

JOINTS = 6


@dataclass(frozen=True)
class Printed:
    """A row of a printed table: divisions are among the multiplications."""

    name: str
    stages: tuple[str, ...] | None  # of our algorithm; None: all of it
    multiplications: str
    additions: str

    @property
    def formula(self) -> Formula:
        return Formula(Polynomial.parse(self.multiplications), Polynomial.parse(self.additions))


KOZLOWSKI_TABLE_1: dict[str, tuple[Printed, ...]] = {
    "general": (
        Printed("biases b, n (3.7), (3.14)", ("biases",), "74n - 83", "44n - 58"),
        Printed("costate propagation (3.10)", ("costate propagation",), "6n - 10", "6n - 10"),
        Printed("costate update (3.11)", ("costate update",), "16n - 11", "15n - 15"),
        Printed("state propagation (3.8), (3.12)", ("state propagation",), "30n - 31", "36n - 43"),
        Printed("state update (3.9)", ("state update",), "16n - 16", "8n - 8"),
        Printed("total", None, "142n - 151", "109n - 134"),
    ),
    "perpendicular": (
        Printed("biases b, n (3.7), (3.14)", ("biases",), "58n - 66", "36n - 42"),
        Printed("costate propagation (3.10)", ("costate propagation",), "4n - 6", "4n - 6"),
        Printed("costate update (3.11)", ("costate update",), "8n - 6", "11n - 11"),
        Printed("state propagation (3.8), (3.12)", ("state propagation",), "28n - 27", "34n - 39"),
        Printed("state update (3.9)", ("state update",), "8n - 8", "4n - 4"),
        Printed("total", None, "106n - 113", "89n - 102"),
    ),
}

KOZLOWSKI_TABLE_2: tuple[Printed, ...] = (
    Printed("biases b, n (3.7), (3.14)", ("biases",), "74n - 83", "44n - 58"),
    Printed("state propagation (3.47)", ("state propagation",), "6n - 10", "12n - 21"),
    Printed("inertia propagation (3.48)", ("inertia propagation",), "56n - 104", "62n - 115"),
    Printed("Kalman gain (3.50)", ("gain",), "5n - 10", "0"),
    Printed("innovations (3.51)", ("innovations",), "0", "n"),
    Printed("residuals (3.53)", ("residuals",), "n", "0"),
    Printed("state update (3.52)", ("state update",), "46n - 56", "39n - 47"),
    Printed("inertia update (3.54)", ("inertia update",), "55n - 56", "85n - 139"),
    Printed("costate propagation (3.56)", ("costate propagation",), "6n - 10", "6n - 10"),
    Printed("joint acceleration (3.57)", ("joint acceleration",), "5n - 2", "6n - 3"),
    Printed("costate update (3.58)", ("costate update",), "16n - 28", "9n - 18"),
    Printed("total", None, "270n - 359", "264n - 411"),
)

VALERA_TABLE_2: tuple[Printed, ...] = (
    Printed("step 1: rotations, translations", ("step 1: rotations",), "4n", "0"),
    Printed(
        "step 2: velocities, accelerations", ("step 2: velocities and accelerations",), "62n - 75", "46n - 61"
    ),
    Printed("step 3: derivatives of ω̇ by q̈", (), "0", "0"),
    Printed("step 4: A terms", ("step 4: A terms",), "24n - 23", "18n - 18"),
    Printed("step 5: B terms", ("step 5: B terms",), "31n - 38", "26n - 37"),
    Printed("step 6: generalised forces", ("step 6: generalised forces",), "0", "n"),
    Printed("total", None, "121n - 136", "91n - 116"),
)

FIJANY_STEPS: tuple[Printed, ...] = (
    Printed("step 1: projection (33)–(37)", ("projection",), "100n - 96", "63n - 63"),
    Printed("step 2: bias and residual (38)–(47)", ("bias", "", "iteration"), "87n - 21", "78n - 24"),
)

_COLUMNS = ("", "printed × / +", "traced × / +", ">n = 6 traced", ">compiled")


def kozlowski_table_1(kind: str) -> Table:
    """Inverse dynamics as a two-point boundary-value problem."""
    count = partial(_count, kind, "inverse_dynamics", "boundary_value")
    runs = counts.best_of_chain(kind, JOINTS, "inverse_dynamics")
    return Table(
        f"Kozłowski, Table 1: inverse dynamics, {kind} axes",
        _COLUMNS,
        _rows(KOZLOWSKI_TABLE_1[kind], count),
        (
            f"What runs for this robot (`{runs.algorithm}`, base parameters): "
            f"{runs.multiplications}/{runs.additions}.",
        ),
    )


def kozlowski_table_2() -> Table:
    """Forward dynamics by filtering and smoothing."""
    count = partial(_count, "general", "forward_dynamics", "kalman")
    runs = counts.best_of_chain("general", JOINTS, "forward_dynamics")
    return Table(
        "Kozłowski, Table 2: forward dynamics by the filter and smoother, general axes",
        _COLUMNS,
        _rows(KOZLOWSKI_TABLE_2, count),
        (
            "Printed 22n − 115 for the additions of the inertia propagation must read 62n − 115, or the column misses "
            f"its total. What runs for this robot (`{runs.algorithm}`, base parameters): "
            f"{runs.multiplications}/{runs.additions}.",
        ),
    )


def valera_table_2() -> Table:
    """Gibbs–Appell inverse dynamics."""
    count = partial(_count, "general", "inverse_dynamics", "gibbs_appell")
    return Table(
        "Valera, Table 2: inverse dynamics by Gibbs and Appell, general axes",
        _COLUMNS,
        _rows(VALERA_TABLE_2, count),
        (
            "Step 1 costs nothing here: no matrix is formed. Step 4 as printed has no room for the rotation of α in "
            "(17), 8 multiplications and 4 additions per link. Our file follows (17) and (25) as printed.",
        ),
    )


def valera_table_3() -> Table:
    """Newton–Euler and Gibbs–Appell, and what the convention of frames costs."""
    rows = []
    names = {
        "Valera's count, Table 3": ("newton_euler", "Luh, Walker and Paul", "modified"),
        "Table 3": ("gibbs_appell", "Gibbs–Appell", "modified"),
        "section 2, Paul's convention": ("gibbs_appell", "Gibbs–Appell", "standard (Paul)"),
    }
    for published in PUBLISHED:
        if published.where in names:
            algorithm, words, frames = names[published.where]
            of = counts.chain("general", JOINTS) if frames == "modified" else standard_chain(JOINTS)
            full = of.kernel("inverse_dynamics", algorithm=algorithm, base_parameters=False).operations
            base = of.kernel("inverse_dynamics", algorithm=algorithm).operations
            rows.append([words, frames, published.formula(), _pair(published), both(full), both(base)])
    return Table(
        "Valera, Table 3 and section 2: what the convention of frames costs",
        (
            "algorithm",
            "frames of the file",
            "printed × / +",
            ">n = 6 printed",
            ">compiled",
            ">with base parameters",
        ),
        rows,
        (
            "The compiler chooses its own frames, so a robot described in Paul's convention costs what it costs in any "
            "other.",
        ),
    )


def standard_chain(n: int) -> Robot:
    """A chain of general links in standard Denavit–Hartenberg (Paul's) frames."""
    drawn = random_model(1, n, joints="R")
    rows = [
        DhJoint(
            name=f"joint{k + 1}",
            link=f"link{k + 1}",
            alpha=0.4 + 0.1 * k,
            a=0.3 + 0.05 * k,
            d=0.2 + 0.03 * k,
            inertia=body,
        )
        for k, body in enumerate(drawn.bodies())
    ]
    return Robot.from_model(dh_chain(f"standard_chain_{n}", rows, "dh"))


def rival() -> Table:
    """Kozłowski's rival: the mass matrix, the other terms, and the solution of the linear system."""
    written = partial(_count, "general", "forward_dynamics", "compound_link")
    parts = {
        "mass matrix": ("18n^2 + 92n - 110", ("compound links", "inertia coefficients")),
        "the other terms": ("251n - 285", ("motion outward", "forces of the links", "forces inward", "")),
        "solution": ("1/3 n^3 + 5/2 n^2 - 11/6 n", ("factorisation", "solution")),
    }
    rows = []
    for name, (printed, own) in parts.items():
        traced = formula(lambda n, own=own: _sum(written(n), own)).total
        compiled = _sum(written(JOINTS, compiled=True, regroup=True), own).total
        polynomial = Polynomial.parse(printed)
        rows.append([name, str(polynomial), str(traced), str(polynomial(JOINTS)), _at(traced), str(compiled)])
    whole = formula(lambda n: written(n)).total
    runs = written(JOINTS, compiled=True, regroup=True)
    printed_total = next(row for row in PUBLISHED if row.where.startswith("Kozłowski's rival"))
    rows.append(
        [
            "total",
            printed_total.formula(),
            str(whole),
            str(printed_total.total(JOINTS)),
            _at(whole),
            str(runs.total),
        ]
    )
    every = formula(lambda n: written(n, compiled=True, regroup=True)).total
    return Table(
        "Kozłowski's rival (section 4.2): mass matrix and solution, multiplications and additions together",
        ("", "printed", "traced", ">n = 6 printed", ">traced", ">compiled, base parameters"),
        rows,
        (f"Compiled with base parameters, over n: {every}.",),
    )


def fijany_table_2() -> Table:
    """Classical conjugate gradients in a fixed frame."""
    count = partial(_count, "general", counts.ITERATED, "conjugate_gradient")
    rows = _rows(FIJANY_STEPS, count)

    def once(n: int, **options: bool) -> Operations:
        found = count(n, **options).per_iteration
        assert found is not None
        return found

    iteration = Printed("one iteration (5)–(9)", None, "47n - 10", "46n - 23")
    rows += _rows((iteration,), once)

    def whole(n: int, **options: bool) -> Operations:
        return counts.iterated(count(n, **options), n)

    total = Printed("n iterations (Table II)", None, "47n^2 + 177n - 117", "46n^2 + 118n - 87")
    rows += _rows((total,), whole)
    before = next(row for row in PUBLISHED if row.source == "Walker–Orin 1982")
    rows.append(["the same in the links' frames [7]", before.formula(), "", "", ""])
    runs = counts.iterated(counts.gradients("general_6r_aligned"), JOINTS)
    return Table(
        "Fijany–Scheid, Table II: forward dynamics by conjugate gradients, general axes",
        _COLUMNS,
        rows,
        (
            "Ours also estimates the error of q̈ (one multiplication an iteration) and counts its iterations. "
            f"What runs, six iterations with base parameters: {both(runs)}.",
        ),
    )


def diagonal() -> Table:
    """The preconditioner: the diagonal of the mass matrix."""
    plain = counts.gradients("general_6r_aligned")
    with_diagonal = counts.gradients("general_6r_aligned", preconditioned=True)
    traced = partial(_count, "general", counts.ITERATED, "preconditioned_conjugate_gradient")
    shared = formula(lambda n: traced(n).by_stage["diagonal"])
    alone = formula(lambda n: counts.diagonal_alone("general", n))
    published = {row.task: row for row in PUBLISHED if row.task.startswith("mass_matrix_diagonal")}
    beyond, by_itself = published["mass_matrix_diagonal_shared"], published["mass_matrix_diagonal"]
    extra = with_diagonal.by_stage["diagonal"]
    single = counts.diagonal_alone("general", JOINTS)
    return Table(
        "Fijany–Scheid, section IV: the diagonal of the mass matrix",
        ("", "printed × / +", "ours × / +", ">ours, n = 6"),
        [
            [
                "beyond what conjugate gradients need anyway",
                beyond.formula(),
                str(shared),
                both(extra),
            ],
            ["by itself", by_itself.formula(), str(alone), both(single)],
        ],
        (
            "First row: the formula is that of the trace, the numbers are compiled with base parameters. The whole "
            f"set-up grows from {plain.total} to {with_diagonal.total} operations with the reciprocals and the first "
            "preconditioned residual.",
        ),
    )


def izaguirre() -> Table:
    """The background tasks of the PUMA 260's reduced model, without and with a load as input."""
    rows = []
    for task, words in (
        ("coefficients", "inertia and gravity coefficients"),
        ("velocity_torques", "velocity torques"),
    ):
        for loaded in (False, True):
            ours = counts.best("puma260", task, inputs=("payload",) if loaded else ())
            name = "puma260 with load" if loaded else "puma260"
            published = next(row for row in PUBLISHED if (row.task, row.robot) == (task, name))
            once = ours.operations.prelude
            rows.append(
                [
                    words,
                    "load an input" if loaded else "no load",
                    _pair(published),
                    f"{ours.multiplications}/{ours.additions}",
                    "" if once is None else both(once),
                    str(ours.operations.trigonometric),
                    f"`{ours.algorithm}`",
                ]
            )
    return Table(
        "Izaguirre, section 7.1: PUMA 260, reduced model of 23 parameters",
        ("task", "", ">printed", ">ours", ">once per load", ">sin, cos", "algorithm"),
        rows,
    )


def planar() -> Table:
    """The planar chain of Rodriguez and Kozłowski: n equal rods with parallel axes."""
    rows = []
    for task, algorithm in (
        ("inverse_dynamics", "newton_euler"),
        ("inverse_dynamics", "boundary_value"),
        ("forward_dynamics", "kalman"),
        ("forward_dynamics", "compound_link"),
        ("mass_matrix", "compound_link"),
    ):
        count = partial(_count, "planar", task, algorithm)
        compiled = formula(lambda n, count=count: count(n, compiled=True, regroup=True))
        rows.append([task, f"`{algorithm}`", str(formula(count)), str(compiled), str(compiled.total)])
    return Table(
        "The planar chain",
        ("", "algorithm", "traced × / +", "compiled, base parameters × / +", "together"),
        rows,
        (
            "Kozłowski counted it in a report whose figures he does not print; biases and rotations are included.",
        ),
    )


# -- shared -----------------------------------------------------------------------------------------------------------


def _count(
    kind: str, task: str, algorithm: str, n: int, *, compiled: bool = False, regroup: bool = False
) -> Operations:
    return as_written(kind, n, task, algorithm, slide=compiled, simplified=compiled, regroup=regroup)


def _rows(printed: Sequence[Printed], count: Callable[..., Operations]) -> list[list[str]]:
    found = []
    for row in printed:

        def part(n: int, row: Printed = row, **options: bool) -> Operations:
            whole = count(n, **options)
            return whole if row.stages is None else _sum(whole, row.stages)

        cells = [row.name, str(row.formula), str(formula(part))]
        found.append([*cells, both(part(JOINTS)), both(part(JOINTS, compiled=True))])
    return found


def _sum(operations: Operations, names: Sequence[str]) -> Operations:
    parts = [operations.by_stage.get(name, Operations()) for name in names]
    return Operations(
        sum(part.multiplications for part in parts),
        sum(part.additions for part in parts),
        sum(part.divisions for part in parts),
    )


def both(operations: Operations) -> str:
    """``701/520``, divisions among the multiplications."""
    return f"{operations.multiplications + operations.divisions}/{operations.additions}"


def _pair(published: Published) -> str:
    multiplications, additions = published.at(JOINTS)
    return str(multiplications) if additions is None else f"{multiplications}/{additions}"


def _at(polynomial: Polynomial | None) -> str:
    return "" if polynomial is None else str(polynomial(JOINTS))
