#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// One option as a launch file gives it: its name, dotted and with underscores ("tensor_model_parallel_size",
// "zero_optimization.stage"), its value as text ("true" for a flag without a value, blanks between the items of a
// list), and its file and line ("train.sh:12").
struct Setting {
  std::string name, value, from;
  bool null = false;  // whether the file names the option without a value (YAML's null)
};

// All options of one launch file in the order of the file. remarks: notes for the user (a key given twice, a condition
// that could not be decided), each with file and line; refers: whether some options are in another file that this one
// names, so that the absence of an option means nothing.
struct Settings {
  std::vector<Setting> all;
  std::vector<std::string> remarks;
  bool refers = false;
  // the script's variables, which may be passed to options in another file that the script sources
  std::vector<Setting> variables;
  std::vector<Settings> parts;  // launch files contained in this file, such as a configuration that a script writes

  const Setting* find(std::string_view name) const;  // the last setting with this name
};

// The functions below read launch files, one function for each syntax. path: name of the file for messages. Nothing in
// a file is ever executed. Text that cannot be read gives an Error with one line "file:line: what, and what to do".

// Reads a shell script, a Slurm file or a command line. It understands assignments, ${X:-default}, arrays, $(( )), and
// if, elif and case on variables that are assigned. A variable that the text does not set stays as it is spelled.
Settings read_shell(std::string_view text, const std::string& path);
// Reads YAML or JSON; keys of nested maps become dotted names.
Settings read_tree(std::string_view text, const std::string& path);
Settings read_toml(std::string_view text, const std::string& path);

// Reads a launch file in the syntax that the file's name shows or, if the name shows none, that the contents show.
Settings read_settings(std::string_view text, const std::string& path);

}  // namespace orrery
