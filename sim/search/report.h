#pragma once

#include <string>
#include <vector>

#include "sim/print/text.h"
#include "sim/search/search.h"

namespace orrery {

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
