"""The specification file of 1992: the printed example with its misprints, and errors with file and line."""

import contextlib
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.formats.spec1992 import read_spec
from linkwise.model import Inertia

# Appendix A as printed, with its misprints: advna, ai2, and motor inertias without keyword
PRINTED = """\
number_links 6
mass 0 0 0 0 0 m6
                   % initial link masses
sigma 0 0 0 0 0 0
                   % joint types: all revolute
alpha 90 0 -90 90 -90 0 % D-H parameters: twist angles
dpar 0 0 d3 d4 0 0
                    % D-H parameters: distances
apar 0 a2 0 0 0 0 % D-H parameters: offsets
advna 0 0 0 ad4 0 0
                     % Link inertia
bdyna 0 0 0 0 0 0
cdyna 0 0 0 cd4 0 0
ddyna 0 0 0 0 0 0
edyna 0 0 0 0 0 0
fdyna 0 0 0 0 0 0
xgrav 0 0 0 0 0 0
                   % Link centers of gravity X link masses
ygrav 0 0 0 y4 0 0
                    % . . .
zgrav 0 0 0 0 0 z6
ia1 ai2 ia3 ia4 ia5 ia6 % Motor inertia
option moment
option_update moment
variable m6 2.768114
                      % Some initial values
variable z6 0.01401
variable y4 -0.382190
variable ad4 0.079781
variable cd4 0.077761
variable ia1 0.091631
variable ia2 0.136312
variable ia3 0.030843
variable ia4 0.001781
variable ia5 0.006759
variable ia6 0.001262
constant a2 0.20320
constant d3 0.12624
constant d4 0.20320
"""
FRICTION = """
fs 0.787033 1.38928 0.650706 0.256854 0.036607 0.106594
ds 0.575662 0.94467 0.417502 0.066791 0.101721 0.030363
"""


def read(text: str) -> lw.Robot:
    return lw.Robot.from_model(read_spec(text.encode(), "arm.spec"))


def test_the_printed_example_is_the_bundled_puma260():
    with pytest.warns(lw.ModelWarning) as given:
        arm = read(PRINTED + FRICTION)
    assert sorted(str(w.message) for w in given) == [
        "arm.spec:10: 'advna' is read as 'adyna'",
        "arm.spec:22: 'ai2' is not defined; read as 'ia2'",
        "arm.spec:22: a line without keyword is read as motor_inertia",
    ]
    bundled = lw.load("puma260")
    assert arm.reduced
    assert arm.name == "arm"
    assert arm.links == bundled.links
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 6))
    assert np.array_equal(arm.inverse_dynamics(q, qd, qdd), bundled.inverse_dynamics(q, qd, qdd))


def test_without_slips_it_is_quiet():
    text = PRINTED.replace("advna", "adyna").replace("ia1 ai2", "motor_inertia ia1 ia2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(text)


SHORT = "number_links 1\nalpha 0\ndpar 0\napar 0\n"


def test_every_moment_has_its_place():
    rows = ("mass", "xgrav", "ygrav", "zgrav", "adyna", "ddyna", "fdyna", "bdyna", "edyna", "cdyna")
    text = SHORT + "".join(f"{row} {k}\n" for k, row in enumerate(rows, start=1))
    assert read(text).links[1].inertia == Inertia.from_parameters(range(1, 11))


def test_signs_slides_offsets_and_extensions():
    arm = read(
        "name two words\nnumber_links 2\nsigma 0 1\nalpha -90 0\ndpar 0 -d\napar 0 0\ntheta 90 0\n"
        "gravity 0 0 -1.62\nconstant d 0.5\nfs 0 f\nvariable f 2\n"
    )
    assert arm.name == "two words"
    assert [joint.type for joint in arm.joints] == ["revolute", "prismatic"]
    assert arm.joints[1].origin.translation[2] == -0.5
    assert arm.joints[1].coulomb_friction == (2.0, 2.0)
    assert arm.gravity == (0.0, 0.0, -1.62)
    assert math.isclose(arm.pose([0.0, 0.0])[1, 0], 1.0)
    assert not arm.reduced


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alpha 0", "arm.spec: number_links is missing"),
        ("number_links two", "arm.spec:1: number_links: expected one whole number"),
        ("number_links 1\nalpha 0\ndpar 0", "arm.spec: apar is missing"),
        (SHORT + "mas 1", "arm.spec:5: unknown keyword 'mas'; did you mean 'mass'?"),
        (SHORT + "mass 1 2", "arm.spec:5: mass: expected 1 values, one per link, got 2"),
        (SHORT + "mass m1\nvariable m2 3", "arm.spec:5: 'm1' is not defined; valid: m2"),
        (SHORT + "mass 1x", "arm.spec:5: '1x' is not a number"),
        (SHORT + "mass nan", "arm.spec:5: 'nan' is not a finite number"),
        (SHORT + "mass -1", "arm.spec: link 'link1': mass -1 is negative"),
        (SHORT + "mass 1\nmass 2", "arm.spec:6: mass was given in line 5 already"),
        (SHORT + "variable x", "arm.spec:5: variable: expected a name and a number"),
        (SHORT + "variable 3 x", "arm.spec:5: variable: '3' is not a name"),
        (SHORT + "variable x 1\nconstant x 2", "arm.spec:6: x was defined in line 5 already"),
        (SHORT + "variable x inf", "'inf' is not a finite number"),
        (SHORT + "sigma 2", "arm.spec:5: sigma of link 1: expected 0 (turns) or 1 (slides), got 2"),
        (SHORT + "option centre", "arm.spec:5: option centre: only 'moment' is known"),
        (SHORT + "gravity 1", "arm.spec:5: gravity: expected 3 values, got 1"),
    ],
)
def test_mistakes_are_named(text, expected):
    with pytest.raises(lw.ModelError) as error:
        read(text)
    assert expected in str(error.value)


def test_the_example_of_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    (example,) = re.findall(r"```\n(number_links.*?)```", page, flags=re.DOTALL)
    arm = read(example)
    assert arm.dof == 2
    np.testing.assert_allclose(arm.mass_matrix([0.0, 0.0])[1, 1], 0.05 + 1.5 * 0.2**2 - 2 * 0.15 * 0.2 + 0.2)


def test_text_that_is_not_utf8():
    with pytest.raises(lw.ModelError, match="not a text in UTF-8"):
        read_spec(b"\xff\xfe", "arm.spec")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_in_words(data):
    """Cut something out, or put something else there: never another exception."""
    whole = (PRINTED + FRICTION).encode()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 40, len(whole))))
    filling = data.draw(
        st.sampled_from([b"", b"0", b"-1", b"1e999", b"nan", b"[", b'"', b"<", b"x", b"\xff", b"\n"])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        with contextlib.suppress(lw.ModelError):
            read_spec(whole[:start] + filling + whole[end:], "arm")
