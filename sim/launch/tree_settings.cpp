// Reads the options in YAML and JSON files.
#include <algorithm>

#include <fmt/format.h>

#include "models/load/tree.h"
#include "sim/launch/settings.h"

namespace orrery {
namespace {

bool is_plain_list(const SpecNode& node) {
  return std::ranges::all_of(node.items, [](const SpecNode& i) { return i.kind == SpecNode::Kind::scalar; });
}

// Writes YAML's other spellings of true and false ("True", "FALSE") as true and false.
std::string plain_word(const std::string& text) {
  for (const char* word : {"True", "TRUE"}) {
    if (text == word) return "true";
  }
  for (const char* word : {"False", "FALSE"}) {
    if (text == word) return "false";
  }
  return text;
}

// The name of the option that a key of the file gives. Some files spell keys like command-line options
// ("--num-layers").
std::string option_name(std::string_view key) {
  if (!key.starts_with("--")) return std::string(key);
  std::string name(key.substr(2));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Replaces a variable by the default that its text states, as "${PRIMUS_TEAM:8}", "${oc.env:TP,8}" and "${TP:-8}" do;
// returns any other text unchanged.
std::string with_default(const std::string& text) {
  if (!text.starts_with("${") || !text.ends_with("}") || text.find("${", 2) != std::string::npos) return text;
  const std::string inner = text.substr(2, text.size() - 3);
  const std::size_t comma = inner.find(','), colon = inner.find(':');
  if (inner.starts_with("oc.env:") && comma != std::string::npos) return inner.substr(comma + 1);
  const std::string name = inner.substr(0, colon);
  const bool variable =
      std::ranges::all_of(name, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9'); });
  if (colon == std::string::npos || name.empty() || !variable) return text;
  const std::string rest = inner.substr(colon + 1);
  return rest.starts_with("-") ? rest.substr(1) : rest;
}

void add_tree(const SpecNode& node, const std::string& name, const std::string& path, Settings& out) {
  const std::string from = fmt::format("{}:{}", path, node.line);
  switch (node.kind) {
    case SpecNode::Kind::null:
      out.all.push_back({name, "", from, true});
      return;
    case SpecNode::Kind::scalar:
      out.all.push_back({name, plain_word(with_default(node.text)), from});
      return;
    case SpecNode::Kind::list: {
      std::string joined;
      for (const SpecNode& item : node.items) joined += (joined.empty() ? "" : " ") + item.text;
      if (is_plain_list(node)) out.all.push_back({name, joined, from});
      for (const SpecNode& item : node.items) {
        if (item.kind == SpecNode::Kind::map || item.kind == SpecNode::Kind::list) add_tree(item, name, path, out);
      }
      return;
    }
    case SpecNode::Kind::map:
      for (std::size_t i = 0; i < node.keys.size(); ++i) {
        const bool merged = node.keys[i] == "<<";  // YAML's merge key, whose value is another map
        const std::string dot = name.empty() || merged ? "" : ".";
        add_tree(node.items[i], name + dot + (merged ? "" : option_name(node.keys[i])), path, out);
      }
  }
}

// Replaces tabs by blanks, because the YAML parser refuses tabs, which JSON allows.
std::string without_tabs(std::string_view text) {
  std::string out(text);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') std::replace(out.begin(), out.end(), '\t', ' ');
  return out;
}

}  // namespace

Settings read_tree(std::string_view text, const std::string& path) {
  std::vector<TwiceGiven> twice;
  const SpecNode root = parse_tree(without_tabs(text), path, &twice);
  Settings settings;
  for (const TwiceGiven& key : twice)
    settings.remarks.push_back(
        fmt::format("{}:{}: {}: the key is given twice; the last one counts", path, key.line, key.key));
  if (root.kind == SpecNode::Kind::map) add_tree(root, "", path, settings);
  return settings;
}

}  // namespace orrery
