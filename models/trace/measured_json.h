#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_value.h"
#include "models/trace/measured_times.h"

namespace orrery {

// Returns the section "measured" of a profile: {"ops": [{"kind", "samples": [{"sizes", "amount", "us", "spread",
// "count"}]}], "transfers": [{"kind", "ranks", "nodes" (if known), "samples": [{"bytes", "us", ...}]}], "issue_us",
// ..., "compute_slowdown", ...}.
nlohmann::ordered_json json_of(const MeasuredTimes& times);

// Reads the section "measured" of a profile and sorts its samples. Throws Error with file and key for a value that is
// missing or invalid.
MeasuredTimes measured_of(const JsonValue& section);

}  // namespace orrery
