#pragma once

#include <string_view>

namespace orrery {

// A value of a training framework's option (`theirs`) and the value of the spec's key that means the same (`ours`);
// `ours` is "" if the option's value changes neither time nor memory, or if the simulator always assumes this value.
struct OptionWord {
  std::string_view theirs, ours;
};

}  // namespace orrery
