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

// An opened input: a timeline and, if the input was a spec, the step that was simulated from it.
struct Document {
  std::string name;
  Timeline timeline;
  std::shared_ptr<const Step> step;
  std::vector<EventId> event_of_task;
  std::string cache_key;  // key of the document in the cache (viz/draw/scene_cache.h); "": it is not cached

  bool simulated() const { return step != nullptr; }
};

Document document_of(StepTimeline timeline);

// The format of a file, recognised by its name and the beginning of its content.
enum class Format : std::uint8_t { trace, report, spec };
struct Input {
  std::vector<std::string> files;  // paths of the files; several if a trace has one file per rank
  Format format = Format::spec;
};

// Groups the paths that a user names into inputs: files whose names differ only by a rank are one trace; a folder
// stands for the traces in it. Throws Error for files that cannot be read or have none of the formats.
std::vector<Input> inputs_of(const std::vector<std::string>& paths);

// Opens an input: simulates a spec, or reads a trace, aligning the clocks of its files. Throws Error for an input that
// cannot be opened, Cancelled when `progress` returns false.
Document open_input(const Input& input, const SpecOptions& options = {}, const LoadProgress& progress = {});
std::vector<Document> open_inputs(const std::vector<std::string>& paths, const SpecOptions& options = {},
                                  const LoadProgress& progress = {});

// Opens one trace that consists of several files.
Document open_trace(const std::vector<std::string>& files, const LoadProgress& progress = {});

// Converts a report (the shares of a step's time), or the reports of a search's strategies, to a timeline with one bar
// for each share of the step time. The bars have the order of the report, which does not contain the order of events.
Document document_of_report(const std::string& path, std::string_view text);

// Removes the rank from a file name, "step_rank3.json.gz" -> "step_.json.gz": the result is the same for all files of
// one trace.
std::string without_rank(const std::string& path);

}  // namespace orrery
