#pragma once

#include <vector>

#include "exec/host/execute.h"
#include "models/trace/trace_file.h"

namespace orrery {

// Compares the logits that one rank kept of two generations of the same text: by the model as it is, and by the model
// with quantised weights or cache, which went on with the other one's tokens (ExecuteOptions::follow). So each row is
// of the same tokens before it, and their number does not depend on the format.
std::vector<LogitRow> logit_rows(const Execution& wide, const Execution& narrow);

}  // namespace orrery
