#include "models/load/reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include <fmt/ranges.h>

#include "models/base/names.h"
#include "models/base/quantity.h"

namespace orrery {
namespace {

constexpr std::size_t kLongestValue = 60;  // greatest number of characters of a value that an error message quotes
constexpr double kLargestWhole = 9.0e15;   // greatest integer accepted: below 2^53, so that a double holds it exactly

const std::string& scalar(const SpecReader& reader, const SpecNode& node, const std::string& key) {
  if (node.kind != SpecNode::Kind::scalar) reader.fail(node, key, "a single value is needed here");
  return node.text;
}

[[noreturn]] void not_a(const SpecReader& reader, const SpecNode& node, const std::string& key, std::string_view what) {
  reader.fail(node, key, fmt::format("{} is not {}", node.text.substr(0, kLongestValue), what));
}

}  // namespace

std::string SpecReader::where(const SpecNode& node) const {
  return node.line == 0 ? "--set" : fmt::format("{}:{}", path, node.line);
}

void SpecReader::fail(const SpecNode& node, std::string_view key, std::string_view what) const {
  throw Error(printable(fmt::format("{}: {}: {}", where(node), key, what)));
}

void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, double& value) {
  const std::string_view unit = unit_of_key(key);
  const std::optional<double> number = parse_quantity(scalar(reader, node, key), unit);
  if (!number) not_a(reader, node, key, unit.empty() ? "a number" : fmt::format("a number of {}", unit));
  value = *number;
}

void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, std::int64_t& value) {
  const std::string& text = scalar(reader, node, key);
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && rest == text.data() + text.size()) return;
  const std::optional<double> number = parse_quantity(text, "");
  if (!number || *number != std::floor(*number) || std::abs(*number) > kLargestWhole) {
    not_a(reader, node, key, "a whole number of sensible size");
  }
  value = static_cast<std::int64_t>(*number);
}

void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, int& value) {
  std::int64_t wide = 0;
  convert(reader, node, key, wide);
  if (wide < -1'000'000'000 || wide > 1'000'000'000) not_a(reader, node, key, "a whole number of sensible size");
  value = static_cast<int>(wide);
}

void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, bool& value) {
  const std::string& text = scalar(reader, node, key);
  value = text == "true" || text == "True";
  if (!value && text != "false" && text != "False") not_a(reader, node, key, "true or false");
}

void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, std::string& value) {
  value = scalar(reader, node, key);
  if (!is_printable(value))
    reader.fail(node, key, "holds a control character, or bytes that are no UTF-8; leave them out");
}

void convert(const SpecReader& reader, const SpecNode& node, const std::string& key, std::vector<std::int64_t>& value) {
  if (node.kind != SpecNode::Kind::list) reader.fail(node, key, "a list [a, b, ...] is needed here");
  value.clear();
  for (const SpecNode& item : node.items) convert(reader, item, key, value.emplace_back());
}

std::string_view type_of(std::int64_t) { return "whole number"; }
std::string_view type_of(int) { return "whole number"; }
std::string_view type_of(double) { return "number"; }
std::string_view type_of(bool) { return "true or false"; }
std::string_view type_of(const std::string&) { return "text"; }
std::string_view type_of(const std::vector<std::int64_t>&) { return "list of whole numbers"; }

std::string to_text(std::int64_t value) { return fmt::format("{}", value); }
std::string to_text(int value) { return fmt::format("{}", value); }
std::string to_text(double value) { return fmt::format("{}", value); }
std::string to_text(bool value) { return value ? "true" : "false"; }
std::string to_text(const std::string& value) { return value; }
std::string to_text(const std::vector<std::int64_t>& value) {
  return value.empty() ? "null" : fmt::format("[{}]", fmt::join(value, ", "));
}

SpecSection::SpecSection(SpecReader& reader, const SpecNode* node, std::string path, std::span<const SpecKey> known,
                         std::string_view short_key)
    : reader_(&reader), node_(node), path_(std::move(path)) {
  if (reader.book != nullptr) reader.book->maps.push_back({path_, known, short_key});
  if (node == nullptr || node->kind == SpecNode::Kind::null) {
    node_ = &wrapped_;
    return;
  }
  if (node->kind == SpecNode::Kind::scalar && !short_key.empty()) {
    wrapped_.line = node->line;
    wrapped_.insert(short_key) = *node;
    node_ = &wrapped_;
    return;
  }
  if (node->kind != SpecNode::Kind::map)
    reader.fail(*node, path_.empty() ? "spec" : path_, "keys with values are needed here");
  for (std::size_t i = 0; i < node->keys.size(); ++i) {
    const std::string& key = node->keys[i];
    if (std::ranges::find(known, key, &SpecKey::name) != known.end()) continue;
    std::vector<std::string_view> names;
    for (const SpecKey& k : known) names.push_back(k.name);
    reader.fail(node->items[i], name(key.substr(0, kLongestValue)), unknown_name("key", key, names));
  }
}

const SpecNode* SpecSection::find(std::string_view key) const {
  const SpecNode* node = node_->find(key);
  return node == nullptr || node->kind == SpecNode::Kind::null ? nullptr : node;
}

std::vector<SpecNode> SpecSection::find_words(std::string_view key) const {
  const SpecNode* node = find(key);
  if (node == nullptr) return {};
  if (node->kind == SpecNode::Kind::map) reader_->fail(*node, name(key), "needs a word or a list of words");
  return node->kind == SpecNode::Kind::scalar ? std::vector<SpecNode>{*node} : node->items;
}

std::string SpecSection::name(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void SpecSection::take_count(std::string_view key, std::int64_t& value, std::int64_t most,
                             std::string_view otherwise) const {
  const SpecNode* node = find(key);
  take(key, value, otherwise);
  if (node == nullptr || (value >= 1 && value <= most)) return;
  reader_->fail(*node, name(key), fmt::format("{} is not between 1 and {}", value, most));
}

bool SpecSection::take_word(std::string_view key, std::string& value, std::span<const std::string_view> words,
                            std::string_view otherwise) const {
  const auto known = [&](const std::string& word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) throw Error(unknown_name("word", word, words));
    return word;
  };
  if (reader_->book != nullptr) note_type(key, fmt::format("{}", fmt::join(words, " | ")));
  return take_named(
      key, value, known, [](const std::string& word) { return word; }, otherwise);
}

void SpecSection::record(std::string_view key, std::string value, const SpecNode* node,
                         std::string_view otherwise) const {
  reader_->origins.push_back({name(key), std::move(value), node ? reader_->where(*node) : std::string(otherwise)});
}

void SpecSection::note_type(std::string_view key, std::string_view type) const {
  if (reader_->book != nullptr) reader_->book->types[name(key)] = type;
}

std::string beside(const std::string& spec_path, const std::string& file) {
  return (std::filesystem::path(spec_path).parent_path() / file).string();
}

}  // namespace orrery
