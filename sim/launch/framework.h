#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/option_word.h"
#include "sim/launch/settings.h"

namespace orrery {

// One row of a framework's table of options: an option of the framework, and the key of a spec with the same meaning.
// Import translates options to keys, export keys to options, so that one undoes the other.
struct OptionRow {
  std::string_view option, key;
  // the framework's word for a value and the spec's word for it, in pairs; empty if the value is the same number or
  // text in both
  std::span<const OptionWord> words = {};
  std::string_view assumed = {};  // the default that holds if a complete launch file lacks the option
  bool older = false;             // whether the option is an older or alternative spelling, which export does not write
  bool text = false;              // whether the value is a string, not a number
};

enum class Syntax : unsigned char { shell, json, toml, yaml };

// A training framework and the form of its launch files. prefixes: beginnings of option names that carry no meaning
// ("MODEL_ARGS."); signs: beginnings of option names by which the framework's files are recognised; ignored: beginnings
// of the names of options that change neither step time nor memory; variables: names of shell variables whose values
// scripts pass to options.
struct Framework {
  std::string_view name, about, software;
  Syntax syntax = Syntax::shell;
  std::vector<std::span<const OptionRow>> tables;
  std::span<const std::string_view> prefixes, signs, ignored;
  std::span<const OptionWord> variables = {};
  // options whose value is the path of a further launch file of this framework
  std::span<const std::string_view> refers = {};
  // whether an option that a launch file lacks has the default value in its row of the table (OptionRow::assumed)
  bool assumes = true;

  // The rows of all tables of options, in the order in which import reads them. If two rows have the same key, the
  // later one counts.
  std::vector<OptionRow> rows() const;
  std::string without_prefix(const std::string& option) const;
};

inline constexpr OptionWord kFlag[] = {{"true", "true"}, {"false", "false"}};
inline constexpr OptionWord kUnless[] = {{"true", "false"}, {"false", "true"}};
inline constexpr OptionWord kNothing[] = {{"true", ""}, {"false", ""}};

const Framework& megatron();
const Framework& nemo();
const Framework& deepspeed();
const Framework& accelerate();
const Framework& torchtitan();
const Framework& nanotron();
std::span<const OptionRow> launcher_rows();  // options of torchrun, deepspeed and Slurm
std::span<const std::string_view> launcher_ignored();

// The framework to which a launch file with these settings belongs; nullptr if none is recognised.
const Framework* framework_of(const Settings& settings);

// Finds a framework by the name that `orrery export` accepts (megatron, deepspeed, torchtitan, nanotron, fsdp). Any
// other name gives an Error that lists these.
const Framework& find_framework(std::string_view name);

}  // namespace orrery
