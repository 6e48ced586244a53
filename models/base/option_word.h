#pragma once

#include <string_view>

namespace orrery {

// A word of a framework's option and what it is in a spec; ours "": the word changes neither time nor memory, or is
// what a spec takes anyway.
struct OptionWord {
  std::string_view theirs, ours;
};

}  // namespace orrery
