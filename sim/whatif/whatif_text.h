#pragma once

#include <string>

#include "sim/print/text.h"
#include "sim/whatif/whatif.h"

namespace orrery {

// Returns the answer as text for people: the measured step time and the one under the question's assumptions, the
// slowdowns by op, rank and stage, a map of ranks and stages, and how long transfers move data and wait.
std::string whatif_text(const WhatifAnswer& answer, const WhatifQuestion& question, const Style& style);

}  // namespace orrery
