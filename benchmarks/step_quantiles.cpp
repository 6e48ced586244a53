// Compares the quantiles of steps whose GPUs and kernels differ (cluster.variation) with draws in which every rank and
// every kernel has a time of its own:
//   step_quantiles DRAWS SPEC...
//   step_quantiles DRAWS --gpus N    layouts of a small model on N GPUs: data, tensor and pipeline parallelism
#include <chrono>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "models/base/quantile.h"
#include "models/load/load_spec.h"
#include "sim/predict/every_rank.h"

namespace orrery {
namespace {

// The half width of the interval that a quantile of so many sorted draws lies in with 95 % probability, over the
// quantile: the number of draws below it is binomially distributed.
double uncertainty(std::vector<double> draws, double share) {
  const auto n = static_cast<double>(draws.size());
  const double margin = 1.96 * std::sqrt(share * (1 - share) / n);
  return (quantile(draws, std::min(1.0, share + margin)) - quantile(draws, std::max(0.0, share - margin))) / 2 /
         quantile(draws, share);
}

void compare(const std::string& name, const Spec& spec, int draws) {
  const Profile profile = profile_for(spec, "");
  const Report r = predict(spec, profile).report;
  EveryRank every(spec, profile);
  std::vector<double> steps;
  for (int i = 0; i < draws; ++i) steps.push_back(every.step(static_cast<std::uint64_t>(i)));
  const auto text = [&](double predicted, double share) {
    const double drawn = quantile(steps, share);
    return fmt::format("{:.4f} s against {:.4f} ({:+.2f} +- {:.2f} %)", predicted, drawn, 100 * (predicted / drawn - 1),
                       100 * uncertainty(steps, share));
  };
  fmt::print("{}: {} GPUs, step {:.4f} s, p50 {}, p95 {}\n", name, spec.gpus, r.step_time_s,
             text(r.variation->p50, 0.5), text(r.variation->p95, 0.95));
  std::fflush(stdout);
}

// A layout by the number of GPUs. micro_batches: of a replica.
struct Layout {
  std::int64_t tensor, pipeline, micro_batches;
  const char* sharding;
};
constexpr Layout kLayouts[] = {{1, 1, 1, "zero1"}, {1, 1, 1, "zero3"}, {2, 1, 2, "zero1"}, {1, 2, 4, "zero1"},
                               {2, 2, 4, "zero1"}, {4, 1, 2, "zero1"}, {4, 4, 8, "zero1"}, {8, 4, 8, "zero1"}};

// Each stage has a layer, and at least two: ranks with many tasks of their own take long to draw.
void compare_layouts(std::int64_t gpus, int draws) {
  for (const Layout& l : kLayouts) {
    const std::int64_t data = gpus / (l.tensor * l.pipeline);
    // as much work for a rank as without tensor ranks, so that hosts do not limit the step
    const std::int64_t micro_batch = l.tensor;
    if (data * l.tensor * l.pipeline != gpus) continue;
    const std::string strategy =
        fmt::format("tensor: {}, pipeline: {}, data: {}, sharding: {}, global_batch: {}", l.tensor, l.pipeline, data,
                    l.sharding, data * l.micro_batches * micro_batch);
    const std::string text = fmt::format(
        "model: {{name: small, layers: {}, hidden: 8192, heads: 64, kv_heads: 8, feed_forward: 28672, vocab: 32000}}\n"
        "sequence: 2048\ncluster: {{node: dgx-h100, nodes: {}, variation: {{gpus: 0.05, kernels: 0.03}}}}\n"
        "software: megatron-core\ngpus: {}\nstrategy: {{{}, micro_batch: {}}}\n",
        std::max<std::int64_t>(2, l.pipeline), std::max<std::int64_t>(1, gpus / 8), gpus, strategy, micro_batch);
    compare(strategy, parse_spec(text, "layout"), draws);
  }
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) try {
  if (argc < 3) {
    fmt::print(stderr, "usage: step_quantiles DRAWS SPEC...\n       step_quantiles DRAWS --gpus N\n");
    return 2;
  }
  const int draws = std::atoi(argv[1]);
  if (std::string_view(argv[2]) == "--gpus" && argc == 4) {
    orrery::compare_layouts(std::atoi(argv[3]), draws);
    return 0;
  }
  for (int i = 2; i < argc; ++i) orrery::compare(argv[i], orrery::load_spec(argv[i]), draws);
} catch (const orrery::Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return e.exit_code;
}
