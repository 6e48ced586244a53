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

// One thing that was opened: a timeline, and the step behind it where it was simulated here.
struct Document {
  std::string name;
  Timeline timeline;
  std::shared_ptr<const Step> step;
  std::vector<EventId> event_of_task;
  std::string cache_key;  // viz/draw/scene_cache.h; "" if it is not to be cached

  bool simulated() const { return step != nullptr; }
};

Document document_of(StepTimeline timeline);

// What a file is, by its name and beginning.
enum class Format : std::uint8_t { trace, report, spec };
struct Input {
  std::vector<std::string> files;  // more than one of a trace
  Format format = Format::spec;
};

// What a user names, as inputs: files that differ by a rank in their names are one trace; a folder stands for the
// traces in it. Throws Error for what cannot be read or is none of these.
std::vector<Input> inputs_of(const std::vector<std::string>& paths);

// Opens an input: a spec is simulated, the clocks of a trace's files are aligned. Throws Error for what cannot be
// opened, Cancelled when progress says so.
Document open_input(const Input& input, const SpecOptions& options = {}, const LoadProgress& progress = {});
std::vector<Document> open_inputs(const std::vector<std::string>& paths, const SpecOptions& options = {},
                                  const LoadProgress& progress = {});

// Of one trace in several files.
Document open_trace(const std::vector<std::string>& files, const LoadProgress& progress = {});

// A report, or those of a search's strategies, as a timeline of one bar per share of the step, in the order of the
// report: it knows no order of events.
Document document_of_report(const std::string& path, std::string_view text);

// "step_rank3.json.gz" -> "step_.json.gz": what rank files of one trace have in common.
std::string without_rank(const std::string& path);

}  // namespace orrery
