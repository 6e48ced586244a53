#pragma once

#include <string>

#include "models/spec.h"
#include "sim/report.h"
#include "sim/text.h"

namespace orrery {

// "llama-3.1-70b: 70.6 B parameters on 64 of 64 x NVIDIA H100 SXM5 80GB" and the strategy, two lines; a third where the
// prediction is uncalibrated.
std::string title(const Spec& spec, const Style& style);

// A report for people: title, headline figures, where the time goes, memory by class of ranks, communication, and what
// limits the step. Sample in README.md.
std::string report_text(const Spec& spec, const Report& report, const Style& style);

double exposed_share(const Report& report);  // communication that compute waits for, of the step time

}  // namespace orrery
