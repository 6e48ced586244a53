#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/option_tree.h"

namespace orrery {

// A key of a spec as shells complete it, and the words that it takes; none where it takes a figure or a path.
struct CompletedKey {
  std::string name;
  std::vector<std::string> words;
};
std::vector<CompletedKey> completed_keys();

// Scripts that complete a program's commands, options and keys; keys are those of --set and the like.
std::string bash_completion(const CommandEntry& program, const std::vector<CompletedKey>& keys);
std::string zsh_completion(const CommandEntry& program, const std::vector<CompletedKey>& keys);
std::string fish_completion(const CommandEntry& program, const std::vector<CompletedKey>& keys);

// The script for a shell: bash, zsh or fish. Throws Error naming these for another word.
std::string completion(std::string_view shell, const CommandEntry& program);

}  // namespace orrery
