"""Operation counts that others printed, or that their programs gave, each with its source.

Divisions are counted as multiplications, sines and cosines are not counted. ``general``: n revolute joints with any
twist angles; ``perpendicular``: adjacent axes parallel or perpendicular; both with all offsets a and d and all ten
parameters of every link, the base aligned with the first joint (α1 = a1 = d1 = 0). The other names are robots of
``linkwise.model.generators.RECORD_ROBOTS``, defined by which numbers are not zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwise.records.polynomial import Polynomial

KOZLOWSKI = "Kozłowski 1990"
VALERA = "Valera et al. 2003"
FIJANY = "Fijany–Scheid 1989"
IZAGUIRRE = "Izaguirre et al. 1992"
OPENSYMORO = "OpenSYMORO"


@dataclass(frozen=True)
class Published:
    """One published count: a formula in n, or numbers for one robot of six joints."""

    task: str
    robot: str
    source: str
    where: str
    multiplications: Polynomial
    additions: Polynomial | None  # None: the first figure is both together
    note: str = ""
    comparable: bool = True  # whether it counts the same work as ours

    def at(self, n: int) -> tuple[int, int | None]:
        """(multiplications, additions) for n joints."""
        return int(self.multiplications(n)), None if self.additions is None else int(self.additions(n))

    def total(self, n: int) -> int:
        return int(self.multiplications(n)) + (0 if self.additions is None else int(self.additions(n)))

    @property
    def is_formula(self) -> bool:
        return not (self.multiplications.is_number and (self.additions is None or self.additions.is_number))

    def formula(self) -> str:
        """``142n − 151 / 109n − 134``; empty where numbers were printed."""
        if not self.is_formula:
            return ""
        first = str(self.multiplications)
        return first if self.additions is None else f"{first} / {self.additions}"


def _row(task: str, robot: str, source: str, where: str, counts: str, note: str = "") -> Published:
    """``counts``: multiplications and additions, with a comma between; one figure alone is their sum."""
    first, _, second = counts.partition(",")
    additions = Polynomial.parse(second) if second else None
    return Published(task, robot, source, where, Polynomial.parse(first), additions, note)


_BASE = "base parameters"
_IN_KOZLOWSKI = "quoted by Kozłowski, section 4"
_IN_VALERA = "quoted by Valera, section 1"
_IN_IZAGUIRRE = "quoted by Izaguirre, section 2"
_SECOND_HAND = "after later literature"
_PAUL = "section 2, Paul's convention"
_SUM = "multiplications and additions together"

_INVERSE = tuple(
    _row("inverse_dynamics", robot, source, where, counts, note)
    for robot, source, where, counts, note in (
        ("general", "Luh–Walker–Paul 1980", f"Hollerbach's count, {_IN_VALERA}", "150n - 48, 131n - 48", ""),
        ("general", "Luh–Walker–Paul 1980", f"Fu's count, {_IN_VALERA}", "117n - 24, 103n - 21", ""),
        ("general", "Luh–Walker–Paul 1980", f"Zomaya's count, {_IN_VALERA}", "150n, 116n", ""),
        ("general", "Luh–Walker–Paul 1980", f"Craig's count, {_IN_VALERA}", "126n - 99, 106n - 92", ""),
        ("general", "Luh–Walker–Paul 1980", "Valera's count, Table 3", "121n - 112, 90n - 82", "n ≥ 3"),
        ("general", "Megahed 1984", _IN_IZAGUIRRE, "1000, 700", "about"),
        ("general", "Khosla 1986", _IN_KOZLOWSKI, "678, 521", ""),
        ("general", "Khalil et al. 1986", _IN_IZAGUIRRE, "540, 480", "about"),
        ("general", "Khalil–Kleinfinger 1987", _SECOND_HAND, "92n - 127, 81n - 117", _BASE),
        ("general", "Balafoutis–Patel 1989", _SECOND_HAND, "93n - 69, 81n - 65", ""),
        ("general", KOZLOWSKI, "Table 1", "142n - 151, 109n - 134", "two-point boundary-value problem"),
        ("general", VALERA, "Table 3", "121n - 136, 91n - 116", "Gibbs–Appell; n ≥ 3"),
        ("general", VALERA, _PAUL, "133n - 74, 97n - 71", "Gibbs–Appell, standard frames"),
        ("general_6r", OPENSYMORO, "run, full parameters", "536, 433", "α1, a1, d1 free too"),
        ("general_6r", OPENSYMORO, "run", "486, 380", f"{_BASE}; α1, a1, d1 free too"),
        ("perpendicular", "Khosla 1986", _IN_KOZLOWSKI, "500, 403", ""),
        ("perpendicular", KOZLOWSKI, "Table 1", "106n - 113, 89n - 102", ""),
        ("perpendicular_6r", OPENSYMORO, "run", "340, 279", _BASE),
        ("puma560", OPENSYMORO, "run", "301, 240", _BASE),
        ("puma560_sparse", "ARM (Murray–Neuman)", _SECOND_HAND, "224, 174", "its own set of zero parameters"),
        ("puma560_sparse", OPENSYMORO, "run", "203, 150", _BASE),
        ("stanford", OPENSYMORO, "run", "262, 211", _BASE),
        ("stanford_sparse", "Khalil", _SECOND_HAND, "142, 99", ""),
        ("stanford_sparse", OPENSYMORO, "run", "138, 92", _BASE),
        ("rx90", OPENSYMORO, "run", "287, 226", _BASE),
    )
)

_FORWARD = tuple(
    _row("forward_dynamics", robot, source, where, counts, note)
    for robot, source, where, counts, note in (
        ("general", "Featherstone 1983", _SECOND_HAND, "300n - 267, 279n - 259", "articulated bodies"),
        ("general", "Brandl–Johanni–Otter 1986", _IN_KOZLOWSKI, "250n - 222, 220n - 198", ""),
        ("general", KOZLOWSKI, "Table 2", "270n - 359, 264n - 411", "Kalman filter and smoother"),
        (
            "general",
            "mass matrix and solution",
            "Kozłowski's rival, section 4.2",
            "1/3 n^3 + 41/2 n^2 + 2047/6 n - 395",
            _SUM,
        ),
        ("general", "McMillan–Orin 1995", _SECOND_HAND, "224n - 259, 205n - 248", "articulated bodies"),
        ("general_6r", OPENSYMORO, "run, full parameters", "1983, 1513", "α1, a1, d1 free too"),
        ("general_6r", OPENSYMORO, "run", "1949, 1450", f"{_BASE}; α1, a1, d1 free too"),
        ("perpendicular_6r", OPENSYMORO, "run", "1293, 978", _BASE),
        ("puma560", OPENSYMORO, "run", "954, 701", _BASE),
        ("puma560_sparse", OPENSYMORO, "run", "709, 509", _BASE),
        ("stanford", OPENSYMORO, "run", "734, 536", _BASE),
        ("stanford_sparse", OPENSYMORO, "run", "469, 321", _BASE),
        ("rx90", OPENSYMORO, "run", "864, 622", _BASE),
    )
)

_MASS = tuple(
    _row("mass_matrix", robot, source, where, counts, note)
    for robot, source, where, counts, note in (
        ("general", "composite bodies", _IN_KOZLOWSKI, "18n^2 + 92n - 110", _SUM),
        ("general", "Featherstone", _SECOND_HAND, "10n^2 + 22n - 32, 6n^2 + 37n - 43", "composite bodies"),
        ("general_6r", OPENSYMORO, "run, full parameters", "837, 588", "α1, a1, d1 free too"),
        ("general_6r", OPENSYMORO, "run", "720, 509", f"{_BASE}; α1, a1, d1 free too"),
        ("perpendicular_6r", OPENSYMORO, "run", "333, 219", _BASE),
        ("puma560", OPENSYMORO, "run", "247, 163", _BASE),
        ("puma560_sparse", OPENSYMORO, "run", "175, 104", _BASE),
        ("stanford", OPENSYMORO, "run", "147, 105", _BASE),
        ("stanford_sparse", OPENSYMORO, "run", "97, 51", _BASE),
        ("rx90", OPENSYMORO, "run", "195, 133", _BASE),
    )
)

_GRADIENT, _DIAGONAL = "conjugate_gradient", "mass_matrix_diagonal"

_OTHERS = tuple(
    _row(*row)
    for row in (
        (
            _GRADIENT,
            "general",
            "Walker–Orin 1982",
            "Fijany–Scheid, Table II",
            "76n^2 + 120n - 21, 56n^2 + 87n - 6",
        ),
        (_GRADIENT, "general", FIJANY, "Table II", "47n^2 + 177n - 117, 46n^2 + 118n - 87"),
        (f"{_GRADIENT}_iteration", "general", FIJANY, "section III", "47n - 10, 46n - 23"),
        (f"{_GRADIENT}_setup", "general", FIJANY, "section III, steps 1, 2", "187n - 117, 141n - 87"),
        (_DIAGONAL, "general", "Fijany–Bejczy", "Fijany–Scheid, section IV.2", "69n - 57, 62n - 58"),
        (
            f"{_DIAGONAL}_shared",
            "general",
            FIJANY,
            "section IV.2",
            "51n - 51, 50n - 50",
            "beyond the vectors that conjugate gradients need anyway",
        ),
        ("coefficients", "puma260", IZAGUIRRE, "section 7.1", "98, 70"),
        ("coefficients", "puma260 with load", IZAGUIRRE, "section 7.1", "190, 150"),
        ("velocity_torques", "puma260", IZAGUIRRE, "section 7.1", "140, 110"),
        ("velocity_torques", "puma260 with load", IZAGUIRRE, "section 7.1", "200, 170"),
        ("synchronous", "per joint", IZAGUIRRE, "summary", "6, 6"),
    )
)

_WITH_TABLES = replace(
    _row("inverse_dynamics", "general", "Raibert 1977", _IN_IZAGUIRRE, "460, 260", "uses look-up tables"),
    comparable=False,
)

PUBLISHED: tuple[Published, ...] = (_WITH_TABLES, *_INVERSE, *_FORWARD, *_MASS, *_OTHERS)


_CHAINS = {"general_6r": "general", "general_6r_aligned": "general", "perpendicular_6r": "perpendicular"}


def of(task: str, robot: str) -> list[Published]:
    """What was published for this task and robot; general formulas stand for their robots of six joints too."""
    return [row for row in PUBLISHED if row.task == task and row.robot in (robot, _CHAINS.get(robot))]


def best(task: str, robot: str, n: int = 6) -> Published | None:
    """The published count with the smallest total, of those that compare like with like."""
    return min((row for row in of(task, robot) if row.comparable), key=lambda row: row.total(n), default=None)
