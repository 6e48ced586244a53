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

// The findings of a search for its page. space, result: of the machine that was chosen; machines: tables of all
// machines and the run on them, empty where one was asked for; priced: for each machine what a million tokens cost
// there and how many seconds they take, where several machines were asked for; front: the Pareto front, empty without
// --pareto; remarks: further lines; repeat: the command that predicts the best again, "" for none.
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

// The page of `orrery search --maximize`. title: what was found; spec: the spec that was searched; strategy, report:
// the largest size's, nullptr where no size fits; lines: what the text says of it.
std::string largest_page(const std::string& title, const Spec& spec, const Report* report,
                         const std::vector<std::string>& lines, const SpecNotes& notes);

}  // namespace orrery
