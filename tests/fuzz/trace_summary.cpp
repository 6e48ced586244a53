#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "sim/summary/summary_text.h"
#include "tests/fuzz/fuzz.h"

// Sums up a trace, which is a file in memory because the reader reads files piece by piece.
void orrery::fuzz::read_trace_summary(std::string_view bytes) {
  static const int file = memfd_create("trace", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, bytes.data(), bytes.size(), 0) < 0) std::abort();
  const TraceSummary summary = summarize_traces({"/proc/self/fd/" + std::to_string(file)});
  summary_text(summary, 3, {});
  summary_json(summary);
}
