// Compares the quantiles of steps whose GPUs and kernels differ (cluster.variation) with draws in which every rank and
// every kernel has a time of its own:
//   step_quantiles DRAWS SPEC...
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "models/base/quantile.h"
#include "models/load/load_spec.h"
#include "sim/predict/every_rank.h"

namespace orrery {
namespace {

void compare(const std::string& path, int draws) {
  const Spec spec = load_spec(path);
  const Profile profile = profile_for(spec, "");
  const Report r = predict(spec, profile).report;
  EveryRank every(spec, profile);
  std::vector<double> steps;
  for (int i = 0; i < draws; ++i) steps.push_back(every.step(static_cast<std::uint64_t>(i)));
  const double p50 = quantile(steps, 0.5), p95 = quantile(steps, 0.95);
  fmt::print(
      "{}: {} GPUs, step {:.4f} s, p50 {:.4f} s against {:.4f} ({:+.2f} %), p95 {:.4f} s against {:.4f} ({:+.2f} %)\n",
      path, spec.gpus, r.step_time_s, r.variation->p50, p50, 100 * (r.variation->p50 / p50 - 1), r.variation->p95, p95,
      100 * (r.variation->p95 / p95 - 1));
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) try {
  for (int i = 2; i < argc; ++i) orrery::compare(argv[i], std::atoi(argv[1]));
} catch (const orrery::Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return e.exit_code;
}
