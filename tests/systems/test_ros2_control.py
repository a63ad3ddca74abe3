"""A generated ros2_control controller compiles and gives the torques of the controller in Python."""

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import named
from linkwise.embedded import Options
from linkwise.systems import Ros2Controller, SystemExportError

HERE = Path(__file__).parent
HEADERS = (
    "controller_interface/controller_interface.hpp",
    "rcl_interfaces/msg/set_parameters_result.hpp",
    "rclcpp/rclcpp.hpp",
    "realtime_tools/realtime_buffer.hpp",
    "trajectory_msgs/msg/joint_trajectory_point.hpp",
    "pluginlib/class_list_macros.hpp",
)
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


def built(package, tmp_path):
    """The program that runs the controller of a package."""
    package.write(tmp_path / "package")
    for name in HEADERS:
        place = tmp_path / "mock" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text('#include "ros2_mock.hpp"\n')
    folders = ("-Imock", "-Ipackage/include", f"-I{HERE}")
    sources = sorted((tmp_path / "package" / "src").glob("*.c"))
    commands = [
        ["gcc", "-std=c99", "-O1", *folders, *WARNINGS, "-c", *map(str, sources)],
        ["g++", "-std=c++17", "-O0", *folders, *WARNINGS, "package/src/controller.cpp", HERE / "ros2_driver.cpp",
         *(f"{each.stem}.o" for each in sources), "-lm", "-o", "driver"],
    ]  # fmt: skip
    for command in commands:
        done = subprocess.run([*map(str, command)], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return tmp_path / "driver"


@pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("g++")), reason="no gcc")
def test_update_gives_the_torques_of_the_controller_in_python(tmp_path):
    """A law with memory: its integral moves once in every update."""
    robot = lw.load("two_link")
    package = Ros2Controller(robot, "integral_tracking", Options(period=0.002))
    driver = built(package, tmp_path)
    rng = np.random.default_rng(3)
    reference, samples = rng.uniform(-1, 1, (3, 2)), rng.uniform(-1, 1, (5, 2, 2))
    given = "\n".join(" ".join(repr(float(x)) for x in np.ravel(row)) for row in (reference, *samples))
    done = subprocess.run([driver, "500"], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names, *rows, last = done.stdout.splitlines()
    assert names.split() == [
        "joint1/position", "joint1/velocity", "joint2/position", "joint2/velocity", "joint1/effort", "joint2/effort",
    ]  # fmt: skip
    assert last == "stopped"
    assert "~/reference: expected 2 finite numbers" in done.stderr
    law = named("integral_tracking", robot, frequency=10.0).kernel(0.002)
    memory, expected = np.zeros(2), []
    for q, qd in samples:
        tau, memory = law(q, qd, *reference, memory)
        expected.append(tau)
    np.testing.assert_array_equal([list(map(float, row.split())) for row in rows], expected)
    refused = subprocess.run([driver, "1000"], input=given, capture_output=True, text=True, check=False)
    assert refused.returncode == 3
    assert "generated for 500 Hz, got 1000 Hz" in refused.stderr


def test_the_files_that_ros_reads_name_the_same_things():
    robot = lw.load("panda")
    package = Ros2Controller(
        robot,
        "computed_torque",
        Options("float32"),
        maintainer="Ada & Co <ada@example.com>",
        license="Apache-2.0",
    )
    files = package.files
    name = package.package
    about = ET.fromstring(files["package.xml"])
    assert about.findtext("name") == name
    assert (about.findtext("maintainer"), about.findtext("license")) == ("Ada & Co", "Apache-2.0")
    assert about.find("maintainer").get("email") == "ada@example.com"
    (plugin,) = ET.fromstring(files["controller_plugin.xml"])
    assert plugin.get("type") == f"{name}::Controller"
    assert f"type: {plugin.get('name')}" in files["config/controller.yaml"]
    assert "update_rate: 1000" in files["config/controller.yaml"]
    system = ET.fromstring(files["urdf/ros2_control.urdf"])
    assert [joint.get("name") for joint in system.iter("joint")] == package.joints
    assert [float(each.text) for each in system.iter("param") if each.get("name") == "max"] == list(
        robot.effort_limits[np.isfinite(robot.effort_limits)]
    )
    for path in files:
        if path.startswith("src/") and path.endswith(".c"):
            assert path in files["CMakeLists.txt"]
    assert not [path for path, text in files.items() if "@" in text.replace("ada@example.com", "")]
    assert "TODO" in Ros2Controller(robot, "computed_torque")._package_xml()


def test_what_ros2_control_cannot_run_is_refused():
    robot = lw.load("two_link")
    with pytest.raises(SystemExportError, match="runs controllers"):
        Ros2Controller(robot, "mass_matrix")
    with pytest.raises(SystemExportError, match='expected "NAME <MAIL>", got'):
        Ros2Controller(robot, "computed_torque", maintainer="Ada")
    with pytest.raises(SystemExportError, match="whole number of hertz"):
        Ros2Controller(robot, "computed_torque", Options(period=0.0007))
