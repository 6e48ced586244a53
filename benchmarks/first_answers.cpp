// Measures the processor time until a search has found its first strategy that fits into memory, and compares the step
// time of that strategy with the best step time of a longer search:
//   first_answers SECONDS SPEC...      SECONDS: processor time of the longer search, 0 for none
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "sim/search/search.h"

namespace orrery {
namespace {

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Returns the step time in seconds of the best strategy that a search finds within limit_s seconds of processor time,
// or 0 if it finds none.
double best_step(const Space& space, const Profile& profile, double limit_s) {
  std::atomic<bool> stop = false, ended = false;
  const double begin = processor_seconds();
  std::thread watch([&] {
    while (!ended && processor_seconds() - begin < limit_s) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  const SearchResult found = search(space, profile, {.top = 1, .stop = &stop});
  ended = true;
  watch.join();
  return found.best.empty() ? 0 : found.best.front().report.step_time_s;
}

void measure(const std::string& path, double limit_s) {
  const double begin = processor_seconds();
  OpenSpec open = load_open_spec(path);
  const std::int64_t gpus =
      open.spec.gpus > 0 ? open.spec.gpus : open.spec.cluster.nodes * open.spec.cluster.gpus_per_node;
  const Space space(std::move(open), gpus);
  const Profile profile = profile_for(space.base(), "");
  const SearchResult first = search(space, profile, {.top = 1, .any = true});
  const double took = processor_seconds() - begin;
  if (first.best.empty()) {
    fmt::print("{:<40} {:>8.2f}  nothing fits\n", path, took);
    return;
  }
  const Found& found = first.best.front();
  const double step = found.report.step_time_s, best = limit_s > 0 ? best_step(space, profile, limit_s) : 0;
  fmt::print("{:<40} {:>8.2f} {:>9.3f} {:>9.3f} {:>7.2f}  {}\n", path, took, step, best, best > 0 ? step / best : 0,
             space.text_of(found.point));
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: {} SECONDS SPEC...\n", argv[0]);
    return 2;
  }
  try {
    fmt::print("{:<40} {:>8} {:>9} {:>9} {:>7}\n{:<40} {:>8} {:>9} {:>9} {:>7}\n", "spec", "first", "its step", "best",
               "ratio", "", "s", "s", "s", "");
    for (int i = 2; i < argc; ++i) orrery::measure(argv[i], std::atof(argv[1]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
