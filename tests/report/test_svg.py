"""Numbers, ticks and lines on paper."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from linkwise.report.plots import Bar, Line, bar_chart, line_plot
from linkwise.report.svg import escape, path, short, span, thinned, ticks


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.23456, "1.235"),
        (-2.5, "−2.5"),
        (1e-16, "1·10⁻¹⁶"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
        (float("nan"), "–"),
        (12345678.0, "1.235·10⁺⁰⁷".replace("⁺⁰", "")),
    ],
)
def test_short_numbers(value, text):
    assert short(value) == text


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.7, 12.1), (1e-9, 2e-9), (-1e6, 1e6), (5, 5.001)])
def test_ticks_are_round_and_inside(low, high):
    found = ticks(low, high)
    assert 3 <= len(found) <= 12
    assert low - 1e-12 <= found[0]
    assert found[-1] <= high * (1 + 1e-12) + 1e-15
    steps = np.diff(found)
    np.testing.assert_allclose(steps, steps[0])


def test_ticks_of_nothing():
    assert ticks(1.0, 1.0) == [1.0]
    assert ticks(float("nan"), 1.0) == []


def test_span_ignores_what_is_not_finite():
    low, high = span([np.array([1.0, np.nan, 3.0, np.inf])])
    assert low < 1 < 3 < high < 4
    assert span([np.array([np.nan])]) == (-1.0, 1.0)
    low, high = span([np.zeros(3)])
    assert low < 0 < high


def test_thinning_keeps_the_extremes():
    x = np.arange(10_000.0)
    y = np.sin(x / 50)
    y[4321] = 7.0
    xs, ys = thinned(x, y, 200)
    assert len(xs) <= 210
    assert ys.max() == 7.0
    assert (xs[0], xs[-1]) == (0.0, 9999.0)


def test_a_path_has_gaps():
    assert path([0, 1, 2, 3], [0, 1, np.nan, 3]) == "M0 0L1 1M3 3"


def test_plots_are_xml_and_escape_names():
    name = '<b>"&</b>'
    t = np.linspace(0, 1, 50)
    text = line_plot(
        t,
        [Line(name, t), Line("x", np.full(50, np.nan))],
        limits=[(-0.1, 1.1), None],
        cursor=0.3,
        hover=False,
    )
    ET.fromstring(text)
    assert name not in text
    ET.fromstring(bar_chart([Bar(name, 3.0), Bar("zero", 0.0), Bar("none", float("nan"))]))
    assert escape(name) == "&lt;b&gt;&quot;&amp;&lt;/b&gt;"


def test_hover_data_cannot_leave_its_script():
    text = line_plot(np.arange(3.0), [Line("</script><script>alert(1)", np.arange(3.0))])
    assert text.count("<script") == 1
    assert text.count("</script>") == 1


def test_limits_far_away_are_not_shown():
    t = np.linspace(0, 1, 10)
    near = line_plot(t, [Line("a", t)], limits=[(-0.2, 1.2)], hover=False)
    far = line_plot(t, [Line("a", t)], limits=[(-100.0, 100.0)], hover=False)
    assert near.count('stroke-dasharray="3 4"') == 2
    assert 'stroke-dasharray="3 4"' not in far
