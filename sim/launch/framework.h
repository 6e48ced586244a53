#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/option_word.h"
#include "sim/launch/settings.h"

namespace orrery {

// One option of a framework and the key of the spec that says the same. Import reads the table from left to right and
// export from right to left, so that one undoes the other.
struct OptionRow {
  std::string_view option, key;
  std::span<const OptionWord> words = {};  // none: the number is the same on both sides
  std::string_view assumed = {};           // value of the key where a complete file leaves the option out
  bool older = false;                      // another spelling, which export does not write
  bool text = false;                       // the value is a text, not a number
};

enum class Syntax : unsigned char { shell, json, toml, yaml };

// A framework's launch files. prefixes: beginnings of names that say nothing ("MODEL_ARGS."). signs: beginnings of
// names that only its files have. ignored: beginnings of names that change neither step time nor memory. variables:
// names that scripts give to values of options.
struct Framework {
  std::string_view name, about, software;
  Syntax syntax = Syntax::shell;
  std::vector<std::span<const OptionRow>> tables;
  std::span<const std::string_view> prefixes, signs, ignored;
  std::span<const OptionWord> variables = {};
  std::span<const std::string_view> refers = {};  // options that name a further file of the same kind
  bool assumes = true;                            // whether an absent option has the default of its row

  // The rows in the order in which they are read: a later one overrides an earlier one's key.
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
std::span<const OptionRow> launcher_rows();  // torchrun, deepspeed, Slurm
std::span<const std::string_view> launcher_ignored();

// The framework whose files have such settings; null if none.
const Framework* framework_of(const Settings& settings);

// The framework of a name that export takes (megatron, deepspeed, torchtitan, nanotron, fsdp). Throws Error naming
// these.
const Framework& find_framework(std::string_view name);

}  // namespace orrery
