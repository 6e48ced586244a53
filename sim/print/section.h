#pragma once

#include <string>
#include <vector>

#include "sim/print/table.h"
#include "sim/print/text.h"

namespace orrery {

// A part of a text for people: a title, lines before a table, the table, and lines after it. Every part may be missing.
// The text of a terminal and a page of --html (sim/page) are two ways to write the same sections.
struct Section {
  std::string title;
  std::vector<std::string> lines;
  Table table;
  std::vector<std::string> after;

  bool is_empty() const { return lines.empty() && table.rows.empty() && after.empty(); }
};

// The section as text: the title, and below it everything else, indented by two blanks. "" for an empty section.
std::string text_of(const Section& section, const Style& style);

}  // namespace orrery
