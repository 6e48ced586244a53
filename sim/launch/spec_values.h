#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// How a value of a spec came about: the launch file states it, it follows from what is stated, the framework takes it
// where the file is silent, or nothing says it.
enum class Said : unsigned char { stated, derived, assumed, missing };

// A key of a spec with its value as text ("strategy.tensor", "8") and where that comes from ("train.sh:12
// --tensor-model-parallel-size"). Keys that begin with "launch." are no spec keys: frameworks count otherwise than a
// spec does, and settle() and unsettle() turn the two into each other.
struct SpecValue {
  std::string key, value;
  Said said = Said::stated;
  std::string from;
};

// A spec as a list of its keys, each at most once, in the order of setting.
struct SpecValues {
  std::vector<SpecValue> all;

  const SpecValue* find(std::string_view key) const;
  std::string text(std::string_view key) const;                    // "" if absent
  std::optional<std::int64_t> number(std::string_view key) const;  // nothing if absent or no whole number
  std::int64_t number_or(std::string_view key, std::int64_t absent) const;
  void set(std::string_view key, std::string value, Said said, std::string from);
  // Sets a key that is absent.
  void fill(std::string_view key, std::string value, Said said, std::string from);
  SpecValue take(std::string_view key);  // takes a key out; an empty value if absent
};

// The spec as text: YAML with a comment on every line that says where the value comes from, or JSON with null for what
// is missing. head: lines of comment before it.
std::string spec_yaml(const SpecValues& values, const std::vector<std::string>& head);
std::string spec_json(const SpecValues& values);

}  // namespace orrery
