// Runs a generated controller by the commands of standard input, a line of output for each:
//   activate, deactivate                          what it returned, and the torques
//   reference COUNT positions COUNT velocities COUNT accelerations
//   parameter NAME COUNT numbers                  whether it is taken
//   update q… qd…                                 what it returned, and the torques with all digits

#include <iostream>
#include <string>

#include "ros2_mock.hpp"

extern "C" controller_interface::ControllerInterface * make_controller();

namespace
{
// A number, also nan and inf, which streams do not read.
double number()
{
  std::string word;
  std::cin >> word;
  return std::stod(word);
}

std::vector<double> counted()
{
  std::size_t count = 0;
  std::cin >> count;
  std::vector<double> values(count);
  for (auto & value : values) {value = number();}
  return values;
}
}  // namespace

int main(int, char ** arguments)
{
  using controller_interface::CallbackReturn;
  std::unique_ptr<controller_interface::ControllerInterface> law(make_controller());
  law->rate_ = static_cast<unsigned int>(std::stoul(arguments[1]));
  if (law->on_init() != CallbackReturn::SUCCESS || law->on_configure({}) != CallbackReturn::SUCCESS) {
    return 3;
  }
  const auto given = law->state_interface_configuration().names;
  const auto taken = law->command_interface_configuration().names;
  for (const auto & name : given) {std::cout << name << ' ';}
  for (const auto & name : taken) {std::cout << name << ' ';}
  std::cout << '\n';
  std::vector<double> states(given.size()), commands(taken.size(), 1.0);
  for (auto & value : states) {law->state_interfaces_.push_back({&value});}
  for (auto & value : commands) {law->command_interfaces_.push_back({&value});}
  const std::size_t n = commands.size();
  std::cout.precision(17);
  for (std::string command; std::cin >> command; ) {
    bool good = true;
    if (command == "reference") {
      trajectory_msgs::msg::JointTrajectoryPoint wanted;
      wanted.positions = counted();
      wanted.velocities = counted();
      wanted.accelerations = counted();
      law->node_->publish(wanted);
    } else if (command == "parameter") {
      std::string name;
      std::cin >> name;
      good = law->node_->on_set({{name, {}, counted()}}).successful;
    } else if (command == "update") {
      for (std::size_t k = 0; k < 2 * n; ++k) {states[k < n ? 2 * k : 2 * (k - n) + 1] = number();}
      good = law->update({}, {}) == controller_interface::return_type::OK;
    } else {
      const bool on = command == "activate";
      good = (on ? law->on_activate({}) : law->on_deactivate({})) == CallbackReturn::SUCCESS;
    }
    std::cout << good;
    for (const double value : commands) {std::cout << ' ' << value;}
    std::cout << '\n';
  }
  return 0;
}
