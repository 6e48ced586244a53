#pragma once

#include <string>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// The step that a report covers as a chart over time, with a legend: for each class of ranks what its compute lane does
// and, below, when its transfers of each kind run. The step is cut into slots of equal length; a slot has the colour of
// the kind of work that takes most of it, paler where no work takes the rest. So a plan of any size gives a chart of
// bounded size: of many classes of ranks the first and the last ones are drawn.
std::string timeline_markup(const Plan& plan, const Trace& trace);

}  // namespace orrery
