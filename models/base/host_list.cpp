#include "models/base/host_list.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"

namespace orrery {
namespace {

constexpr std::size_t kMostDigits = 18;  // of a number of 64 bits

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::uint64_t number_of(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.size() > kMostDigits || error != std::errc{} || end != digits.data() + digits.size())
    throw Error(fmt::format("{} is no number of a host", printable(std::string(digits))));
  return value;
}

// Adds the numbers of a bracket, "00-03,7", as texts.
void add_numbers(std::string_view ranges, std::size_t most, std::vector<std::string>& numbers) {
  for (std::size_t start = 0; start <= ranges.size();) {
    const std::size_t end = std::min(ranges.find(',', start), ranges.size());
    const std::string_view range = ranges.substr(start, end - start);
    start = end + 1;
    const std::size_t dash = range.find('-');
    const std::uint64_t first = number_of(range.substr(0, dash));
    const std::uint64_t last = dash == std::string_view::npos ? first : number_of(range.substr(dash + 1));
    if (last < first) throw Error(fmt::format("{} ends before it begins", range));
    if (last - first >= most || numbers.size() + (last - first) >= most)
      throw Error(fmt::format("it has more than {} names", most));
    const std::size_t digits = std::min(dash, range.size());
    for (std::uint64_t i = first; i <= last; ++i) numbers.push_back(fmt::format("{:0{}}", i, digits));
  }
}

// Puts every text of `ends` behind every one of `begins`, the ends fastest.
std::vector<std::string> combined(const std::vector<std::string>& begins, const std::vector<std::string>& ends,
                                  std::size_t most) {
  if (begins.size() > most / std::max<std::size_t>(1, ends.size()))
    throw Error(fmt::format("it has more than {} names", most));
  std::vector<std::string> all;
  for (const std::string& begin : begins) {
    for (const std::string& end : ends) all.push_back(begin + end);
  }
  return all;
}

// Returns the length of a list's first item, which commas outside of brackets and white space end.
std::size_t length_of_item(std::string_view list) {
  bool inside = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[' && inside) throw Error("a bracket is in another one");
    if (list[i] == ']' && !inside) throw Error("a bracket was not opened");
    if (list[i] == '[' || list[i] == ']') inside = list[i] == '[';
    const bool space = std::isspace(static_cast<unsigned char>(list[i])) != 0;
    if (space || (list[i] == ',' && !inside)) {
      if (inside) throw Error("a bracket is not closed");
      return i;
    }
  }
  if (inside) throw Error("a bracket is not closed");
  return list.size();
}

std::vector<std::string> names_of_item(std::string_view item, std::size_t most) {
  std::vector<std::string> names{""};
  while (!item.empty()) {
    const bool bracket = item.front() == '[';
    const std::size_t end = std::min(item.find(bracket ? ']' : '['), item.size());
    std::vector<std::string> parts;
    if (bracket)
      add_numbers(item.substr(1, end - 1), most, parts);
    else
      parts.emplace_back(item.substr(0, end));
    names = combined(names, parts, most);
    item.remove_prefix(bracket ? end + 1 : end);
  }
  return names;
}

// A name divided into what stands before the number at its end, and that number; no digits: it ends with none.
struct Numbered {
  std::string_view stem, digits;
  std::uint64_t number = 0;
};

// Names with one stem whose numbers follow each other, with as many digits as the first one has, or more without zeros.
struct NumberRange {
  Numbered first, last;

  bool precedes(const Numbered& next) const {
    return !last.digits.empty() && fmt::format("{:0{}}", last.number + 1, first.digits.size()) == next.digits;
  }
};

Numbered numbered(std::string_view name) {
  std::size_t at = name.size();
  while (at > 0 && name.size() - at < kMostDigits && is_digit(name[at - 1])) --at;
  Numbered n{name.substr(0, at), name.substr(at)};
  if (!n.digits.empty()) n.number = number_of(n.digits);
  return n;
}

}  // namespace

std::vector<std::string> host_names(std::string_view list, std::size_t most) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t length = length_of_item(list);
    if (length > 0) {
      for (std::string& name : names_of_item(list.substr(0, length), most - names.size()))
        names.push_back(std::move(name));
    }
    list.remove_prefix(std::min(length + 1, list.size()));
  }
  return names;
}

// Returns what stands behind the stem of names: "7", or "[00-02,7]".
static std::string text_of(const std::vector<NumberRange>& ranges) {
  std::string numbers;
  for (const NumberRange& r : ranges) {
    if (!numbers.empty()) numbers += ',';
    numbers += r.first.digits;
    if (r.first.number != r.last.number) numbers += fmt::format("-{}", r.last.digits);
  }
  const bool alone = ranges.size() == 1 && ranges[0].first.number == ranges[0].last.number;
  return alone ? numbers : fmt::format("[{}]", numbers);
}

std::string host_list(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size();) {
    const Numbered first = numbered(names[i]);
    std::vector<NumberRange> ranges{{first, first}};
    for (++i; i < names.size() && !first.digits.empty(); ++i) {
      const Numbered next = numbered(names[i]);
      if (next.digits.empty() || next.stem != first.stem) break;
      if (ranges.back().precedes(next))
        ranges.back().last = next;
      else
        ranges.push_back({next, next});
    }
    list += fmt::format("{}{}{}", list.empty() ? "" : ",", first.stem, text_of(ranges));
  }
  return list;
}

}  // namespace orrery
