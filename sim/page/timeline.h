#pragma once

#include <string>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

// A chart of the step that a report covers over time, with a legend. For each class of ranks (ranks that do the same)
// it shows what the compute lane does and, below, when transfers of each kind run. The step is divided into intervals
// of equal length; an interval has the colour of the kind of work that takes most of it, and is paler where the lane is
// idle for some of it. Of many classes of ranks only the first and the last ones are drawn, so that a plan of any size
// gives a chart of bounded size.
std::string timeline_markup(const Plan& plan, const Trace& trace);

}  // namespace orrery
