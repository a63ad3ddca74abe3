// Runs a generated controller: reads "q… qd…" for each sample from standard input after a line with the reference, and
// prints torques with all digits.

#include <cmath>
#include <iostream>

#include "ros2_mock.hpp"

extern "C" controller_interface::ControllerInterface * make_controller();

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
  trajectory_msgs::msg::JointTrajectoryPoint wanted;
  for (auto * part : {&wanted.positions, &wanted.velocities, &wanted.accelerations}) {
    part->resize(n);
    for (auto & value : *part) {std::cin >> value;}
  }
  (void)law->on_activate({});
  law->node_->publish(wanted);
  wanted.positions[0] = std::nan("");
  law->node_->publish(wanted);  // refused: not finite
  std::cout.precision(17);
  for (;;) {
    for (std::size_t k = 0; k < 2 * n; ++k) {std::cin >> states[k < n ? 2 * k : 2 * (k - n) + 1];}
    if (!std::cin) {break;}
    (void)law->update({}, {});
    for (const double value : commands) {std::cout << value << ' ';}
    std::cout << '\n';
  }
  states[0] = std::nan("");
  const bool refused = law->update({}, {}) == controller_interface::return_type::ERROR;
  std::cout << (refused && commands[0] == 0.0 ? "stopped" : "went on") << '\n';
  commands[0] = 1.0;
  (void)law->on_deactivate({});
  return commands[0] == 0.0 ? 0 : 4;
}
