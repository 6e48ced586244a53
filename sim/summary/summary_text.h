#pragma once

#include <string>

#include "sim/print/text.h"
#include "sim/summary/summary.h"

namespace orrery {

// The summary as tables for people. top: number of kernels and of operators to list.
std::string summary_text(const TraceSummary& summary, std::size_t top, const Style& style);

// The summary as JSON, schema orrery.trace_summary/1; times end in _s and are seconds. docs/reference.md has the keys.
std::string summary_json(const TraceSummary& summary);

}  // namespace orrery
