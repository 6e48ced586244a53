#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

namespace orrery::test {

// Whether a value holds to a JSON Schema, for the words that `orrery schema` uses: type, enum, const, pattern, anyOf,
// items, properties, patternProperties, additionalProperties, required, $ref. Throws std::runtime_error at another
// word, so that no rule is passed over. python/tests/test_orrery.py asks Python's jsonschema the same of some specs.
class SchemaCheck {
 public:
  explicit SchemaCheck(nlohmann::json root) : root_(std::move(root)) {}

  bool holds(const nlohmann::json& value) const { return holds(value, root_); }

 private:
  using Json = nlohmann::json;

  static bool is_type(const Json& value, const std::string& type) {
    if (type == "integer")
      return value.is_number_integer() || (value.is_number() && value.get<double>() == std::floor(value.get<double>()));
    return type == "number"    ? value.is_number()
           : type == "string"  ? value.is_string()
           : type == "boolean" ? value.is_boolean()
           : type == "array"   ? value.is_array()
           : type == "object"  ? value.is_object()
                               : type == "null" && value.is_null();
  }

  bool matches(const std::string& text, const std::string& pattern) const {
    const auto made = patterns_.try_emplace(pattern, pattern, std::regex::ECMAScript).first;
    return std::regex_search(text, made->second);
  }

  bool properties_hold(const Json& value, const Json& schema) const {
    const Json patterns = schema.value("patternProperties", Json::object());
    for (const auto& [key, item] : value.items()) {
      bool known = schema.contains("properties") && schema["properties"].contains(key);
      if (known && !holds(item, schema["properties"][key])) return false;
      for (const auto& [pattern, rule] : patterns.items()) {
        if (!matches(key, pattern)) continue;
        known = true;
        if (!holds(item, rule)) return false;
      }
      const Json others = schema.value("additionalProperties", Json(true));
      if (!known && !(others.is_object() ? holds(item, others) : others.get<bool>())) return false;
    }
    return true;
  }

  bool holds(const Json& value, const Json& schema) const {
    const auto any = [&](const Json& list, auto test) { return std::any_of(list.begin(), list.end(), test); };
    for (const auto& [word, rule] : schema.items()) {
      bool good = true;
      if (word == "type")
        good = rule.is_string() ? is_type(value, rule) : any(rule, [&](const Json& t) { return is_type(value, t); });
      else if (word == "enum")
        good = any(rule, [&](const Json& x) { return x == value; });
      else if (word == "const")
        good = value == rule;
      else if (word == "pattern")
        good = !value.is_string() || matches(value, rule);
      else if (word == "anyOf")
        good = any(rule, [&](const Json& s) { return holds(value, s); });
      else if (word == "items")
        good =
            !value.is_array() || std::all_of(value.begin(), value.end(), [&](const Json& x) { return holds(x, rule); });
      else if (word == "minItems")
        good = !value.is_array() || value.size() >= rule.get<std::size_t>();
      else if (word == "maxItems")
        good = !value.is_array() || value.size() <= rule.get<std::size_t>();
      else if (word == "properties" || word == "additionalProperties")
        good = !value.is_object() || properties_hold(value, schema);
      else if (word == "required")
        good = std::all_of(rule.begin(), rule.end(), [&](const Json& key) {
          return !value.is_object() || value.contains(key.get<std::string>());
        });
      else if (word == "$ref")
        good = holds(value, root_.at(Json::json_pointer(rule.get<std::string>().substr(1))));
      else if (word != "patternProperties" && word != "$schema" && word != "title" && word != "description")
        throw std::runtime_error("a word of JSON Schema that this check does not know: " + word);
      if (!good) return false;
    }
    return true;
  }

  Json root_;
  mutable std::map<std::string, std::regex> patterns_;  // compiled once: there are hundreds
};

}  // namespace orrery::test
