"""The specification file of Izaguirre et al. (1992), Appendix A: a robot in a few lines of words and names.

    number_links 6
    mass 0 0 0 0 0 m6           % one value per link: a number, or a name defined anywhere in the file
    sigma 0 0 0 0 0 0           % 0 turns, 1 slides
    alpha 90 0 -90 90 -90 0     % standard Denavit–Hartenberg twists [deg], then distances and offsets [m]
    dpar 0 0 d3 d4 0 0
    apar 0 a2 0 0 0 0
    adyna 0 0 0 ad4 0 0         % inertia about the origin of the frame behind the joint [kg·m²]
    ygrav 0 0 0 y4 0 0          % first moments [kg·m]
    variable m6 2.768114        % names with values; constants are meant to stay, variables to be identified
    constant a2 0.20320

``docs/formats.md`` has the whole list. adyna, bdyna, cdyna are Ixx, Iyy, Izz; ddyna, edyna, fdyna are Ixy,
Iyz, Ixz: the paper does not say so, but its Table 1 keeps d2 and e2 and drops f2, and with its own order of
elimination it is Ixz of link 2 that depends on the others. Misprints of the printed example are read as what they
mean, with a warning: ``advna`` for ``adyna``, ``ai2`` for ``ia2``, and a line of values without keyword after
the moments, which gives the motor inertias."""

from __future__ import annotations

import math
import re
from pathlib import PurePath
from typing import NoReturn

from linkwise.errors import ModelError, ModelWarning, warn
from linkwise.model.dh import DhJoint, chain, radians
from linkwise.model.inertia import Inertia
from linkwise.model.model import STANDARD_GRAVITY, Model, suggest
from linkwise.model.quantity import expected, in_range

DH_ROWS = ("sigma", "alpha", "dpar", "apar")
MOMENT_ROWS = ("mass", "xgrav", "ygrav", "zgrav", "adyna", "bdyna", "cdyna", "ddyna", "edyna", "fdyna")
MOTOR = "motor_inertia"  # the printed file lost this keyword; the word is ours
EXTENSIONS = ("theta", MOTOR, "fs", "ds")  # joint offsets [deg], motor inertias, Coulomb and viscous friction
ROWS = (*DH_ROWS, *MOMENT_ROWS, *EXTENSIONS)
SINGLE = ("number_links", "option", "option_update", "variable", "constant", "name", "gravity")
KEYWORDS = (*SINGLE, *ROWS)
MISPRINTS = {"advna": "adyna"}

Line = tuple[int, list[str]]


def read_spec(data: bytes, where: str) -> Model:
    """The robot of a specification file; ``where`` (usually the file's name) begins every error message."""
    return _Reader(where).model(data)


class _Reader:
    def __init__(self, where: str):
        self.where = where
        self.rows: dict[str, Line] = {}
        self.values: dict[str, float] = {}
        self.defined: dict[str, int] = {}
        self.single: dict[str, Line] = {}

    def model(self, data: bytes) -> Model:
        for number, words in self._lines(data):
            self._line(number, words)
        count = self._number_links()
        rows = {keyword: self._row(keyword, count) for keyword in ROWS}
        joints = [self._joint(k, {keyword: rows[keyword][k] for keyword in ROWS}) for k in range(count)]
        gravity = STANDARD_GRAVITY
        if "gravity" in self.single:
            number, words = self.single["gravity"]
            if len(words) != 3:
                self._fail(number, f"gravity: expected 3 values, got {len(words)}")
            gravity = tuple(self._value(number, word) for word in words)
        name = " ".join(self.single["name"][1]) if "name" in self.single else PurePath(self.where).stem
        try:
            # moments that were identified are sums over links, so no single link need be a possible body
            return chain(name, joints, "dh", gravity=gravity, reduced="option" in self.single)
        except ModelError as error:
            raise ModelError(f"{self.where}: {error}") from None

    def _lines(self, data: bytes) -> list[Line]:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ModelError(
                f"{self.where}: not a text in UTF-8 ({error.reason} at byte {error.start})"
            ) from None
        lines = (
            (number, line.split("%")[0].split()) for number, line in enumerate(text.splitlines(), start=1)
        )
        return [(number, words) for number, words in lines if words]

    def _line(self, number: int, words: list[str]) -> None:
        keyword, rest = words[0], words[1:]
        if keyword in MISPRINTS:
            self._warn(number, f"{keyword!r} is read as {MISPRINTS[keyword]!r}")
            keyword = MISPRINTS[keyword]
        if keyword in ("variable", "constant"):
            self._define(number, keyword, rest)
        elif keyword in ROWS:
            self._keep(self.rows, number, keyword, rest)
        elif keyword in ("option", "option_update"):
            if rest != ["moment"]:
                self._fail(number, f"{keyword} {' '.join(rest)}: only 'moment' is known")
            self._keep(self.single, number, keyword, rest)
        elif keyword in SINGLE:
            self._keep(self.single, number, keyword, rest)
        elif "number_links" in self.single and len(words) == self._number_links() and "zgrav" in self.rows:
            self._warn(number, f"a line without keyword is read as {MOTOR}")
            self._keep(self.rows, number, MOTOR, words)
        else:
            self._fail(number, f"unknown keyword {keyword!r}; {suggest(keyword, KEYWORDS)}")

    def _keep(self, where: dict[str, Line], number: int, keyword: str, words: list[str]) -> None:
        if keyword in where:
            self._fail(number, f"{keyword} was given in line {where[keyword][0]} already")
        where[keyword] = (number, words)

    def _define(self, number: int, keyword: str, words: list[str]) -> None:
        if len(words) != 2:
            self._fail(number, f"{keyword}: expected a name and a number, got {' '.join(words) or 'nothing'}")
        name, value = words
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            self._fail(number, f"{keyword}: {name!r} is not a name")
        if name in self.values:
            self._fail(number, f"{name} was defined in line {self.defined[name]} already")
        self.values[name] = self._float(number, value)
        self.defined[name] = number

    # -- values ----------------------------------------------------------------------------------------------

    def _number_links(self) -> int:
        if "number_links" not in self.single:
            raise ModelError(f"{self.where}: number_links is missing")
        number, words = self.single["number_links"]
        if (
            len(words) != 1
            or not re.fullmatch(r"0{0,9}[0-9]{1,4}", words[0])
            or not 1 <= int(words[0]) <= 1000
        ):
            got = " ".join(words)
            self._fail(number, f"number_links: expected one whole number from 1 to 1000, got {got[:40]!r}")
        return int(words[0])

    def _row(self, keyword: str, count: int) -> list[float]:
        if keyword not in self.rows:
            if keyword in DH_ROWS and keyword != "sigma":
                raise ModelError(f"{self.where}: {keyword} is missing")
            return [0.0] * count  # all turn; no mass, moment, motor or friction
        number, words = self.rows[keyword]
        if len(words) != count:
            self._fail(number, f"{keyword}: expected {count} values, one per link, got {len(words)}")
        return [self._value(number, word) for word in words]

    def _value(self, number: int, word: str) -> float:
        sign, name = (-1.0, word[1:]) if word.startswith("-") else (1.0, word)
        if name in self.values:
            return sign * self.values[name]
        if re.fullmatch(r"ai\d+", name) and f"ia{name[2:]}" in self.values:
            self._warn(number, f"{name!r} is not defined; read as 'ia{name[2:]}'")
            return sign * self.values[f"ia{name[2:]}"]
        if re.match(r"[A-Za-z_]", name) and name.lower() not in ("nan", "inf", "infinity"):
            self._fail(number, f"{name!r} is not defined; {suggest(name, self.values)}")
        return self._float(number, word)

    def _float(self, number: int, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            self._fail(number, f"{word[:40]!r} is not a number")
        if not math.isfinite(value):
            self._fail(number, f"{word[:40]!r} is not a finite number")
        if not in_range(value):
            self._fail(number, expected(value))
        return value

    def _joint(self, k: int, row: dict[str, float]) -> DhJoint:
        if row["sigma"] not in (0.0, 1.0):
            self._fail(
                self.rows["sigma"][0],
                f"sigma of link {k + 1}: expected 0 (turns) or 1 (slides), got {row['sigma']:g}",
            )
        xx, yy, zz, xy, yz, xz = (row[f"{letter}dyna"] for letter in "abcdef")
        return DhJoint(
            name=f"joint{k + 1}",
            link=f"link{k + 1}",
            type="prismatic" if row["sigma"] else "revolute",
            alpha=radians(row["alpha"]),
            a=row["apar"],
            d=row["dpar"],
            theta=radians(row["theta"]),
            inertia=Inertia(
                row["mass"], (row["xgrav"], row["ygrav"], row["zgrav"]), (xx, xy, xz, yy, yz, zz)
            ),
            rotor_inertia=row[MOTOR],
            viscous_friction=row["ds"],
            coulomb_friction=(row["fs"], row["fs"]),
        )

    def _fail(self, number: int, message: str) -> NoReturn:
        raise ModelError(f"{self.where}:{number}: {message}")

    def _warn(self, number: int, message: str) -> None:
        warn(f"{self.where}:{number}: {message}", ModelWarning)
