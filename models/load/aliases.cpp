#include "models/load/aliases.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "models/base/data.h"

namespace orrery {
namespace {

// Suffixes of model names on the Hugging Face Hub that name variants of the same shape, such as "-instruct".
constexpr std::string_view kVariants[] = {"-instruct", "-chat", "-base", "-it",   "-pt",  "-hf",
                                          "-v0.1",     "-2407", "-0528", "-0324", "-fp8", "-nvfp4"};

std::string plain(std::string_view given) {
  std::string text(given);
  for (char& c : text) c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace

const std::vector<AliasRow>& alias_rows() {
  static const std::vector<AliasRow> rows = [] {
    std::vector<AliasRow> list;
    const auto tables = nlohmann::ordered_json::parse(data_file("aliases.json")).at("names");
    for (const auto& [at, names] : tables.items()) {
      for (const auto& [given, name] : names.items()) list.push_back({at, given, name.get<std::string>()});
    }
    return list;
  }();
  return rows;
}

std::string canonical_value(std::string_view at, std::string_view given) {
  const std::string text = plain(given);
  for (const AliasRow& row : alias_rows()) {
    if (row.at == at && (row.given == text || row.name == text)) return row.name;
  }
  return std::string(given);
}

std::string canonical_key(std::string_view given) { return canonical_value("strategy", given); }

std::string canonical_model(std::string_view given) {
  const std::vector<std::string_view> known = data_names("models");
  const auto is_known = [&](std::string_view name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  std::string name = plain(given.substr(given.rfind('/') + 1));
  if (name.starts_with("meta-")) name.erase(0, 5);
  while (!is_known(canonical_value("model.base", name))) {
    const auto variant =
        std::find_if(std::begin(kVariants), std::end(kVariants), [&](std::string_view v) { return name.ends_with(v); });
    if (variant == std::end(kVariants)) return std::string(given);
    name.resize(name.size() - variant->size());
  }
  return canonical_value("model.base", name);
}

}  // namespace orrery
