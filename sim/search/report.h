#pragma once

#include <string>
#include <vector>

#include "sim/print/text.h"
#include "sim/search/search.h"

namespace orrery {

// A search's result for people, a sample of which is in docs/guide.md, "Which strategy, and which machine".
std::string search_text(const Space& space, const SearchResult& result, const Style& style);
// Schema orrery.search/1.
std::string search_json(const Space& space, const SearchResult& result);
// A row of every strategy shown.
std::string search_csv(const Space& space, const SearchResult& result);
// "orrery simulate SPEC --set ...": what predicts a point again. profile: a path, "" for the built-in one.
std::string repeat_text(const Space& space, const Point& point, const std::string& profile);

}  // namespace orrery
