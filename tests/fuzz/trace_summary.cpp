#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "sim/summary/summary_text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/sim/summary/collected.h"

// Sums up a trace, which is a file in memory because the reader reads files piece by piece. Also compares the events
// that parts of a few bytes hold, and their records, with those read one by one.
void orrery::fuzz::read_trace_summary(std::string_view bytes) {
  const std::string_view list = bytes.substr(std::min(bytes.find('{', 1), bytes.size()));
  if (parts::read_by_parts(list, 2, 40) != parts::read_by_parts(list, 1, 40)) std::abort();
  if (parts::collected(list, 2, 40) != parts::collected(list, 1, 40)) std::abort();
  static const int file = memfd_create("trace", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, bytes.data(), bytes.size(), 0) < 0) std::abort();
  const TraceSummary summary = summarize_traces({"/proc/self/fd/" + std::to_string(file)});
  summary_text(summary, 3, {});
  summary_json(summary);
}
