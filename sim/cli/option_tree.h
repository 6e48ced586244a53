#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace orrery {

// The kind of a value on the command line, which says how a shell completes it.
enum class ValueKind : unsigned char { none, words, keys, file, other };

// An option, a flag (no value), or a positional argument (name without dashes).
struct OptionEntry {
  std::vector<std::string> names;  // "-h", "--help"; one for a positional: "SPEC"
  std::string value;               // name of the value in the help: "FILE", "cpu|cuda"; "" for a flag
  std::string about;
  ValueKind kind = ValueKind::none;
  std::vector<std::string> words;  // values that it takes, where it takes no others
  bool required = false, repeats = false;

  bool positional() const { return !names.front().starts_with('-'); }
};

// A program or one of its commands as a value: what man pages and completions are made of.
struct CommandEntry {
  std::string name, about, footer;
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> commands;

  std::vector<OptionEntry> positionals() const;
  std::vector<OptionEntry> flags() const;  // options, with a value or without
};

// The tree of CLI11's options; what its help hides (group "") is left out.
CommandEntry option_tree(const CLI::App& app);

}  // namespace orrery
