#pragma once

#include <string>
#include <vector>

#include "models/base/units.h"
#include "sim/report/link_load.h"

namespace orrery {

// How full the links of the cluster are over a simulated step: a chart of each link's load over time, stacked by kinds
// of transfers, and a table with the mean and the highest load of each. length: the time that the chart covers. ""
// where nothing goes over links.
std::string links_markup(const std::vector<LinkLoad>& loads, Picoseconds length);

}  // namespace orrery
