#pragma once

#include <vector>

#include "exec/host/execute.h"
#include "models/trace/trace_file.h"

namespace orrery {

// Compares the logits that one rank kept of two generations with the same prompts: by the model as it is, and by the
// model with quantised weights or cache. Rows are compared as long as both have generated the same text before them.
std::vector<LogitRow> logit_rows(const Execution& wide, const Execution& narrow);

}  // namespace orrery
