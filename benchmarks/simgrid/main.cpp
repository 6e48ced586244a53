// Plays sets of flows with FairShare and, each in a process of its own, with SimGrid, in the same run:
//   flows_beside_simgrid [--alone] [WORD]
// plays the sets whose names contain WORD, or all; with --alone, without SimGrid.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include <fmt/format.h>

#include "benchmarks/simgrid/play.h"

namespace orrery::flows {

namespace {

struct Row {
  std::string name;
  bool beside_simgrid;
  std::function<FlowSet()> make;
};

const Row kRows[] = {
    {"ring 1024", true, [] { return ring(1024, 2046); }},
    {"all-to-all 256", true, [] { return all_to_all(256, false); }},
    {"random 1024", true, [] { return random_pairs(1024, 10, false); }},
    {"random 1024, hashed", true, [] { return random_pairs(1024, 10, true); }},
    {"uneven all-to-all 64", true, [] { return all_to_all(64, true); }},
    {"random 16384", false, [] { return random_pairs(16384, 2, false); }},
    {"random 16384, hashed", false, [] { return random_pairs(16384, 2, true); }},
    {"uneven all-to-all 256", false, [] { return all_to_all(256, true); }},
    {"512 flows x 2 of 64 links", false, [] { return two_links(64, 512, 10); }},
};

// Memory that a child process shares with this one.
std::span<double> shared_doubles(std::size_t count) {
  void* memory = mmap(nullptr, count * sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  return {static_cast<double*>(memory), count};
}

// Plays a set with SimGrid in a process of its own, since a process can have one simulation only. The processor time
// stands behind the ends of the flows.
bool play_in_child(const FlowSet& set, std::span<double> results) {
  const pid_t child = fork();
  if (child == 0) {
    results.back() = play_simgrid(set, results.first(set.flows.size()));
    _exit(0);
  }
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

double last(std::span<const double> ends) { return *std::max_element(ends.begin(), ends.end()); }

bool play(const Row& row, bool alone) {
  const FlowSet set = row.make();
  std::vector<double> ours(set.flows.size());
  const double time = play_fair_share(set, ours);
  const auto count = static_cast<double>(set.flows.size());
  fmt::print("{:26} {:9} flows, end {:.9f} s; FairShare {:8.4f} s ({:8.0f} k flows/s)", row.name, set.flows.size(),
             last(ours), time, 1e-3 * count / time);
  std::fflush(stdout);
  bool agree = true;
  if (row.beside_simgrid && !alone) {
    const std::span<double> results = shared_doubles(set.flows.size() + 1);
    if (!play_in_child(set, results)) {
      fmt::print("; SimGrid failed\n");
      return false;
    }
    double worst = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] / results[i] - 1));
    const double end = last(ours) / last(results.first(ours.size())) - 1;
    agree = std::abs(end) < 1e-5;
    fmt::print("; SimGrid {:8.3f} s, {:.0f} x; end {:+.1e}, worst flow {:.1e}", results.back(), results.back() / time,
               end, worst);
  }
  fmt::print("\n");
  return agree;
}

}  // namespace
}  // namespace orrery::flows

int main(int count, char** words) {
  const bool alone = count > 1 && std::string(words[1]) == "--alone";
  const std::string word = count > 1 + alone ? words[1 + alone] : "";
  bool agree = true;
  for (const auto& row : orrery::flows::kRows) {
    if (row.name.find(word) != std::string::npos) agree = orrery::flows::play(row, alone) && agree;
  }
  if (!agree) std::puts("an end differs from SimGrid's by 1e-5 of it or more");
  return agree ? 0 : 1;
}
