#pragma once

#include <string>
#include <vector>

#include "sim/print/text.h"
#include "sim/whatif/whatif.h"

namespace orrery {

// Returns the answer as text for people: the measured step time and the one under the question's assumptions, the
// slowdowns by op, rank and stage, a map of ranks and stages, and how long transfers move data and wait.
std::string whatif_text(const WhatifAnswer& answer, const WhatifQuestion& question, const Style& style);

// The map of ranks and stages: for each row of ranks and each column of stages, the share by which compute takes longer
// than even work. Where there are more than fit, a cell is the slowest of several ranks and stages.
struct WorkMap {
  std::vector<std::string> ranks, stages;  // names of the rows and the columns
  std::vector<std::vector<double>> slower;
  bool several = false;  // whether a cell stands for several ranks or stages
};
inline constexpr std::size_t kMostMapRows = 32;  // the most rows, and the most columns, of a map that is shown
// most: the greatest number of rows, and of columns. No rows for a run of one rank and one stage.
WorkMap work_map(const WhatifAnswer& answer, std::size_t most);

// Returns sentences on where two ranks part first; none for a run of one rank.
std::vector<std::string> divergence_lines(const WhatifAnswer& answer);

}  // namespace orrery
