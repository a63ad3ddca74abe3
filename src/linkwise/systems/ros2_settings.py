"""Gains and limits of a ros2_control controller: parameters of its node, which may change while it runs."""

from __future__ import annotations

import numpy as np

from linkwise.core import foreign
from linkwise.embedded.coded import Coded

_PLACES = (
    *("settings_declared", "settings_configured", "settings_functions", "settings_read", "settings_members"),
    "settings_about",
)


def code(function: Coded) -> dict[str, str]:
    """The parts of the C++ sources, by their places in the templates; all empty where gains are constants.

    Args:
        function: the controller.
    """
    settings = function.entry.settings
    if not settings:
        return dict.fromkeys(_PLACES, "")
    names = {a.array.title: a.name for a in function.arguments}
    declared = "".join(
        f"  auto_declare<std::vector<double>>({foreign.c_string(title)}, {{{_listed(values)}}});\n"
        for title, values in settings.items()
    )
    listed = ", ".join(foreign.c_string(title) for title in settings)
    chosen = "".join(
        f"  if (name == {foreign.c_string(title)}) {{return copy(values, settings.{names[title]}, "
        f"{values.size}, {'true' if title == 'torque_limits' else 'false'});}}\n"
        for title, values in settings.items()
    )
    return {
        "settings_declared": declared,
        "settings_configured": _CONFIGURED.replace("@names@", listed).replace("@name@", function.name),
        "settings_functions": _FUNCTIONS.replace("@chosen@", chosen).replace("@real@", function.real),
        "settings_read": "  const Settings & settings = *settings_.readFromRT();\n",
        "settings_members": _MEMBERS.replace("@name@", function.name),
        "settings_about": "Gains and limits are\n// parameters of the node, which may be set while it runs. ",
    }


def yaml(function: Coded) -> str:
    """The parameters with their default values.

    Args:
        function: the controller.
    """
    return "".join(
        f"    {title}: [{_listed(values)}]  # {foreign.line_comment(function.entry.words.get(title, title))}\n"
        for title, values in function.entry.settings.items()
    )


def _listed(values: np.ndarray) -> str:
    """Numbers with a point, as ROS tells numbers from whole ones by it."""
    return ", ".join(repr(float(number)) for number in np.clip(np.ravel(values), -1e30, 1e30))


_CONFIGURED = """\
  latest_ = @name@_defaults;
  for (const std::string name : {@names@}) {
    if (!set(latest_, name, get_node()->get_parameter(name).as_double_array())) {
      RCLCPP_ERROR(get_node()->get_logger(), "%s: wrong number of values, or one that cannot be", name.c_str());
      return CallbackReturn::ERROR;
    }
  }
  settings_.initRT(latest_);
  on_set_ = get_node()->add_on_set_parameters_callback(
    [this](const std::vector<rclcpp::Parameter> & parameters) {return changed(parameters);});
"""

_FUNCTIONS = """\
namespace
{
// Values of a parameter as numbers of the law; false where they do not fit.
bool copy(const std::vector<double> & values, @real@ * into, std::size_t count, bool positive)
{
  if (values.size() != count) {
    return false;
  }
  for (const double value : values) {
    if (!std::isfinite(value) || (positive && value < 0.0)) {
      return false;
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    into[k] = static_cast<@real@>(values[k]);
  }
  return true;
}
}  // namespace

bool Controller::set(Settings & settings, const std::string & name, const std::vector<double> & values)
{
@chosen@  return true;  // another parameter of the node
}

// All parameters of a call are taken, or none.
rcl_interfaces::msg::SetParametersResult Controller::changed(const std::vector<rclcpp::Parameter> & parameters)
{
  rcl_interfaces::msg::SetParametersResult result;
  Settings wanted = latest_;
  result.successful = true;
  for (const auto & parameter : parameters) {
    if (parameter.get_type() != rclcpp::ParameterType::PARAMETER_DOUBLE_ARRAY) {
      continue;
    }
    if (!set(wanted, parameter.get_name(), parameter.as_double_array())) {
      result.successful = false;
      result.reason = parameter.get_name() + ": wrong number of values, or one that cannot be";
      return result;
    }
  }
  latest_ = wanted;
  settings_.writeFromNonRT(latest_);
  return result;
}

"""

_MEMBERS = """\

  using Settings = @name@_settings;
  static bool set(Settings & settings, const std::string & name, const std::vector<double> & values);
  rcl_interfaces::msg::SetParametersResult changed(const std::vector<rclcpp::Parameter> & parameters);
  Settings latest_{};
  realtime_tools::RealtimeBuffer<Settings> settings_;
  rclcpp::node_interfaces::OnSetParametersCallbackHandle::SharedPtr on_set_;
"""
