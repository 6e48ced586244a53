#include "sim/launch/spec_values.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A key of a spec that has a map as its value or, in short form, one word. "software: NAME" is short for "software:
// {profile: NAME}"; here `member` is "profile".
struct ShortKey {
  std::string_view key, member;
};
constexpr ShortKey kShortKeys[] = {
    {"model", "base"}, {"cluster", "node"}, {"software", "profile"}, {"strategy.optimizer", "name"}};
constexpr std::string_view kSectionOrder[] = {"model", "sequence", "cluster", "gpus", "software", "strategy"};

// The key as a spec file prints it: "software" becomes "software.profile" if the spec also has keys that begin with
// "software.".
std::string long_key(const SpecValues& values, const std::string& key) {
  for (const ShortKey& s : kShortKeys) {
    if (key != s.key) continue;
    const std::string start = key + ".";
    const bool has_more = std::ranges::any_of(values.all, [&](const SpecValue& v) { return v.key.starts_with(start); });
    return has_more ? start + std::string(s.member) : key;
  }
  return key;
}

std::vector<SpecValue> in_order(const SpecValues& values) {
  std::vector<SpecValue> sorted;
  for (SpecValue v : values.all) {
    v.key = long_key(values, v.key);
    sorted.push_back(std::move(v));
  }
  const auto rank = [](const SpecValue& v) {
    return std::find(std::begin(kSectionOrder), std::end(kSectionOrder), v.key.substr(0, v.key.find('.'))) -
           std::begin(kSectionOrder);
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const SpecValue& a, const SpecValue& b) { return rank(a) < rank(b); });
  return sorted;
}

bool is_plain_yaml(const std::string& text) {
  const bool plain = std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./+").find(c) != std::string_view::npos;
  });
  return plain && !text.empty() && text[0] != '-';
}

bool is_spec_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string in_yaml(const std::string& text) {
  return text.starts_with("[") || is_plain_yaml(text) || is_spec_number(text) ? text : OrderedJson(text).dump();
}

OrderedJson in_json(const SpecValue& v) {
  if (v.said == Said::missing) return nullptr;
  if (v.value == "true" || v.value == "false") return v.value == "true";
  if (v.value.starts_with("[")) {
    OrderedJson list = OrderedJson::array();
    std::string word;
    for (const char c : v.value.substr(1)) {
      if (c != ',' && c != ']')
        word += c == ' ' ? "" : std::string(1, c);
      else if (!word.empty())
        list.push_back(std::exchange(word, ""));
    }
    return list;
  }
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(v.value.data(), v.value.data() + v.value.size(), whole);
  if (error == std::errc() && end == v.value.data() + v.value.size()) return whole;
  return is_spec_number(v.value) ? OrderedJson::parse(v.value, nullptr, false) : OrderedJson(v.value);
}

// Prints as YAML the keys that begin with `prefix`, level by level.
void print_yaml(const std::vector<SpecValue>& values, const std::string& prefix, std::string& out) {
  const auto depth = static_cast<std::size_t>(std::count(prefix.begin(), prefix.end(), '.'));
  std::vector<std::string> done;
  for (const SpecValue& v : values) {
    if (!v.key.starts_with(prefix)) continue;
    const std::string name = v.key.substr(prefix.size(), v.key.find('.', prefix.size()) - prefix.size());
    if (std::ranges::find(done, name) != done.end()) continue;
    done.push_back(name);
    const std::string indent(2 * depth, ' ');
    if (prefix.size() + name.size() < v.key.size()) {
      out += fmt::format("{}{}:\n", indent, name);
      print_yaml(values, prefix + name + ".", out);
      continue;
    }
    const std::string text = v.said == Said::missing ? "null" : in_yaml(v.value);
    out += fmt::format("{:<34}  # {}\n", fmt::format("{}{}: {}", indent, name, text), v.from);
  }
}

}  // namespace

const SpecValue* SpecValues::find(std::string_view key) const {
  const auto found = std::ranges::find(all, key, &SpecValue::key);
  return found == all.end() ? nullptr : &*found;
}

std::string SpecValues::text(std::string_view key) const {
  const SpecValue* v = find(key);
  return v == nullptr ? "" : v->value;
}

std::optional<std::int64_t> SpecValues::number(std::string_view key) const {
  const std::string value = text(key);
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), whole);
  const bool good = error == std::errc() && end == value.data() + value.size() && !value.empty();
  return good ? std::optional(whole) : std::nullopt;
}

std::int64_t SpecValues::number_or(std::string_view key, std::int64_t absent) const {
  return number(key).value_or(absent);
}

void SpecValues::set(std::string_view key, std::string value, Said said, std::string from) {
  const auto found = std::ranges::find(all, key, &SpecValue::key);
  SpecValue& v = found == all.end() ? all.emplace_back() : *found;
  v = {std::string(key), std::move(value), said, std::move(from)};
}

void SpecValues::fill(std::string_view key, std::string value, Said said, std::string from) {
  if (find(key) == nullptr) set(key, std::move(value), said, std::move(from));
}

SpecValue SpecValues::take(std::string_view key) {
  const auto found = std::ranges::find(all, key, &SpecValue::key);
  if (found == all.end()) return {};
  SpecValue out = std::move(*found);
  all.erase(found);
  return out;
}

std::string spec_yaml(const SpecValues& values, const std::vector<std::string>& head) {
  std::string out;
  for (const std::string& line : head) out += "# " + line + "\n";
  print_yaml(in_order(values), "", out);
  return out;
}

std::string spec_json(const SpecValues& values) {
  OrderedJson root = OrderedJson::object();
  for (const SpecValue& v : in_order(values)) {
    OrderedJson* at = &root;
    std::string_view rest = v.key;
    for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      at = &(*at)[std::string(rest.substr(0, dot))];
      rest.remove_prefix(dot + 1);
    }
    (*at)[std::string(rest)] = in_json(v);
  }
  return root.dump(2);
}

}  // namespace orrery
