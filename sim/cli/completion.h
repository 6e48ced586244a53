#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/option_tree.h"

namespace orrery {

// A key of a spec, and the words that a shell offers as the key's value; no words if the value is a number or a path.
struct CompletedKey {
  std::string name;
  std::vector<std::string> words;
};
std::vector<CompletedKey> completed_keys();

// Scripts with which a shell completes the program's commands and options, and the keys of a spec after options such as
// --set.
std::string bash_completion(const CommandEntry& program, const std::vector<CompletedKey>& keys);
std::string zsh_completion(const CommandEntry& program, const std::vector<CompletedKey>& keys);
std::string fish_completion(const CommandEntry& program, const std::vector<CompletedKey>& keys);

// The completion script for a shell: bash, zsh or fish. Any other name of a shell gives an Error that lists these
// three.
std::string completion(std::string_view shell, const CommandEntry& program);

}  // namespace orrery
