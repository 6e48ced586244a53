#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/report.h"
#include "viz/mapped_text.h"
#include "viz/step.h"
#include "viz/timeline.h"

namespace orrery {

// One thing that was opened: a timeline, and the step behind it where it was simulated here.
struct Document {
  std::string name;
  Timeline timeline;
  std::shared_ptr<const Step> step;
  std::vector<EventId> event_of_task;

  bool simulated() const { return step != nullptr; }
};

Document document_of(StepTimeline timeline);

// Opens what a user names: specs (simulated here), reports, traces. Files that differ by a rank in their names are one
// trace, their clocks aligned; a folder stands for the traces in it. Throws Error for what cannot be opened, Cancelled
// when progress says so.
std::vector<Document> open_inputs(const std::vector<std::string>& paths, const LoadProgress& progress = {});

// Of one trace in several files.
Document open_trace(const std::vector<std::string>& files, const LoadProgress& progress = {});

// A report as a timeline of one bar per share of the step, in the order of the report: it knows no order of events.
Document document_of_report(const std::string& path, const std::string& text);

// "step_rank3.json.gz" -> "step_.json.gz": what rank files of one trace have in common.
std::string without_rank(const std::string& path);

}  // namespace orrery
