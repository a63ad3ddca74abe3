// The few declarations of ROS 2 that a generated controller uses, for machines without ROS.

#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#define RCLCPP_ERROR(logger, ...) ((void)(logger), std::fprintf(stderr, __VA_ARGS__), std::fprintf(stderr, "\n"))
#define PLUGINLIB_EXPORT_CLASS(derived, base) \
  extern "C" base * make_controller(); \
  base * make_controller() { return new derived(); }

namespace trajectory_msgs::msg
{
struct JointTrajectoryPoint
{
  std::vector<double> positions, velocities, accelerations, effort;
};
}  // namespace trajectory_msgs::msg

namespace rcl_interfaces::msg
{
struct SetParametersResult
{
  bool successful = false;
  std::string reason;
};
}  // namespace rcl_interfaces::msg

namespace rclcpp_lifecycle
{
class State {};
}  // namespace rclcpp_lifecycle

namespace rclcpp
{
class Time {};
class Duration {};
class Logger {};
class SystemDefaultsQoS {};

template<class Message>
struct Subscription
{
  using SharedPtr = std::shared_ptr<Subscription>;
  std::function<void(const Message &)> callback;
};

enum class ParameterType { PARAMETER_STRING_ARRAY, PARAMETER_DOUBLE_ARRAY };

struct Parameter
{
  std::string name;
  std::vector<std::string> values;
  std::vector<double> numbers;
  const std::string & get_name() const {return name;}
  ParameterType get_type() const
  {
    return numbers.empty() ? ParameterType::PARAMETER_STRING_ARRAY : ParameterType::PARAMETER_DOUBLE_ARRAY;
  }
  std::vector<std::string> as_string_array() const {return values;}
  std::vector<double> as_double_array() const {return numbers;}
};

namespace node_interfaces
{
struct OnSetParametersCallbackHandle
{
  using SharedPtr = std::shared_ptr<OnSetParametersCallbackHandle>;
};
}  // namespace node_interfaces

struct Node
{
  std::map<std::string, Parameter> parameters;
  std::function<rcl_interfaces::msg::SetParametersResult(const std::vector<Parameter> &)> on_set;
  template<class Callback>
  node_interfaces::OnSetParametersCallbackHandle::SharedPtr add_on_set_parameters_callback(Callback callback)
  {
    on_set = callback;
    return std::make_shared<node_interfaces::OnSetParametersCallbackHandle>();
  }
  std::function<void(const trajectory_msgs::msg::JointTrajectoryPoint &)> publish;
  Parameter get_parameter(const std::string & name) const {return parameters.at(name);}
  Logger get_logger() const {return {};}
  template<class Message, class Callback>
  typename Subscription<Message>::SharedPtr create_subscription(
    const std::string &, const SystemDefaultsQoS &, Callback callback)
  {
    publish = callback;
    return std::make_shared<Subscription<Message>>();
  }
};
}  // namespace rclcpp

namespace realtime_tools
{
template<class T>
class RealtimeBuffer
{
public:
  void writeFromNonRT(const T & value) {value_ = value;}
  void initRT(const T & value) {value_ = value;}
  T * readFromRT() {return &value_;}

private:
  T value_{};
};
}  // namespace realtime_tools

namespace controller_interface
{
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };
enum class interface_configuration_type { ALL, INDIVIDUAL, NONE };
struct InterfaceConfiguration
{
  interface_configuration_type type;
  std::vector<std::string> names;
};

struct Loaned
{
  double * place;
  double get_value() const {return *place;}
  [[nodiscard]] bool set_value(double value) {*place = value; return true;}
};

class ControllerInterface
{
public:
  virtual ~ControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  virtual CallbackReturn on_configure(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) = 0;
  virtual return_type update(const rclcpp::Time &, const rclcpp::Duration &) = 0;

  std::shared_ptr<rclcpp::Node> get_node() const {return node_;}
  unsigned int get_update_rate() const {return rate_;}
  template<class T>
  void auto_declare(const std::string & name, const T & value)
  {
    rclcpp::Parameter made{name, {}, {}};
    if constexpr (std::is_same_v<T, std::vector<double>>) {
      made.numbers = value;
    } else {
      made.values = value;
    }
    node_->parameters[name] = made;
  }

  std::shared_ptr<rclcpp::Node> node_ = std::make_shared<rclcpp::Node>();
  std::vector<Loaned> state_interfaces_, command_interfaces_;
  unsigned int rate_ = 1000;
};
}  // namespace controller_interface
