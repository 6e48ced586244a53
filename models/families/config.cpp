#include "models/families/config.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"

namespace orrery {
namespace {

using nlohmann::json;

std::string shown(const json& value) { return value.dump().substr(0, 40); }

const json* found_in(const json& object, Keys keys) {
  for (const char* key : keys) {
    const auto found = object.find(key);
    if (found != object.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

bool decides(const json& value) {
  return !(value.is_null() || (value.is_boolean() && !value.get<bool>()) || value == 0 || value == "");
}

}  // namespace

Config::Config(const json& object, std::string path, bool nested)
    : object_(object), path_(std::move(path)), nested_(nested) {}

void Config::set_defaults(std::string_view defaults) {
  if (!defaults.empty()) defaults_ = json::parse(defaults);
}

void Config::fail(std::string_view key, std::string_view what) const {
  throw Error(printable(fmt::format("{}: {}: {}", path_, key, what)));
}

const json* Config::written(Keys keys) const { return found_in(object_, keys); }

const json* Config::find(Keys keys) const {
  if (const json* value = written(keys)) return value;
  if (std::any_of(keys.begin(), keys.end(), [&](const char* key) { return has(key); })) return nullptr;
  const json* value = found_in(defaults_, keys);
  if (value == nullptr) return nullptr;
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const char* k) { return defaults_.contains(k); });
  const std::string taken = fmt::format("{} {}", *key, shown(*value));
  if (decides(*value) && std::find(taken_.begin(), taken_.end(), taken) == taken_.end()) taken_.push_back(taken);
  return value;
}

std::int64_t Config::count(Keys keys, std::int64_t absent) const {
  const json* value = find(keys);
  if (value == nullptr) return absent;
  if (value->is_array()) fail(*keys.begin(), "a list: sizes that differ from layer to layer are not built");
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= 0 && number <= 1e15) || number != std::floor(number))
    fail(*keys.begin(), fmt::format("{} is not a sensible whole number", shown(*value)));
  return static_cast<std::int64_t>(number);
}

std::int64_t Config::count(Keys keys) const {
  if (find(keys) == nullptr) fail(*keys.begin(), "missing");
  return count(keys, 0);
}

std::int64_t Config::size(Keys keys) const {
  const bool given = nested_ ? find(keys) != nullptr : written(keys) != nullptr;
  const std::span<const char* const> others(keys.begin() + 1, keys.end());
  if (!given) fail(*keys.begin(), others.empty() ? "missing" : fmt::format("missing (or {})", fmt::join(others, ", ")));
  return count(keys);
}

bool Config::flag(Keys keys, bool absent) const {
  const json* value = find(keys);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) fail(*keys.begin(), fmt::format("{} is not true or false", shown(*value)));
  return value->get<bool>();
}

double Config::real(Keys keys, double absent) const {
  const json* value = find(keys);
  if (value == nullptr) return absent;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(std::abs(number) <= 1e15)) fail(*keys.begin(), fmt::format("{} is not a sensible number", shown(*value)));
  return number;
}

std::string Config::text(Keys keys) const {
  const json* value = find(keys);
  if (value == nullptr) return "";
  if (!value->is_string()) fail(*keys.begin(), fmt::format("{} is not a name", shown(*value)));
  const std::string name = value->get<std::string>();
  if (!is_printable(name)) fail(*keys.begin(), "holds a control character; leave it out");
  return name;
}

Config Config::part(const char* key) const {
  const json* value = find({key});
  if (value != nullptr && !value->is_object()) fail(key, "an object {...} is needed");
  static const json nothing = json::object();
  return {value == nullptr ? nothing : *value, path_ + ": " + key, nested_};
}

std::string with_quoted_words(std::string_view text) {
  constexpr std::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
  std::string result;
  bool within = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto* const word = within ? std::end(kWords)
                                    : std::find_if(std::begin(kWords), std::end(kWords),
                                                   [&](auto w) { return text.substr(i, w.size()) == w; });
    if (word != std::end(kWords)) {
      result += fmt::format("\"{}\"", *word);
      i += word->size() - 1;
      continue;
    }
    if (text[i] == '"') within = !within;
    result += text[i];
    if (within && text[i] == '\\' && i + 1 < text.size()) result += text[++i];
  }
  return result;
}

}  // namespace orrery
