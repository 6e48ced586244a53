#include "models/load/schema.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/version.h"
#include "models/load/aliases.h"
#include "models/load/open_spec.h"
#include "models/load/reference.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

const Json kText = {{"type", {"string", "number"}}};  // YAML reads a name such as 8480 as a number

// Regular expression for a number given as text, such as one with a suffix or a unit (quantity.h).
constexpr const char* kFigure = "^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)? *[A-Za-z]*(/s)? *$";
// Regular expression for a whole number given as text: digits after the point are allowed only before an exponent or a
// suffix.
constexpr const char* kWhole =
    "^ *[+-]?([0-9]+([.]0*)?|([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+ *[kKMGT]?i?| *[kKMGT]i?)) *$";
constexpr const char* kTopRequired[] = {"model", "cluster"};

template <class Names>
Json words(const Names& names) {
  Json list = Json::array();
  for (const auto& name : names) list.push_back(std::string(name));
  return {{"enum", list}};
}

// Returns a regular expression that matches an alias in upper or lower case, with - or _ (aliases.h).
std::string pattern_of(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const char upper = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (c == '-' || c == '_')
      text += "[-_]";
    else if (upper != lower)
      text += fmt::format("[{}{}]", upper, lower);
    else
      text += c == '.' ? "[.]" : std::string(1, c);
  }
  return "^" + text + "$";
}

// The name of a type of lists is kListOf and the words that such a list may have: "list of attention | recurrence". A
// type whose name begins with kOneOrListOf also accepts one of the words by itself.
constexpr std::string_view kListOf = "list of ", kOneOrListOf = "one or a list of ";

// The JSON Schema of all keys, built from the rows of the reference of keys. A key with several types of values accepts
// a value that matches any of them.
class Schema {
 public:
  Schema() {
    for (const KeyReference& row : rows_) children_[row.key.substr(0, parent_length(row.key))].push_back(&row);
  }

  Json map_at(const std::string& key) const {
    Json properties = Json::object(), patterns = Json::object();
    for (const KeyReference* row : children_.at(key)) {
      Json value = value_of(*row);
      if (key == "strategy") add_aliases(*row, patterns);
      properties[row->key.substr(key.empty() ? 0 : key.size() + 1)] = std::move(value);
    }
    Json map = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
    if (!patterns.empty()) map["patternProperties"] = patterns;
    return map;
  }

 private:
  static std::size_t parent_length(const std::string& key) {
    const std::size_t dot = key.rfind('.');
    return dot == std::string::npos ? 0 : dot;
  }

  // Adds the aliases of a key of the section strategy to the schema; an alias accepts the same values as the key.
  static void add_aliases(const KeyReference& row, Json& patterns) {
    for (const AliasRow& alias : alias_rows()) {
      if (alias.at == "strategy" && "strategy." + alias.name == row.key)
        patterns[pattern_of(alias.given)] = {{"$ref", "#/properties/strategy/anyOf/0/properties/" + alias.name}};
    }
  }

  Json value_of(const KeyReference& row) const {
    Json choices = choices_of(row);
    choices.push_back({{"type", "null"}});
    return {{"description", fmt::format("{} (default: {})", row.meaning, row.otherwise)}, {"anyOf", choices}};
  }

  Json choices_of(const KeyReference& row) const {
    Json choices = Json::array(), listed = Json::array();
    const auto children = children_.find(row.key);
    const bool map = children != children_.end();
    if (map) choices.push_back(map_at(row.key));
    if (row.key == "teacher") choices.push_back(map_at("model"));
    for (const std::string& part : parts_of(row.type)) {
      const Json choice = choice_of(part, row);
      if (choice.contains("enum"))
        listed.insert(listed.end(), choice["enum"].begin(), choice["enum"].end());
      else if (!choice.is_null())
        choices.push_back(choice);
    }
    if (!row.short_key.empty()) add_short(row.key + "." + row.short_key, choices);
    if (!listed.empty()) choices.push_back({{"enum", listed}});
    add_other_names(row.key, choices);
    return choices;
  }

  void add_short(const std::string& key, Json& choices) const {
    for (const KeyReference& row : rows_) {
      if (row.key != key) continue;
      for (const Json& choice : choices_of(row)) choices.push_back(choice);
    }
  }

  static void add_other_names(const std::string& key, Json& choices) {
    for (const AliasRow& alias : alias_rows()) {
      if (alias.at != key) continue;
      choices.push_back({{"type", "string"}, {"pattern", pattern_of(alias.given)}});
      choices.push_back({{"type", "string"}, {"pattern", pattern_of(alias.name)}});
      if (alias.given.find_first_not_of("0123456789") == std::string::npos)
        choices.push_back({{"const", std::stoi(alias.given)}});
    }
  }

  // Returns the alternatives of a type: "list of whole numbers" and "planned" for "list of whole numbers, or planned";
  // "none", "cpu" and "nvme" for "none | cpu | nvme".
  static std::vector<std::string> parts_of(std::string type) {
    std::vector<std::string> parts;
    if (type == "true or false" || type.find("name or path") == 0 || type.starts_with(kOneOrListOf)) return {type};
    if (type.starts_with(kListOf) && type.find(" | ") != std::string::npos) return {type};
    for (const std::string_view between : {", or ", " | "}) {
      for (std::size_t at = type.find(between); at != std::string::npos; at = type.find(between))
        type.replace(at, between.size(), "\n");
    }
    for (std::size_t start = 0; start <= type.size();) {
      const std::size_t end = std::min(type.find('\n', start), type.size());
      parts.push_back(type.substr(start, end - start));
      start = end + 1;
    }
    return parts;
  }

  // Returns the schema of one alternative of a type; null if the alternative is a map, which is described by the
  // schemas of its keys.
  Json choice_of(const std::string& part, const KeyReference& row) const {
    if (part == "map" || part == "a map" || part.starts_with("{")) return {};
    if (part == "whole number") return {{"type", {"integer", "string"}}, {"pattern", kWhole}};
    if (part == "number") return {{"type", {"number", "string"}}, {"pattern", kFigure}};
    if (part == "true or false") return {{"enum", {true, false, "true", "false", "True", "False"}}};
    if (part == "list of whole numbers")
      return {{"type", "array"}, {"items", {{"type", {"integer", "string"}}, {"pattern", kWhole}}}};
    if (part.starts_with(kListOf) && part.find(" | ") != std::string::npos)
      return {{"type", "array"}, {"items", {{"enum", parts_of(part.substr(kListOf.size()))}}}};
    if (part.starts_with(kOneOrListOf)) {
      const Json word = {{"enum", parts_of(part.substr(kOneOrListOf.size()))}};
      return {{"anyOf", {word, {{"type", "array"}, {"items", word}}}}};
    }
    if (part == "list of numbers")
      return {{"type", "array"}, {"items", {{"type", {"number", "string"}}, {"pattern", kFigure}}}};
    if (part == "map of links") return {{"type", "object"}, {"additionalProperties", {{"type", "object"}}}};
    if (part == "list of paths") return {{"type", "array"}, {"items", kText}};
    if (part == "list of lists of layers") return {{"type", "array"}, {"items", {{"type", "array"}, {"minItems", 1}}}};
    if (part == "list of cables")
      return {{"type", "array"}, {"items", {{"type", "array"}, {"minItems", 4}, {"maxItems", 4}}}};
    if (part == "list of maps") return {{"type", "array"}, {"items", map_at(row.key)}};
    if (part == "map of lists")  // a spec may give a single value for a list of one
      return {{"type", "object"},
              {"additionalProperties", {{"type", {"array", "string", "number", "boolean", "null"}}}}};
    if (part == "list of parts") {
      const Json any = words(recompute_parts());
      return {{"anyOf", {any, {{"type", "array"}, {"items", any}}}}};
    }
    if (part == "name") return !row.short_key.empty() ? Json() : named(row.key);
    if (part == "text" || part == "path" || part == "name or path") return kText;
    return {{"enum", Json::array({part})}};
  }

  static Json named(const std::string& key) {
    const std::vector<std::string> names = names_at(key);
    return names.empty() || key == "model" ? kText : words(names);
  }

  std::vector<KeyReference> rows_ = spec_reference();
  std::map<std::string, std::vector<const KeyReference*>> children_;
};

}  // namespace

std::string spec_schema() {
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "Orrery spec"},
               {"description", fmt::format("What to train, on what, and how; orrery {}", kVersion)}};
  root.update(Schema().map_at(""));
  root["required"] = kTopRequired;
  const auto has = [](const char* key) { return Json{{"required", Json::array({key})}}; };
  root["anyOf"] = Json::array({has("sequence"), has("generate")});
  return root.dump(2) + '\n';
}

}  // namespace orrery
