#pragma once

#include <string>
#include <vector>

#include "sim/search.h"
#include "sim/text.h"

namespace orrery {

// What a strategy spends more of than the best: "exposed tensor 0.91 s more (all_reduce over nvlink, 8.1 GB a step)".
struct Loss {
  TimeKind kind = TimeKind::compute;
  double seconds = 0;  // of a step, above the best's
  std::string transfer;
};
// The largest differences first, those above a hundredth of the best step.
std::vector<Loss> losses(const Report& best, const Report& other);
std::string text_of(const Loss& loss);

// A search's result for people, a sample of which is in docs/guide.md, "Which strategy, and which machine".
std::string search_text(const Space& space, const SearchResult& result, const Style& style);
// Schema orrery.search/1.
std::string search_json(const Space& space, const SearchResult& result);
// A row of every strategy shown.
std::string search_csv(const Space& space, const SearchResult& result);
// "orrery simulate SPEC --set ...": what predicts a point again. profile: a path, "" for the built-in one.
std::string repeat_text(const Space& space, const Point& point, const std::string& profile);

}  // namespace orrery
