"""``linkwise certify``, ``generate --certify`` and ``generate --dtype q31``."""

import json


def test_bounds_as_a_table_and_as_json(linkwise):
    shown = linkwise("certify", "two_link", "gravity_torques", "--around", 0.5)
    assert shown.status == 0
    assert "all" in shown.out
    assert "finite numbers for every state" in shown.out
    (found,) = json.loads(linkwise("certify", "two_link", "gravity_torques", "--json").out)
    assert all(row["low"] <= row["lowest"]["value"] <= row["high"] for row in found["outputs"])


def test_parts_that_are_not_shown_are_listed(linkwise):
    shown = linkwise("certify", "two_link", "forward_dynamics", "--around", 0.3, "--divide", 4)
    assert shown.status == 0
    assert "% of the volume" in shown.out
    arguments = ("certify", "ur10e", "forward_dynamics", "--around", 1.5, "--divide", 1, "--json")
    (found,) = json.loads(linkwise(*arguments).out)
    assert len(found["shown"]) == 1
    # singular where the arm is straight
    (found,) = json.loads(linkwise("certify", "two_link", "task_inertia", "--divide", 8, "--json").out)
    assert found["left"]
    assert all("what" in row for row in found["left"])


def test_a_range_of_payloads(linkwise):
    (heavy,), (light,) = (
        json.loads(linkwise("certify", "two_link", "gravity_torques", "--payload", kg, "--json").out)
        for kg in ("3,0.1", "0.5,0.1")
    )
    assert heavy["box"]["payload"][1][0] == 3.0
    assert heavy["outputs"][0]["high"] > light["outputs"][0]["high"] + 20
    assert all(row["low"] <= row["lowest"]["value"] <= row["high"] for row in heavy["outputs"])


def test_bad_input_is_one_line(linkwise):
    for arguments in (
        ("certify", "two_link"),
        ("certify", "two_link", "gravity_torques", "--constants"),
        ("certify", "two_link", "no_such_function"),
        ("certify", "two_link", "closed_loop"),
        ("generate", "two_link", "gravity_torques", "pose", "--dtype", "q31", "--out", "a.c"),
        ("generate", "two_link", "forward_dynamics", "--dtype", "q31"),
        ("generate", "two_link", "gravity_torques", "--certify"),
    ):
        assert linkwise(*arguments).status == 2, arguments


def test_fixed_point_is_written(linkwise, tmp_path):
    for dtype, kind in (("q31", "const int32_t q[2]"), ("q15", "const int16_t q[2]")):
        ran = linkwise(
            "generate", "two_link", "gravity_torques", "--dtype", dtype, "--out", tmp_path / "arm.c"
        )
        assert ran.status == 0
        assert "errors at most" in ran.out
        assert kind in (tmp_path / "arm.c").read_text(encoding="utf-8")
