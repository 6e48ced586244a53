#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace orrery {

// The kinds of values of command-line options, by which a shell chooses how to complete a value.
enum class ValueKind : unsigned char { none, words, keys, file, other };

// An option, a flag (no value), or a positional argument (name without dashes).
struct OptionEntry {
  std::vector<std::string> names;  // an option's names, "-h" and "--help"; a positional has one, "SPEC"
  std::string value;               // name of the value in the help: "FILE", "cpu|cuda"; "" for a flag
  std::string about;
  ValueKind kind = ValueKind::none;
  std::vector<std::string> words;  // the only values accepted; empty: any
  bool required = false, repeats = false;

  bool positional() const { return !names.front().starts_with('-'); }
};

// A program or one of its commands, with options. Manual pages and shell completions are made from it.
struct CommandEntry {
  std::string name, about, footer;
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> commands;

  std::vector<OptionEntry> positionals() const;
  std::vector<OptionEntry> flags() const;  // all options, with or without a value
};

// Reads the options and commands of CLI11's tree, without those that the help hides (group "").
CommandEntry option_tree(const CLI::App& app);

}  // namespace orrery
