// Writes framework options as launch files: shell scripts, YAML, JSON and TOML.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/launch/export.h"

namespace orrery {
namespace {

using OptionsJson = nlohmann::ordered_json;

bool is_bare_value(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return (error == std::errc() && end == text.data() + text.size()) || text == "true" || text == "false";
}

OptionsJson json_value_of(const Setting& s) {
  if (s.null) return nullptr;
  const OptionsJson parsed =
      is_bare_value(s.value) ? OptionsJson::parse(s.value, nullptr, false) : OptionsJson(s.value);
  return parsed.is_discarded() ? OptionsJson(s.value) : parsed;
}

std::string comment_lines(const std::vector<std::string>& head) {
  std::string out;
  for (const std::string& line : head) out += "# " + line + "\n";
  return out;
}

// Writes the options as a shell command. A flag with the value false is left out, since a flag without a value means
// true.
std::string shell_text(const std::vector<Setting>& options) {
  constexpr std::string_view kLaunchers[] = {"nnodes", "nproc_per_node"};
  std::string launcher = "torchrun", rest;
  for (const Setting& s : options) {
    if (s.value == "false" || s.null) continue;
    const bool first = std::ranges::find(kLaunchers, std::string_view(s.name)) != std::end(kLaunchers);
    std::string name = s.name;
    if (!first) std::replace(name.begin(), name.end(), '_', '-');
    const bool quoted = s.value.find_first_of("()[]*") != std::string::npos;
    const std::string value = s.value == "true" ? "" : quoted ? " '" + s.value + "'" : " " + s.value;
    (first ? launcher : rest) +=
        first ? fmt::format(" --{}{}", name, value) : fmt::format(" \\\n  --{}{}", name, value);
  }
  return launcher + " pretrain_gpt.py" + rest + "\n";
}

OptionsJson nested_options(const std::vector<Setting>& options) {
  OptionsJson root = OptionsJson::object();
  for (const Setting& s : options) {
    OptionsJson* at = &root;
    std::string_view rest = s.name;
    for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      at = &(*at)[std::string(rest.substr(0, dot))];
      rest.remove_prefix(dot + 1);
    }
    (*at)[std::string(rest)] = json_value_of(s);
  }
  return root;
}

void yaml_text(const OptionsJson& map, const std::string& indent, std::string& out) {
  for (const auto& [key, value] : map.items()) {
    out += fmt::format("{}{}:{}\n", indent, key, value.is_object() ? "" : " " + value.dump());
    if (value.is_object()) yaml_text(value, indent + "  ", out);
  }
}

std::string toml_text(const std::vector<Setting>& options) {
  std::string out, table;
  const OptionsJson root = nested_options(options);
  for (const auto& [section, keys] : root.items()) {
    // Options outside a TOML section belong to the launcher (torchrun); this framework's files do not state them, so
    // they are skipped.
    if (!keys.is_object()) continue;
    out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
    for (const auto& [key, value] : keys.items())
      out += fmt::format("{} = {}\n", key, key == "converters" ? "[" + value.dump() + "]" : value.dump());
  }
  return out;
}

}  // namespace

std::string launch_text(const Exported& exported, Syntax syntax, const std::vector<std::string>& head) {
  std::string yaml;
  switch (syntax) {
    case Syntax::shell:
      return "#!/bin/bash\n" + comment_lines(head) + shell_text(exported.options);
    case Syntax::json:
      return nested_options(exported.options).dump(2) + "\n";
    case Syntax::toml:
      return comment_lines(head) + toml_text(exported.options);
    case Syntax::yaml:
      yaml_text(nested_options(exported.options), "", yaml);
  }
  return comment_lines(head) + yaml;
}

}  // namespace orrery
