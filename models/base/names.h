#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/error.h"

namespace orrery {

// The number of letters to insert, delete, change or swap that turns one word into the other (Damerau, optimal string
// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The known name nearest to a misspelt word, or "" if every known name differs from it in more than two letters and in
// more than a third of its letters.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// A message for an unknown name: "unknown precision bf17; did you mean bf16? known: fp32, tf32, ...". If a known name
// is close to the word, a long list of known names is left out.
std::string unknown_name(std::string_view what, std::string_view word, std::span<const std::string_view> known);

// The text with line breaks and other control characters replaced by '?', so that a message stays on one line.
std::string printable(std::string text);
bool is_printable(std::string_view text);  // whether a text is UTF-8 without control characters

// The first characters of a text, at most so many bytes of it; no character of UTF-8 is cut in two.
std::string_view first_characters(std::string_view text, std::size_t most_bytes);

// A text of many lines made safe for a terminal: control characters become '?', except line ends and Orrery's own
// colour codes (ESC [ 0-9 ; m), so that no name in an input file can move the cursor or set the window's title.
std::string printable_lines(std::string text);

// One entry of a table that gives each value its name (tables of precisions, shardings, fabrics).
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

// The value that a table lists under a name. Throws Error listing the known names.
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
