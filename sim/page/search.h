#pragma once

#include <string>
#include <vector>

#include "sim/page/scatter.h"
#include "sim/page/spec_parts.h"
#include "sim/print/section.h"
#include "sim/search/front.h"
#include "sim/search/search.h"
#include "sim/search/space.h"

namespace orrery {

// The findings of a search for its page. space, result: the search on the machine that was chosen; machines: tables
// that compare all machines, empty where the search was asked for one only; advice: further sections; priced: for each
// machine the price and the time of a million tokens, where several machines were asked for; front: the Pareto front,
// empty without --pareto; remarks: further lines; repeat: the command that predicts the best strategy again, "" for
// none.
struct SearchPage {
  const Space& space;
  const SearchResult& result;
  std::vector<Section> machines, advice;
  std::vector<ScatterPoint> priced;
  std::vector<FrontRow> front;
  bool front_cut = false;
  std::vector<std::string> remarks;
  std::string repeat;
};
std::string search_page(const SearchPage& page, const SpecNotes& notes);

// The page of `orrery search --maximize`. title: what was found; spec: the spec that was searched; report: the
// prediction for the largest size found, nullptr where no size fits; lines: the lines that the command also prints in
// the terminal.
std::string largest_page(const std::string& title, const Spec& spec, const Report* report,
                         const std::vector<std::string>& lines, const SpecNotes& notes);

}  // namespace orrery
