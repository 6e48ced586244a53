#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/error.h"

namespace orrery {

// Letters to insert, drop, change or swap to make one word of the other (Damerau, optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The known name nearest to a misspelt one, or "" when none is near (more than a third of its letters differ).
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// A message for an unknown name: "unknown precision bf17; did you mean bf16? known: fp32, tf32, ...". Where a known
// name is near, long lists are left out.
std::string unknown_name(std::string_view what, std::string_view word, std::span<const std::string_view> known);

// The text with line breaks and other control characters as '?', so that a message stays one line.
std::string printable(std::string text);
bool is_printable(std::string_view text);  // whether a text is UTF-8 without such characters

// A text of many lines for a terminal: control characters but line ends and our own colours (ESC [ 0-9 ; m) as '?', so
// that no name in a file moves its cursor or sets its title.
std::string printable_lines(std::string text);

// A row of a table of names: precisions, shardings, fabrics.
template <class T>
struct Named {
  std::string_view name;
  T value;
};

template <class T, std::size_t N>
std::vector<std::string_view> names_of(const Named<T> (&table)[N]) {
  std::vector<std::string_view> names;
  for (const Named<T>& row : table) names.push_back(row.name);
  return names;
}

// The value of a name. Throws Error listing the known names.
template <class T, std::size_t N>
T find_named(const Named<T> (&table)[N], std::string_view what, std::string_view name) {
  for (const Named<T>& row : table) {
    if (row.name == name) return row.value;
  }
  throw Error(unknown_name(what, name, names_of(table)));
}

template <class T, std::size_t N>
std::string_view name_in(const Named<T> (&table)[N], T value) {
  for (const Named<T>& row : table) {
    if (row.value == value) return row.name;
  }
  return "";
}

}  // namespace orrery
