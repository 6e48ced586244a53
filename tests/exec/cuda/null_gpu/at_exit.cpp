// Part of orrery-rank-null alone: a rank whose calls the null GPU complains about, or that leaves things behind, fails.
#include <cstdio>
#include <cstdlib>

#include "tests/exec/cuda/null_gpu/null_gpu.h"

namespace orrery::null_gpu {
namespace {

constexpr int kComplained = 70;

void report() {
  const std::vector<std::string> all[] = {complaints(), left_behind()};
  for (const std::string& what : all[0]) std::fprintf(stderr, "the null GPU complains: %s\n", what.c_str());
  for (const std::string& what : all[1]) std::fprintf(stderr, "left behind on the null GPU: %s\n", what.c_str());
  if (!all[0].empty() || !all[1].empty()) std::_Exit(kComplained);
}

[[maybe_unused]] const int registered = std::atexit(report);

}  // namespace
}  // namespace orrery::null_gpu
