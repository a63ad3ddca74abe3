"""The table of records: how operations are counted, that every record stands, and that the page says what is true.

``UPDATE_RECORDS=1 pytest tests/test_records.py`` writes the page anew.
"""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import udu_prediction
from linkwise.cli import main
from linkwise.compiler.ir import interpret
from linkwise.functions import arrays
from linkwise.functions.table import FUNCTIONS, Setting, mechanism_of
from linkwise.records.polynomial import Polynomial
from linkwise.records.published import PUBLISHED, best
from linkwise.spatial import skew
from research.records import counts, crossovers, page, papers
from research.records.verdicts import GOALS, Verdict

PAGE = Path(__file__).parents[1] / "docs" / "records.md"
ROUND_OFF = 1e-13  # of six rank-one updates, relative to the largest entry
REGROUPED = 1e-12  # sliding origins and regrouping cost a digit or two


# -- what counts ------------------------------------------------------------------------------------------------------


def counted(function, **sizes: int):
    """(multiplications, additions, divisions, sines and cosines) of a user's function."""
    operations = lw.kernel(**sizes)(function).operations
    return operations.multiplications, operations.additions, operations.divisions, operations.trigonometric


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x[0] * x[1] + x[2], (1, 1, 0, 0)),  # a fused multiply-add is one of each
        (lambda x: x[0] - x[1], (0, 1, 0, 0)),  # a subtraction is an addition
        (lambda x: 2.0 * x[0], (1, 0, 0, 0)),  # by a constant too
        (lambda x: -x[0], (0, 0, 0, 0)),  # a change of sign is free
        (lambda x: x[0] / x[1], (0, 0, 1, 0)),
        (lambda x: 1.0 * x[0] + 0.0 * x[1], (0, 0, 0, 0)),  # ones and zeros
        (lambda x: (2.0 * 3.0 - 1.0) * x[0], (1, 0, 0, 0)),  # constants fold
        (lambda x: (x[0] * x[1]) * (x[1] * x[0]), (2, 0, 0, 0)),  # equal products are one
        (lambda x: lw.sin(x[0]) * lw.cos(x[0]) + lw.sin(x[0]), (1, 1, 0, 2)),
    ],
)
def test_hand_counted_expressions(function, expected):
    assert counted(function, x=3) == expected


def test_hand_counted_pendulum():
    """τ = I q̈ + (m g l) cos q: two products, a sum, a cosine."""
    operations = lw.planar_chain(1, length=0.7, mass=1.3).kernel("inverse_dynamics").operations
    assert (operations.multiplications, operations.additions, operations.divisions) == (2, 1, 0)
    assert operations.trigonometric == 1


def test_hand_counted_two_links():
    """M12 = B + k cos q2, M11 = A + 2k cos q2, M22 constant: four operations and a cosine, in whichever order."""
    operations = lw.planar_chain(2, length=0.7, mass=1.3).kernel("mass_matrix").operations
    assert (operations.total, operations.trigonometric) == (4, 1)


def test_what_depends_on_parameters_alone_is_counted_apart():
    """A pendulum with a load: I + Iyy and h + hx once, then τ = I' q̈ + g (h' cos q + hz sin q) with two additions."""
    kernel = lw.planar_chain(1, length=0.7, mass=1.3).kernel(
        "inverse_dynamics", inputs=("payload",), frame="link1"
    )
    operations = kernel.operations
    assert (operations.additions, operations.trigonometric) == (2, 2)
    assert operations.prelude is not None
    assert (operations.prelude.multiplications, operations.prelude.additions) == (0, 2)


@pytest.mark.parametrize(
    ("task", "algorithm"),
    [
        ("inverse_dynamics", "boundary_value"),
        ("inverse_dynamics", "gibbs_appell"),
        ("forward_dynamics", "kalman"),
    ],
)
def test_stages_add_up(task, algorithm):
    whole = counts.as_written("general", 6, task, algorithm)
    for kind in ("multiplications", "additions", "divisions"):
        assert sum(getattr(part, kind) for part in whole.by_stage.values()) == getattr(whole, kind)


# -- the records ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: f"{goal.task}, {goal.robot}")
def test_record_stands(goal):
    verdict = Verdict(goal, *goal.count())
    assert verdict.holds, f"{verdict.operations}: {verdict.operations.total - goal.limit} too many"


def test_an_iteration_beats_both_columns():
    once = counts.gradients("general_6r").per_iteration
    multiplications, additions = best("conjugate_gradient_iteration", "general").at(6)
    assert once.multiplications + once.divisions < multiplications
    assert once.additions < additions


@pytest.mark.parametrize(
    "row",
    [row for row in PUBLISHED if row.task in page.WORDS],
    ids=lambda row: f"{row.task}, {row.robot}, {row.source}",
)
def test_no_published_count_is_smaller(row):
    name = {"general": "general_6r_aligned", "perpendicular": "perpendicular_6r"}.get(row.robot, row.robot)
    assert counts.best(name, row.task).total < row.total(6)


@pytest.mark.parametrize("task", ["inverse_dynamics", "forward_dynamics", "mass_matrix"])
@pytest.mark.parametrize(
    "name", ["general_6r", "perpendicular_6r", "puma560_sparse", "stanford_sparse", "rx90"]
)
def test_records_use_sines_of_single_coordinates(name, task):
    ours = counts.best(name, task)
    assert counts.trigonometric_arguments(name, task, ours.algorithm) == {"input"}


@pytest.mark.parametrize("name", [*page.ROBOTS])
def test_what_is_counted_computes_the_right_thing(name):
    """The counted programs, run by the interpreter, against other algorithms with nothing regrouped or slid."""
    robot = counts.robot(name)
    plain = Setting(robot, slide=False)
    q, qd, qdd = np.random.default_rng(0).uniform(-1.0, 1.0, (3, robot.dof))

    def program(task: str):
        return robot.kernel(task, algorithm=counts.best(name, task).algorithm, friction=False).program()

    def reference(task: str, algorithm: str, **given):
        return next(iter(arrays.run_on_arrays(FUNCTIONS[task], plain, algorithm, given).values()))

    tau = reference("inverse_dynamics", "boundary_value", q=q, qd=qd, qdd=qdd)
    M = reference("mass_matrix", "newton_euler", q=q)
    assert_close(interpret.run(program("inverse_dynamics"), q, qd, qdd)[0], tau)
    assert_close(interpret.run(program("mass_matrix"), q)[0], M)
    found = interpret.run(program("forward_dynamics"), q, qd, tau)[0]
    assert_close(M @ found, M @ qdd)  # judged by its residual: M may be ill-conditioned


def assert_close(result: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(result - expected).max() <= REGROUPED * np.abs(expected).max()


@pytest.mark.parametrize("name", ["general_6r", "perpendicular_6r", "puma560_sparse", "stanford_sparse"])
def test_counts_do_not_depend_on_the_numbers_drawn(name):
    """A free symbol stands for any number."""
    for task in ("inverse_dynamics", "mass_matrix"):
        one, other = (counts.robot(name, seed).kernel(task).operations.total for seed in (0, 1))
        assert one == other


@pytest.mark.parametrize(
    ("task", "algorithm", "most"),
    [
        ("inverse_dynamics", "newton_euler", "152n - 202"),
        ("mass_matrix", "compound_link", "16n^2 + 18n - 83"),
        ("forward_dynamics", "kalman", "404n - 653"),
        ("forward_dynamics", "compound_link", "1/3 n^3 + 37/2 n^2 + 1015/6 n - 307"),
    ],
)
def test_general_chains_over_n(task, algorithm, most):
    """What is cheapest for six joints stays so cheap for others."""
    for n in range(3, 9):
        found = counts.as_written("general", n, task, algorithm, slide=True, simplified=True, regroup=True)
        assert found.total <= Polynomial.parse(most)(n)


# -- what the papers print --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows", [*papers.KOZLOWSKI_TABLE_1.values(), papers.KOZLOWSKI_TABLE_2, papers.VALERA_TABLE_2]
)
def test_printed_rows_add_up(rows):
    """With 62n − 115 in Kozłowski's Table 2, see the page."""
    *parts, total = [row.formula for row in rows]
    for column in ("multiplications", "additions"):
        whole = Polynomial.parse("0")
        for part in parts:
            whole = whole + getattr(part, column)
        assert whole == getattr(total, column)


def test_fijany_and_scheid_add_up():
    setup = [Polynomial.parse("0"), Polynomial.parse("0")]
    for row in papers.FIJANY_STEPS:
        setup = [setup[0] + row.formula.multiplications, setup[1] + row.formula.additions]
    published = {row.task: row for row in PUBLISHED if row.source == "Fijany–Scheid 1989"}
    n = Polynomial.parse("n")
    for k, column in enumerate(("multiplications", "additions")):
        assert setup[k] == getattr(published["conjugate_gradient_setup"], column)
        iterations = n * getattr(published["conjugate_gradient_iteration"], column)
        assert setup[k] + iterations == getattr(published["conjugate_gradient"], column)


def test_printed_totals_for_six_joints():
    at_six = {(row.task, row.robot, row.source, row.where): row.at(6) for row in PUBLISHED}
    for key, expected in {
        ("inverse_dynamics", "general", "Kozłowski 1990", "Table 1"): (701, 520),
        ("inverse_dynamics", "perpendicular", "Kozłowski 1990", "Table 1"): (523, 432),
        ("inverse_dynamics", "general", "Valera et al. 2003", "Table 3"): (590, 430),
        ("inverse_dynamics", "general", "Valera et al. 2003", "section 2, Paul's convention"): (724, 511),
        ("forward_dynamics", "general", "Kozłowski 1990", "Table 2"): (1261, 1173),
        ("forward_dynamics", "general", "mass matrix and solution", "Kozłowski's rival, section 4.2"): (
            2462,
            None,
        ),
        ("conjugate_gradient", "general", "Fijany–Scheid 1989", "Table II"): (2637, 2277),
        ("conjugate_gradient", "general", "Walker–Orin 1982", "Fijany–Scheid, Table II"): (3435, 2532),
    }.items():
        assert at_six[key] == expected


def test_our_traces_grow_as_the_papers_tables_do():
    """Rows in which the same equations are counted have the same slope as printed."""
    for row in papers.KOZLOWSKI_TABLE_2:
        if row.name.startswith(("state", "innovations", "residuals", "costate propagation", "joint")):
            traced = counts.formula(
                lambda n, row=row: counts.as_written("general", n, "forward_dynamics", "kalman").by_stage[
                    row.stages[0]
                ]
            )
            assert traced.multiplications.coefficients[1:] == row.formula.multiplications.coefficients[1:]
            assert traced.additions.coefficients[1:] == row.formula.additions.coefficients[1:]


def test_the_convention_of_frames_costs_nothing():
    paul, modified = papers.standard_chain(6), counts.chain("general", 6)
    for algorithm in ("newton_euler", "gibbs_appell"):
        of = [robot.kernel("inverse_dynamics", algorithm=algorithm).operations for robot in (paul, modified)]
        assert of[0] == of[1]


# -- crossovers -------------------------------------------------------------------------------------------------------


def test_claims_of_the_papers():
    kozlowski, brandl, rival = (
        crossovers.published(source).total
        for source in ("Kozłowski 1990", "Brandl–Johanni–Otter 1986", "mass matrix and solution")
    )
    assert crossovers.cheaper(kozlowski, brandl) == [2, 3, 4, 5]
    assert crossovers.cheaper(rival, kozlowski) == [3, 4, 5], '"for any n" fails here'


@pytest.mark.parametrize("kind", ["general", "planar"])
@pytest.mark.parametrize("method", crossovers.METHODS)
def test_formulas_hold_beyond_what_they_were_made_from(kind, method):
    assert crossovers.ours(kind, method, 10) == crossovers.counted(kind, method, 10)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([], "never"),
        ([2, 3], "n ≤ 3"),
        ([4], "n = 4"),
        ([3, 4], "3 ≤ n ≤ 4"),
        ([5, 6], "n ≥ 5"),
        (range(2, 7), "always"),
    ],
)
def test_ranges_in_words(numbers, words):
    assert crossovers.in_words(list(numbers), range(2, 7)) == words


# -- sequential factorisation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_factors_predict_the_same_inertia(seed):
    link = mechanism_of(counts.chain("general", 6), slide=False)[3]
    A = np.random.default_rng(seed).normal(size=(6, 6))
    P = A @ A.T
    φ = np.eye(6)
    φ[:3, 3:] = np.reshape(list(skew(link.lever)), (3, 3))
    expected = φ @ P @ φ.T + np.array(udu_prediction.matrix_of(link.inertia))
    factors = udu_prediction.factorised(P.tolist())
    predicted = udu_prediction.predicted(factors, link.lever, link.inertia)
    assert np.allclose(np.triu(predicted.U), predicted.U)
    assert (
        np.abs(np.array(udu_prediction.product(predicted)) - expected).max()
        < ROUND_OFF * np.abs(expected).max()
    )


def test_factors_cost_more():
    """Kozłowski's negative result."""
    plain, factored = page.prediction_counts()
    assert factored.total > 2 * plain.total


# -- polynomials ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("142n - 151", "142n − 151"),
        ("1/3 n^3 + 41/2 n^2 + 2047/6 n - 395", "⅓n³ + 20½n² + 341⅙n − 395"),
        ("n", "n"),
        ("-n + n^2", "n² − n"),
        ("701", "701"),
        ("0", "0"),
    ],
)
def test_polynomials_are_read_and_written(text, shown):
    assert str(Polynomial.parse(text)) == shown


@pytest.mark.parametrize("text", ["", "3m", "n^4", "2n +", "n n n^"])
def test_what_is_no_polynomial_is_refused(text):
    with pytest.raises(ValueError, match="not a polynomial"):
        Polynomial.parse(text)


def test_polynomials_through_counts():
    cubic = Polynomial.parse("1/3 n^3 + 2/3 n - 5")
    assert Polynomial.through({n: cubic(n) for n in range(3, 9)}) == cubic
    assert Polynomial.through({3: 1, 4: 2}) is None, "two points do not show that they lie on a line"
    assert Polynomial.through({n: n**4 for n in range(8)}) is None


# -- the page ---------------------------------------------------------------------------------------------------------


def test_command_line_shows_the_records(capsys):
    assert main(["operations", "--compare", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert all(record["holds"] for record in data["records"])
    assert len(data["published"]) == len(PUBLISHED)


def test_page_is_up_to_date():
    text = page.render(PAGE.parent)
    if os.environ.get("UPDATE_RECORDS"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, f"run {page.COMMAND}"
    rows = page.steps()
    assert rows.count("\n## ") == len(page.STEPPED) + len(page.OTHERS)
    totals = text.split("## The papers")[1].split("###")[0]
    for line in re.findall(r"^\| [KVF][^|]*\|(.*)$", totals, re.MULTILINE):
        assert line in rows, "totals of the page are those of the tables"
