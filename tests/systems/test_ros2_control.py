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


class Node:
    """A controller beside its kernel in Python: lines for the driver, and what each must answer."""

    def __init__(self, law, period):
        self.law, self.period, n = law, period, law.robot.dof
        self.lines, self.answers, self.tau = [], [], np.ones(n)
        self.settings = dict(law.settings())
        self.reference, self.memory, self.at = None, None, np.zeros(n)

    def say(self, command, *values, good=True):
        listed = [len(v) for v in values] if command != "update" else []
        rows = [
            f"{listed[k] if listed else ''} {' '.join(map(repr, map(float, v)))}"
            for k, v in enumerate(values)
        ]
        self.lines.append(" ".join([command, *rows]))
        self.answers.append([float(good), *self.tau])

    def activate(self):
        """The reference is where the arm is, and the memory is empty."""
        n = self.law.robot.dof
        self.reference, self.memory = (self.at, np.zeros(n), np.zeros(n)), np.zeros(self.law.memory_size)
        self.say("activate")

    def deactivate(self):
        self.tau = np.zeros_like(self.tau)
        self.say("deactivate")

    def follow(self, q, *more, good=True):
        if good:
            rest = [np.zeros(len(q)) if not len(part) else part for part in more]
            self.reference = (np.asarray(q), *rest)
        self.say("reference", q, *more)

    def set(self, name, values, good=True):
        if good:
            self.settings[name] = np.asarray(values, dtype=float)
        self.say(f"parameter {name}", values, good=good)

    def update(self, q, qd):
        kernel = self.law.kernel(self.period, tunable=True, fault=True)
        given = {"q": q, "qd": qd, "memory": self.memory, **self.settings}
        given |= dict(zip(("q_d", "qd_d", "qdd_d"), self.reference, strict=True))
        found = kernel(*(given[name] for name, _ in kernel.inputs))
        by_name = dict(zip((name for name, _ in kernel.outputs), found, strict=True))
        self.tau, self.memory = by_name["tau"], by_name.get("next_memory", self.memory)
        self.at = np.asarray(q)
        self.say("update", q, qd, good=not np.any(by_name["fault"]))


@pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("g++")), reason="no gcc")
def test_a_node_does_what_its_law_does_in_python(tmp_path):
    """A law with memory, gains and limits that are set while they run, messages that are refused, a second start."""
    robot, period, nothing = lw.load("two_link"), 0.002, []
    package = Ros2Controller(robot, "integral_tracking", Options(period=period))
    law = named("integral_tracking", robot, frequency=10.0)
    driver, node, rng = built(package, tmp_path), Node(law, period), np.random.default_rng(3)
    assert {key: values.tolist() for key, values in package.functions[0].entry.settings.items()} == {
        key: np.ravel(values).tolist() for key, values in law.settings().items()
    }
    node.activate()
    node.update(*rng.uniform(-1, 1, (2, 2)))
    node.follow(*rng.uniform(-1, 1, (3, 2)))
    for _ in range(3):
        node.update(*rng.uniform(-1, 1, (2, 2)))
    for bad in ([np.nan, 0.0], [0.0], [0.0, 0.0, 0.0], [0.0, -np.inf]):
        node.follow(bad, nothing, nothing, good=False)
        node.follow([0.0, 0.0], bad, nothing, good=False)
        node.follow([0.0, 0.0], nothing, bad, good=False)
    node.update(*rng.uniform(-1, 1, (2, 2)))
    node.follow(rng.uniform(-1, 1, 2), nothing, nothing)  # velocities and accelerations are zero
    node.update(*rng.uniform(-1, 1, (2, 2)))
    for key, values in law.settings().items():
        size = np.size(values)
        for bad in (np.ones(size + 1), np.ones(size - 1), [*np.ones(size - 1), np.nan], [np.inf] * size):
            if len(bad):
                node.set(key, bad, good=False)
        node.set(key, -np.ones(size), good=key != "torque_limits")
        node.set(key, rng.uniform(3.0, 40.0, size))
        node.update(*rng.uniform(-1, 1, (2, 2)))
    node.set("unknown", [1.0])  # other parameters of the node are none of the law's
    node.settings.pop("unknown")
    node.set("torque_limits", [0.0, 2.5])
    node.update(*rng.uniform(-1, 1, (2, 2)))
    node.set("torque_limits", [50.0, 50.0])
    node.update([np.nan, 0.1], [0.2, 0.3])
    node.update(*rng.uniform(-1, 1, (2, 2)))
    node.deactivate()
    node.activate()
    node.update(*rng.uniform(-1, 1, (2, 2)))
    done = subprocess.run(
        [driver, "500"], input="\n".join(node.lines), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    names, *rows = done.stdout.splitlines()
    assert names.split() == [
        "joint1/position", "joint1/velocity", "joint2/position", "joint2/velocity", "joint1/effort", "joint2/effort",
    ]  # fmt: skip
    np.testing.assert_array_equal([list(map(float, row.split())) for row in rows], node.answers)
    assert done.stderr.count("~/reference: expected 2 finite numbers") == 12
    refused = subprocess.run([driver, "1000"], input="", capture_output=True, text=True, check=False)
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
    limits = robot.effort_limits[np.isfinite(robot.effort_limits)]
    for end, expected in (("min", -limits), ("max", limits)):
        found = [float(each.text) for each in system.iter("param") if each.get("name") == end]
        assert found == expected.tolist()
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
