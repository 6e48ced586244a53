// `orrery trace summarize`: sums up traces of any origin by rank, kind of kernel and operator.
#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "sim/cli/commands.h"
#include "sim/summary/summary_text.h"

namespace orrery {

Outcome trace_command(const TraceOptions& options, const Common& common) {
  static constexpr std::string_view kActions[] = {"summarize"};
  if (options.action != kActions[0]) throw Error(unknown_name("trace", options.action, kActions));
  const TraceSummary summary = summarize_traces(options.files, common.progress);
  if (common.json) return {summary_json(summary)};
  return {summary_text(summary, static_cast<std::size_t>(options.top), common.style)};
}

}  // namespace orrery
