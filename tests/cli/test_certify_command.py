"""``linkwise certify``, ``generate --certify`` and ``generate --dtype q31``."""

import json


def test_bounds_as_a_table_and_as_json(linkwise):
    shown = linkwise("certify", "two_link", "gravity_torques", "--around", 0.5)
    assert shown.status == 0
    assert "all" in shown.out
    assert "finite numbers for every state" in shown.out
    (found,) = json.loads(linkwise("certify", "two_link", "gravity_torques", "--json").out)
    assert all(row["low"] <= row["lowest"]["value"] <= row["high"] for row in found["outputs"])


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
