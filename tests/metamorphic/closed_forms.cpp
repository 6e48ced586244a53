// Checks that need no random specs: idle shares of pipelines, every GPU that is listed, a search against trying all.
#include <fmt/format.h>

#include "models/base/data.h"
#include "sim/predict/predict.h"
#include "sim/search/search.h"
#include "tests/metamorphic/relations.h"

namespace orrery::test {
namespace {

// A spec that shows only the pipeline: no host time, hardly an optimizer, a small vocabulary, NVLink between stages.
Json pipeline_alone(std::string_view schedule, int p, int m, int chunks = 0, const char* recompute = "none",
                    int layers = 0) {
  Json s = {{"model",
             {{"layers", layers > 0 ? layers : 4 * p},
              {"hidden", 8192},
              {"heads", 64},
              {"feed_forward", 32768},
              {"vocab", 128},
              {"gated", false}}},
            {"sequence", 4096},
            {"cluster", {{"node", "gb200-nvl72"}, {"nodes", std::max(1, p / 4)}}},
            {"gpus", p},
            {"software",
             {{"profile", "orrery"},
              {"cuda_graphs", true},
              {"launch_us", 0},
              {"collective_launch_us", 0},
              {"call_us", 0},
              {"layer_us", 0}}},
            {"strategy",
             {{"pipeline", p},
              {"schedule", schedule},
              {"global_batch", m},
              {"recompute", recompute},
              {"optimizer", "sgd"},
              {"clip", 0}}}};
  if (chunks > 0) s["strategy"]["virtual_stages"] = chunks;
  return s;
}

struct Idle {
  std::string_view schedule;
  int chunks;
  double share;
};

void check_idle(Checks& checks, int p, int m) {
  const double stages = p, steps = m;
  const double fixed = (stages - 1) / (steps + stages - 1);
  const Idle forms[] = {{"gpipe", 0, fixed},
                        {"1f1b", 0, fixed},
                        {"dapple", 0, fixed},
                        {"interleaved", 2, (stages - 1) / (2 * steps + stages - 1)},
                        {"interleaved", 4, (stages - 1) / (4 * steps + stages - 1)},
                        {"naive", 0, (stages - 1) / stages},
                        {"pipedream-2bw", 0, 0}};
  for (const Idle& f : forms) {
    for (const char* recompute : {"none", "full"}) {
      const Json spec = pipeline_alone(f.schedule, p, m, f.chunks, recompute);
      const Run* run = checks.simulate(spec);
      if (run == nullptr)
        checks.violated("closed bubble", checks.refusal, spec);
      else if (std::abs(run->report.bubble_fraction - f.share) > .01 + .02 * f.share)
        checks.violated("closed bubble",
                        fmt::format("{} {}: {:.4f}, by its form {:.4f}", f.schedule, recompute,
                                    run->report.bubble_fraction, f.share),
                        spec);
    }
  }
}

// Schedules with more freedom, or more memory, take no longer.
void check_freedom(Checks& checks, int p, int m) {
  constexpr std::pair<std::string_view, std::string_view> kFreer[] = {
      {"zb-h1", "1f1b"}, {"zb-1p", "1f1b"}, {"zb-2p", "zb-1p"}, {"zb-v", "zb-1p"}};
  for (const auto& [freer, bound] : kFreer) {
    const Run *a = checks.simulate(pipeline_alone(freer, p, m)), *b = checks.simulate(pipeline_alone(bound, p, m));
    if (a->report.step_time_s > b->report.step_time_s * (1 + kTolerance))
      checks.violated(
          "schedule order",
          fmt::format("{} {:.4f} s, {} {:.4f} s", freer, a->report.step_time_s, bound, b->report.step_time_s),
          pipeline_alone(freer, p, m));
  }
}

// Recomputation counts as backward, whatever a layer consists of: the pipeline waits (p - 1)/m of the time that it is
// busy.
void check_recomputation(Checks& checks) {
  const Json models[] = {Json::object(),
                         {{"dropout", .1}},
                         {{"post_norms", true}},
                         {{"parallel_block", true}},
                         {{"moe", {{"experts", 8}, {"top_k", 2}, {"feed_forward", 16384}}}}};
  for (const Json& model : models) {
    Json spec = pipeline_alone("1f1b", 8, 8, 0, "full", 8);
    spec["model"].update(model);
    const Run* run = checks.simulate(spec);
    const auto part = [&](TimeKind k) { return run->report.time_s[static_cast<std::size_t>(k)]; };
    const double busy = run->report.step_time_s - part(TimeKind::bubble) - part(TimeKind::optimizer);
    if (part(TimeKind::bubble) < .93 * 7 / 8 * busy)
      checks.violated("recompute before its gradient",
                      fmt::format("bubble {:.4f} s of {:.4f} s busy", part(TimeKind::bubble), busy), spec);
  }
}

// Compares the best point of a search with every point of its lists.
void check_search(Checks& checks, const Json& lists) {
  Json spec = Json::parse(R"({"model": {"layers": 16, "hidden": 1024, "heads": 16, "kv_heads": 4, "feed_forward": 8192,
    "vocab": 128256}, "sequence": 1024, "cluster": {"node": "dgx-h100", "nodes": 2}, "software": "pytorch-fsdp",
    "strategy": {"context": 1, "global_batch": 32, "overlap": {"gradient_reduce": false, "parameter_gather": true,
    "tensor": false, "pipeline": true}, "rank_order": "tp-cp-pp-dp", "tensor": 2, "pipeline": 4, "micro_batch": 2,
    "sequence_parallel": false}})");
  Json open = spec;
  open["search"] = lists;
  const Space space(parse_open_spec(open.dump(), "spec.yaml"), 16);
  const SearchResult found = search(space, profile_for(space.base(), ""), {});
  if (!found.contradiction.empty()) checks.violated("bound", found.contradiction, open);
  if (found.best.empty()) return checks.violated("search", found.reason, open);
  for (const Json& schedule : lists["schedule"]) {
    for (const Json& sharding : lists["sharding"]) {
      for (const Json& recompute : lists["recompute"]) {
        Json point = with(spec, "strategy.schedule", schedule);
        point = with(with(point, "strategy.sharding", sharding), "strategy.recompute", recompute);
        const Run* run = checks.simulate(with(point, "gpus", 16));
        const double best = found.best.front().report.step_time_s;
        if (run != nullptr && run->report.memory.fits && run->report.step_time_s < best * (1 - 1e-6))
          checks.violated("search", fmt::format("best {:.6g} s, {:.6g} s", best, run->report.step_time_s), open, point);
      }
    }
  }
}

}  // namespace

void bubbles(Checks& checks) {
  constexpr std::pair<int, int> kPipelines[] = {{4, 8}, {8, 8}, {8, 32}};
  for (const auto& [p, m] : kPipelines) {
    check_idle(checks, p, m);
    check_freedom(checks, p, m);
  }
  check_recomputation(checks);
}

void every_gpu(Checks& checks) {
  for (const std::string_view id : data_names("gpus")) {
    if (!is_predicted(find_gpu(id))) continue;
    const Json spec = {{"model", "gpt2"},
                       {"sequence", 1024},
                       {"cluster", {{"gpu", id}, {"gpus_per_node", 8}, {"nodes", 1}}},
                       {"strategy", {{"precision", "fp16"}}}};
    if (checks.simulate(spec) == nullptr) checks.violated("listed GPU", checks.refusal, spec);
  }
}

void searched(Checks& checks) {
  check_search(checks, Json::parse(R"({"schedule": ["1f1b", "gpipe", "zb-h1"], "sharding": ["none", "zero1", "zero2",
                                      "zero3"], "recompute": ["none", "full"]})"));
  check_search(checks, Json::parse(R"({"schedule": ["1f1b", "zb-2p", "zb-v"], "sharding": ["zero1", "fsdp-grad-op"],
                                      "recompute": ["none", "selective"]})"));
  check_search(checks,
               Json::parse(R"({"schedule": ["1f1b", "chimera"], "sharding": ["zero2"], "recompute": ["none"]})"));
}

}  // namespace orrery::test
