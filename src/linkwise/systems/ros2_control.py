"""A ros2_control controller as a ROS 2 package: generated C, the C++ around it, and the files that ROS reads."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from linkwise.compiler.emit.clike import LONGEST_NAME, spelt
from linkwise.control import CONTROLLERS
from linkwise.core import foreign
from linkwise.core.foreign import Code, ascii_line, xml_text
from linkwise.core.once import once
from linkwise.embedded import Options, Package, header
from linkwise.embedded.entries import LAWS
from linkwise.embedded.package_files import support_file
from linkwise.robot.robot import Robot
from linkwise.systems import ros2_settings
from linkwise.systems.fmu_model import SystemExportError
from linkwise.version import __version__

_DEPENDENCIES = (
    *("controller_interface", "pluginlib", "rcl_interfaces", "rclcpp", "rclcpp_lifecycle", "realtime_tools"),
    "trajectory_msgs",
)
_MAINTAINER = re.compile(r"([^<>]+?)\s*<([^<>@\s]+@[^<>@\s]+)>")
_NOBODY = "TODO: maintainer <todo@example.com>"
_PASSED = {"q_d": "wanted.q.data()", "qd_d": "wanted.qd.data()", "qdd_d": "wanted.qdd.data()"}
_KEPT = {"memory": "memory_.data()", "next_memory": "next_memory_.data()"}


class Ros2Controller(Package):
    """A controller of ros2_control; ``write`` makes the folder of a ROS 2 package.

    Args:
        robot: the robot, joints with one coordinate each.
        name: a controller, or "guarded_controller".
        options: choices; ``period`` is one over the update rate.
        package: name of the ROS package; by default from robot and controller.
        maintainer: "NAME <MAIL>" of whoever maintains the package; by default a TODO in ``package.xml``.
        license: of the package, such as "Apache-2.0"; by default a TODO.

    Raises:
        SystemExportError: there is no such controller, the robot has ball or floating joints, or the maintainer has no
            address.
    """

    def __init__(
        self,
        robot: Robot,
        name: str,
        options: Options | None = None,
        *,
        package: str | None = None,
        maintainer: str = _NOBODY,
        license: str = "TODO: license of this package",
    ):
        self.maintainer, self.license = _MAINTAINER.fullmatch(maintainer.strip()), license.strip()
        if self.maintainer is None:
            raise SystemExportError(f'maintainer: expected "NAME <MAIL>", got {maintainer!r}')
        if not self.license:
            raise SystemExportError("license: expected a name, such as Apache-2.0")
        options = Options() if options is None else options
        if name not in (*CONTROLLERS, *LAWS):
            raise SystemExportError(
                f"{name}: ros2_control runs controllers: {', '.join((*CONTROLLERS, *LAWS))}"
            )
        if robot.nq != robot.dof or not robot.dof:
            raise SystemExportError(
                f"{robot.name}: ros2_control needs moving joints with one coordinate each"
            )
        if options.payload:
            raise SystemExportError("payload: this controller has no input for it")
        self.rate = round(1.0 / options.period)
        if not np.isclose(self.rate * options.period, 1.0, rtol=1e-9) or self.rate < 1:
            raise SystemExportError(
                f"period: an update rate is a whole number of hertz, and {options.period:g} s is none"
            )
        self.package = spelt(package or f"{robot.name}_{name}").lower()[: LONGEST_NAME - 4].strip("_")
        super().__init__(robot, [name], options, prefix=f"{self.package}_law")
        self.name = name

    @property
    def joints(self) -> list[str]:
        return [joint.name for joint in self.robot.coordinate_joints]

    @once
    def files(self) -> dict[str, str]:
        """The text of every file by its path in the package."""
        (function,) = self.functions
        sources = {
            f"{function.name}.c": function.text,
            f"{self.prefix}_limits.c": header.limits(self.robot, self.prefix, function.real),
        }
        if function.entry.settings:
            sources[f"{function.name}_defaults.c"] = header.defaults(function, self.prefix)
        values = self._values(list(sources))
        found = {
            "package.xml": self._package_xml(),
            "CMakeLists.txt": _filled("ros2_CMakeLists.txt.in", values),
            "controller_plugin.xml": self._plugin_xml(),
            "config/controller.yaml": self._yaml(),
            "urdf/ros2_control.urdf": self._urdf(),
            f"include/{self.package}/controller.hpp": _filled("controller.hpp.in", values),
            f"include/{self.prefix}.h": header.header(
                self.robot, self.prefix, self.functions, {}, "", self.about
            ),
            "src/controller.cpp": _filled("controller.cpp.in", values),
            **{f"src/{name}": text for name, text in sources.items()},
            "src/lw_fma.h": support_file("lw_fma.h"),
        }
        return self.with_manifest(found)

    def _values(self, sources: Sequence[str]) -> dict[str, str]:
        (function,) = self.functions
        sizes = {a.array.title: a.size for a in function.arguments}
        places = {title: f"{title}.data()" for title in ("q", "qd", "tau")} | _PASSED | _KEPT
        places |= {
            a.array.title: f"settings.{a.name}"
            for a in function.arguments
            if a.array.title in function.entry.settings
        }
        memory, real = sizes.get("memory"), f"{self.prefix}_real"
        room = [a for a in function.arguments if a.array.kind == "scratch"]
        signals = {
            a.array.title: f"{a.name}_"
            for a in function.arguments
            if a.array.kind == "input" and a.array.title not in places
        }
        places |= {title: f"{name}.data()" for title, name in signals.items()}
        passed = [places.get(a.array.title, "room_.data()") for a in function.arguments]
        members = [f"  std::array<{real}, {memory}> memory_{{}}, next_memory_{{}};\n"] if memory else []
        members += [f"  std::array<{real}, {room[0].size}> room_{{}};\n"] if room else []
        members += [
            f"  std::array<{real}, {sizes[title]}> {name}{{}};  // {foreign.line_comment(title)}: zeros until set\n"
            for title, name in signals.items()
        ]
        return {
            "about": self.about,
            "summary": function.entry.summary,
            "package": Code(self.package),
            "prefix": Code(self.prefix),
            "n": Code(self.robot.dof),
            "period": Code(repr(self.options.period)),
            "names": Code(", ".join(map(foreign.c_string, self.joints))),
            "sources": Code("\n  ".join(f"src/{name}" for name in sources)),
            "memory_declared": Code("".join(members)),
            "memory_cleared": Code("  memory_.fill(0);\n" if memory else ""),
            "memory_kept": Code("  memory_ = next_memory_;\n" if memory else ""),
            **{name: Code(text) for name, text in ros2_settings.code(function).items()},
            "call": Code(f"  const int fault = {function.name}(\n    {', '.join(passed)});"),
        }

    def _package_xml(self) -> str:
        depends = "".join(f"  <depend>{name}</depend>\n" for name in _DEPENDENCIES)
        version = ".".join((__version__.split("+")[0].split(".dev")[0].split(".") + ["0", "0"])[:3])
        assert self.maintainer is not None
        who, mail = self.maintainer.groups()
        return (
            '<?xml version="1.0"?>\n<package format="3">\n'
            f"  <name>{self.package}</name>\n  <version>{version}</version>\n"
            f"  <description>{xml_text(ascii_line(self.functions[0].entry.summary))}</description>\n"
            f'  <maintainer email="{xml_text(mail)}">{xml_text(who)}</maintainer>\n'
            f"  <license>{xml_text(self.license)}</license>\n"
            f"  <buildtool_depend>ament_cmake</buildtool_depend>\n{depends}"
            "  <export>\n    <build_type>ament_cmake</build_type>\n  </export>\n</package>\n"
        )

    def _plugin_xml(self) -> str:
        return (
            f'<library path="{self.package}">\n  <class name="{self.package}/Controller" '
            f'type="{self.package}::Controller" base_class_type="controller_interface::ControllerInterface">\n'
            f"    <description>{xml_text(ascii_line(self.functions[0].entry.summary))}</description>\n"
            "  </class>\n</library>\n"
        )

    def _yaml(self) -> str:
        names = "".join(f"      - {foreign.yaml_string(name)}\n" for name in self.joints)
        return (
            f"controller_manager:\n  ros__parameters:\n    update_rate: {self.rate}  # Hz\n"
            f"    {self.name}:\n      type: {self.package}/Controller\n\n"
            f"{self.name}:\n  ros__parameters:\n    joints:\n{names}" + ros2_settings.yaml(self.functions[0])
        )

    def _urdf(self) -> str:
        """The interfaces that the hardware must have; mock_components stands for a hardware of any kind."""
        limits = self.robot.effort_limits
        joints = []
        for joint, limit in zip(self.robot.coordinate_joints, limits, strict=True):
            bounds = (
                f'\n      <param name="min">{-limit:.17g}</param>\n      <param name="max">{limit:.17g}</param>\n    '
                if np.isfinite(limit)
                else ""
            )
            joints.append(
                f'  <joint name="{xml_text(joint.name)}">\n'
                f'    <command_interface name="effort">{bounds}</command_interface>\n'
                '    <state_interface name="position"/>\n    <state_interface name="velocity"/>\n  </joint>\n'
            )
        return (
            f'<ros2_control name="{xml_text(ascii_line(self.robot.name))}" type="system">\n  <hardware>\n'
            "    <plugin>mock_components/GenericSystem</plugin>\n  </hardware>\n"
            + "".join(joints)
            + "</ros2_control>\n"
        )


def _filled(name: str, values: dict[str, str]) -> str:
    emitter = foreign.cmake_comment if name.endswith(".txt.in") else foreign.line_comment
    return foreign.fill(support_file(name, "linkwise.systems"), values, emitter)
