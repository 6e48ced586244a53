#pragma once

#include <string>

#include "sim/print/text.h"
#include "sim/whatif/whatif.h"

namespace orrery {

// Returns the answer as text for people: the step and what the question makes of it, what slows it down by op, rank and
// stage, a map of ranks and stages, and what transfers wait for.
std::string whatif_text(const WhatifAnswer& answer, const WhatifQuestion& question, const Style& style);

}  // namespace orrery
