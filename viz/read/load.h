#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/report.h"
#include "viz/predicted/step.h"
#include "viz/read/mapped_text.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// An opened input: a timeline, and the simulated step behind it if it was simulated here.
struct Document {
  std::string name;
  Timeline timeline;
  std::shared_ptr<const Step> step;
  std::vector<EventId> event_of_task;
  std::string cache_key;  // key of viz/draw/scene_cache.h; "" if the document is not to be cached

  bool simulated() const { return step != nullptr; }
};

Document document_of(StepTimeline timeline);

// The format of a file, recognised by its name and beginning.
enum class Format : std::uint8_t { trace, report, spec };
struct Input {
  std::vector<std::string> files;  // several if a trace has a file for each rank
  Format format = Format::spec;
};

// Turns the paths that a user names into inputs: files that differ only by a rank in their names are one trace; a
// folder stands for the traces in it. Throws Error for files that cannot be read or have none of the formats.
std::vector<Input> inputs_of(const std::vector<std::string>& paths);

// Opens an input: a spec is simulated, the clocks of a trace's files are aligned. Throws Error for what cannot be
// opened, Cancelled when progress says so.
Document open_input(const Input& input, const SpecOptions& options = {}, const LoadProgress& progress = {});
std::vector<Document> open_inputs(const std::vector<std::string>& paths, const SpecOptions& options = {},
                                  const LoadProgress& progress = {});

// Opens one trace that consists of several files.
Document open_trace(const std::vector<std::string>& files, const LoadProgress& progress = {});

// A report, or the reports of a search's strategies, as a timeline with one bar per share of the step, in the order of
// the report: a report contains no order of events.
Document document_of_report(const std::string& path, std::string_view text);

// Removes the rank from a file name, "step_rank3.json.gz" -> "step_.json.gz": the part that the rank files of one trace
// have in common.
std::string without_rank(const std::string& path);

}  // namespace orrery
