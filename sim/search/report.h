#pragma once

#include <string>
#include <vector>

#include "sim/print/table.h"
#include "sim/print/text.h"
#include "sim/search/search.h"

namespace orrery {

// Parts of a search's result, for the text and for the HTML page (sim/page): what is searched (search_title); how many
// strategies were looked at (counts_line); that nothing fits, where `best` is empty (nothing_line); whether the best is
// proven, and what was left out (proof_lines); the strategies found; and why all but the first are slower (why_lines).
std::string search_title(const Space& space);
std::string counts_line(const SearchResult& result);
std::string nothing_line(const SearchResult& result);
std::vector<std::string> proof_lines(const Space& space, const SearchResult& result);
Table strategies_table(const Space& space, const SearchResult& result);
std::vector<std::string> why_lines(const Space& space, const SearchResult& result);

// A search's result for people, a sample of which is in docs/guide.md, "Which strategy, and which machine".
std::string search_text(const Space& space, const SearchResult& result, const Style& style);
// The result as JSON with the schema orrery.search/1.
std::string search_json(const Space& space, const SearchResult& result);
// The result as CSV, with a row for every strategy shown.
std::string search_csv(const Space& space, const SearchResult& result);
// "orrery simulate SPEC --set ...": the command that predicts a strategy again. profile: a path, "" for the built-in
// one.
std::string repeat_text(const Space& space, const Point& point, const std::string& profile);

}  // namespace orrery
