#pragma once

#include <string>

#include "models/spec/spec.h"
#include "sim/print/text.h"
#include "sim/report/report.h"

namespace orrery {

// Returns the title of a report, two lines: "llama-3.1-70b: 70.6 B parameters on 64 of 64 x NVIDIA H100 SXM5 80GB" and
// the strategy; a third line if the prediction is uncalibrated.
std::string title(const Spec& spec, const Style& style);

// Returns a report for people: title, headline figures, where the time goes, memory by class of ranks, communication,
// and what limits the step. A sample of its first lines after the title:
//   step time    17.31 s
//   tokens/s      60,568  946 per GPU
//   MFU           46.0 %  456 TFLOP/s per GPU; with recomputation 48.1 % and 476
//   memory     48.17 GiB  fits: 31.47 GiB to spare of 79.65 GiB per GPU
std::string report_text(const Spec& spec, const Report& report, const Style& style);

// Returns a line "setting an update right takes 0.32 s more of a step (4.1 %)" about rolling back an update; "" if the
// software does not validate updates afterwards.
std::string roll_back_line(const Report& report);

// Returns a line on the step's quantiles over clusters whose GPUs differ (Report::variation, which must be set).
std::string variation_line(const Report& report);
// The same of hashes that choose uplinks, if the report has it.
std::string hashes_line(const Report& report);

// Returns a text on the memory that is too small for a step that does not fit, and how much is lacking if that is
// known: "22.52 GiB over", "fragmented", "host memory 310.0 GiB over", "disks 1.20 TiB over".
std::string lack_text(const MemoryReport& memory);

double exposed_share(const Report& report);  // share of the step time in which compute waits for transfers

}  // namespace orrery
