#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/option_word.h"
#include "sim/launch/settings.h"

namespace orrery {

// A row of the table of a framework's options: one option, and the key of a spec with the same meaning. Import
// translates options to keys, and export keys to options, so that one undoes the other.
struct OptionRow {
  std::string_view option, key;
  // words for values in the option and in the key; empty: option and key have the same number
  std::span<const OptionWord> words = {};
  std::string_view assumed = {};  // value of the key if a complete launch file does not mention the option
  bool older = false;  // whether this is an older or other spelling of the option, which export does not write
  bool text = false;   // whether the value is a string, not a number
};

enum class Syntax : unsigned char { shell, json, toml, yaml };

// The launch files of a framework. prefixes: beginnings of option names that carry no meaning ("MODEL_ARGS."). signs:
// beginnings of option names by which the framework's files are recognised. ignored: beginnings of names of options
// that change neither step time nor memory. variables: names of shell variables whose values scripts pass to options.
struct Framework {
  std::string_view name, about, software;
  Syntax syntax = Syntax::shell;
  std::vector<std::span<const OptionRow>> tables;
  std::span<const std::string_view> prefixes, signs, ignored;
  std::span<const OptionWord> variables = {};
  // options whose value is the path of a further launch file of this framework
  std::span<const std::string_view> refers = {};
  // whether an absent option has the default in its row of the table (OptionRow::assumed)
  bool assumes = true;

  // The rows of all tables in the order in which import reads them: of two rows with the same key the later one wins.
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

// The framework to whose files these settings belong; nullptr if none is recognised.
const Framework* framework_of(const Settings& settings);

// The framework with a name that `orrery export` accepts (megatron, deepspeed, torchtitan, nanotron, fsdp). Throws
// Error that lists these names for any other.
const Framework& find_framework(std::string_view name);

}  // namespace orrery
