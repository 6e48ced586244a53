#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// The origin of a value of a spec that is made from launch files: a launch file states the value (stated), it follows
// from stated values (derived), it is the framework's default (assumed), or it is not known (missing).
enum class Said : unsigned char { stated, derived, assumed, missing };

// A key of a spec and its value as text ("strategy.tensor", "8"), with the source ("train.sh:12
// --tensor-model-parallel-size"). Keys that begin with "launch." are not keys of a spec but hold quantities that
// frameworks count differently; resolve_launch_keys() turns these into keys of a spec, and add_launch_keys() does the
// reverse.
struct SpecValue {
  std::string key, value;
  Said said = Said::stated;
  std::string from;
};

// A spec as a list of its keys, each at most once, in the order in which they were set.
struct SpecValues {
  std::vector<SpecValue> all;

  const SpecValue* find(std::string_view key) const;
  std::string text(std::string_view key) const;  // value of a key; "" if the key is absent
  // Value of a key as a number; nullopt if the key is absent or the value is not a whole number.
  std::optional<std::int64_t> number(std::string_view key) const;
  std::int64_t number_or(std::string_view key, std::int64_t absent) const;
  void set(std::string_view key, std::string value, Said said, std::string from);
  // Sets a key of the spec, unless it has a value already.
  void fill(std::string_view key, std::string value, Said said, std::string from);
  SpecValue take(std::string_view key);  // removes a key; returns its value, which is empty if the key is absent
};

// The text of a spec file: YAML in which a comment on every line names the source of the value, or JSON with null for
// missing values. head: comment lines at the beginning.
std::string spec_yaml(const SpecValues& values, const std::vector<std::string>& head);
std::string spec_json(const SpecValues& values);

}  // namespace orrery
