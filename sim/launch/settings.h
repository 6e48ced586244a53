#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// One option of a launch file as the file states it: its dotted name with underscores ("tensor_model_parallel_size",
// "zero_optimization.stage"), the text of its value ("true" for a flag without one, items of a list parted by blanks),
// and its place ("train.sh:12").
struct Setting {
  std::string name, value, from;
  bool null = false;  // the file names the option without a value (YAML's null)
};

// All options of one text in the order of the text. remarks: what a reader must know beside them, each with its place
// (a key given twice, a condition that was not decided). refers: part of the options stands in another file that the
// text names, so that an option's absence says nothing.
struct Settings {
  std::vector<Setting> all;
  std::vector<std::string> remarks;
  bool refers = false;
  std::vector<Setting> variables;  // a script's variables: options of a file that it sources may use them
  std::vector<Settings> parts;     // texts within the text, such as a configuration that a script writes

  const Setting* find(std::string_view name) const;  // the last one of a name
};

// Readers of the syntaxes. path: the file's name for messages. No text is ever executed. All throw Error with one line
// "file:line: what, and what to do" for text that they cannot read.

// A shell script, a Slurm file or a command line: assignments, ${X:-default}, arrays, $(( )), if, elif and case on
// variables that are assigned. A variable that the text does not set stays as it is spelled.
Settings read_shell(std::string_view text, const std::string& path);
// YAML or JSON: maps become dotted names.
Settings read_tree(std::string_view text, const std::string& path);
Settings read_toml(std::string_view text, const std::string& path);

// Reads a text by the syntax that its name or, where that says nothing, its first lines show.
Settings read_settings(std::string_view text, const std::string& path);

}  // namespace orrery
