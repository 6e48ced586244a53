#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/print/section.h"
#include "sim/print/table.h"
#include "sim/print/xml.h"

namespace orrery {

// Pieces of a page in the syntax that HTML and XML share, so that a strict parser of either accepts the page.

// An element with content. content: markup; attributes: markup such as class="wide", "" for none.
std::string element(std::string_view name, std::string_view content, std::string_view attributes = {});

// A paragraph. text: plain text, which is escaped.
std::string paragraph(std::string_view text, std::string_view attributes = {});

// A figure with its exact value, which a program can read again: <data id="step_time_s" value="7.125">7.13 s</data>.
// id: the path of the figure in the command's JSON, unique on the page; text: the figure for people.
std::string figure(std::string_view id, double value, std::string_view text);

// A table with a header, as markup; "" for a table without rows. swatches: for each row a colour that is shown before
// the first cell, "" for none; rows beyond the end of the list have none. cell: a function that returns markup to be
// shown in a cell (row, column) instead of its text, or "" to keep the text.
using CellMarkup = std::function<std::string(std::size_t row, std::size_t column)>;
std::string table_markup(const Table& table, const std::vector<std::string>& swatches = {},
                         const CellMarkup& cell = {});

// Lines of text as markup: each line a paragraph; a line that begins with two blanks or more is indented.
std::string lines_markup(const std::vector<std::string>& lines);

// A section with its title as a heading, its lines and its table; "" for a section without any of these.
std::string section_markup(const Section& section);

// A part of the page with a heading (plain text) and content (markup). attributes: as of element().
std::string part(std::string_view title, std::string_view content, std::string_view attributes = {});

// A part of the page that is folded up until the reader opens it (<details>); a part that is folded up is not printed.
std::string folded(std::string_view title, std::string_view content, bool open = false);

}  // namespace orrery
