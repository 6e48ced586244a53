#pragma once

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/spec/sharding.h"
#include "sim/search/space.h"
#include "tests/random_bits.h"

namespace orrery::test {

struct SmallSpace {
  std::string text;
  std::int64_t gpus = 8;
};

struct Draw {
  std::uint64_t seed = 0, count = 0;
  std::size_t below(std::size_t n) { return random_bits(seed * 1'000'003 + count++) % n; }
};

// A small model on one or two nodes, with some axes open and others drawn. more: ", key: value", ... of the strategy.
inline SmallSpace small_space(std::uint64_t seed, const std::string& more = "") {
  Draw random{seed};
  const auto pick = [&](auto... values) {
    const std::vector<std::string> list{fmt::format("{}", values)...};
    return list[random.below(list.size())];
  };
  SmallSpace s;
  const bool experts = random.below(5) == 0;
  s.gpus = random.below(3) == 0 ? 16 : 8;
  const std::string node = pick("dgx-a100", "dgx-h100", "dgx-h100");
  const std::string software =
      experts ? "megatron-core" : pick("megatron-core", "megatron-lm-2022", "pytorch-fsdp", "torchtitan");
  s.text = fmt::format(
      "model: {{name: small, layers: {}, hidden: {}, heads: 16, kv_heads: {}, feed_forward: {}, vocab: 32000, gated: "
      "{}, "
      "tied_embeddings: {}{}}}\nsequence: {}\ncluster: {{node: {}, nodes: 2}}\nsoftware: {}\n",
      pick(4, 6, 8), pick(1024, 2048, 4096), pick(4, 16), pick(4096, 8192), pick(true, false),
      experts ? "false" : pick(true, false), experts ? ", moe: {experts: 8, top_k: 2, feed_forward: 2048}" : "",
      pick(1024, 2048, 4096), node, software);
  s.text += fmt::format("strategy: {{global_batch: {}, clip: {}{}}}\n", pick(16, 32), pick(0.0, 1.0), more);
  std::vector<std::string> ranges;
  const auto range = [&](std::string_view key, std::vector<std::string> values) {
    ranges.push_back(fmt::format("{}: [{}]", key, fmt::join(values, ", ")));
  };
  range("tensor", {"1", pick(2, 4), "8"});
  range("context", {"1", pick(1, 2)});
  range("pipeline", {"1", pick(2, 4)});
  range("virtual_stages", {"1", "2"});
  range("micro_batch", {pick(1, 2), pick(1, 4)});
  range("schedule", {"1f1b", pick("gpipe", "interleaved", "zb-h1", "zb-h2", "naive", "zb-1p", "zb-v", "v-half", "v-min",
                                  "dualpipev", "chimera", "dualpipe")});
  range("sharding", {pick("none", "zero1"), pick("zero1", "zero2", "zero3", "fsdp", "hsdp", "fsdp-grad-op")});
  range("offload", {"none", pick("none", "optimizer", "optimizer+gradients", "optimizer+gradients+parameters")});
  range("recompute", {"none", pick("selective", "full", "mlp")});
  range("recompute_layers", {"null", "1"});
  range("sequence_parallel", {"true", pick(true, false)});
  range("rank_order", {pick("tp-cp-dp-pp", "tp-cp-pp-dp")});
  range("overlap_tensor", {pick(false, false, true)});
  range("overlap_gradient_reduce", {"true", pick(true, false)});
  range("overlap_parameter_gather", {pick(true, false)});
  range("overlap_pipeline", {pick(true, true, false)});
  range("offload_activations", {"none", pick("none", "none", "cpu")});
  s.text += fmt::format("search: {{{}}}\n", fmt::join(ranges, ", "));
  return s;
}

// The same with images that an encoder reads.
inline SmallSpace seeing_space(std::uint64_t seed) {
  SmallSpace s = small_space(seed);
  const auto replace = [&](std::string_view word, const std::string& by) {
    s.text.replace(s.text.find(word), word.size(), by);
  };
  constexpr const char* kKinds[] = {"", ", merge: 2, projectors: 2, rotary: true", ", window: 64, full_layers: [0]",
                                    ", merge: 2, gated: true, norm: rmsnorm"};
  replace("name: small,",
          fmt::format("name: small, vision: {{layers: {}, hidden: {}, heads: 16, feed_forward: 4096{}}},", seed % 3 + 2,
                      seed % 2 == 0 ? 512 : 2048, kKinds[seed % std::size(kKinds)]));
  const std::size_t at = s.text.find("sequence: ") + 10, end = s.text.find('\n', at);
  s.text.replace(
      at, end - at,
      fmt::format("{{length: {}, images: {{count: {}, patches: 512}}}}", s.text.substr(at, end - at), seed % 2 + 1));
  return s;
}

// A small model on eight GPUs with contexts, experts and offload open, every one of them in many strategies.
inline SmallSpace wide_space(std::uint64_t seed) {
  Draw random{seed};
  const auto pick = [&](auto... values) {
    const std::vector<std::string> list{fmt::format("{}", values)...};
    return list[random.below(list.size())];
  };
  const bool experts = random.below(3) > 0;
  SmallSpace s;
  s.text = fmt::format(
      "model: {{name: small, layers: {}, hidden: {}, heads: 8, kv_heads: {}, feed_forward: {}, vocab: 32000, gated: "
      "true{}}}\nsequence: {}\ncluster: {{node: {}, nodes: 1}}\nsoftware: {}\n",
      pick(2, 4), pick(512, 2048), pick(2, 8), pick(2048, 4096),
      experts ? fmt::format(", moe: {{experts: {}, top_k: 2, feed_forward: 2048}}", pick(4, 8)) : "", pick(1024, 4096),
      pick("dgx-a100", "dgx-h100"), experts ? "megatron-core" : pick("megatron-core", "pytorch-fsdp", "torchtitan"));
  s.text += fmt::format("strategy: {{global_batch: {}, micro_batch: 1, recompute: {}, sequence_parallel: true}}\n",
                        pick(8, 16), pick("none", "selective", "full"));
  s.text += fmt::format(
      "search: {{tensor: [1, 2], pipeline: [1, {}], schedule: [1f1b], sharding: [none, {}], context: [1, 2, 4], "
      "context_kind: [{}], expert: [1, 2, 4], expert_tensor: [1, {}], rank_order: [tp-cp-dp-pp], overlap_tensor: "
      "[false], overlap_expert: [false], overlap_gradient_reduce: [true], overlap_parameter_gather: [{}], "
      "overlap_pipeline: [true], offload: [none, optimizer, optimizer+gradients, optimizer+parameters, "
      "optimizer+gradients+parameters], offload_activations: [none]}}\n",
      pick(1, 2), pick("zero1", "zero2", "zero3", "fsdp"), pick("ring", "ring, ulysses", "allgather"), pick(1, 2),
      pick(true, false));
  return s;
}

// Places for states and activations, in many strategies that need them: give their search less memory.
inline SmallSpace offload_space(std::uint64_t seed) {
  Draw random{seed};
  const auto pick = [&](auto... values) {
    const std::vector<std::string> list{fmt::format("{}", values)...};
    return list[random.below(list.size())];
  };
  const bool experts = random.below(5) == 0;
  SmallSpace s;
  s.gpus = random.below(3) == 0 ? 2 : 4;
  s.text = fmt::format(
      "model: {{name: small, layers: {}, hidden: {}, heads: 8, kv_heads: {}, feed_forward: {}, vocab: 16000, gated: "
      "{}, "
      "tied_embeddings: {}{}}}\nsequence: {}\ncluster: {{node: {}, nodes: 1}}\nsoftware: {}\n",
      pick(4, 6), pick(1024, 2048), pick(2, 8), pick(4096, 8192), pick(true, false),
      experts ? "false" : pick(true, false), experts ? ", moe: {experts: 4, top_k: 2, feed_forward: 2048}" : "",
      pick(1024, 2048), pick("dgx-a100", "dgx-h100"),
      experts ? "megatron-core" : pick("megatron-core", "deepspeed-2019", "pytorch-fsdp", "torchtitan"));
  s.text +=
      fmt::format("strategy: {{global_batch: {}, micro_batch: {}, clip: {}}}\n", pick(8, 16), pick(1, 2), pick(0, 1));
  s.text += fmt::format(
      "search: {{tensor: [{}], pipeline: [1, 2], context: [1], schedule: [{}], virtual_stages: [1], sharding: [{}, "
      "{}], "
      "offload: [none, {}, {}], offload_activations: [none, cpu, nvme], recompute: [none, {}], recompute_layers: "
      "[null, "
      "1], rank_order: [tp-cp-dp-pp], sequence_parallel: [{}], overlap_tensor: [false], overlap_gradient_reduce: "
      "[true], "
      "overlap_parameter_gather: [true], overlap_pipeline: [true]}}\n",
      pick(1, "1, 2"), pick("1f1b", "gpipe", "zb-h1", "1f1b"), pick("none", "zero1", "zero2"),
      pick("zero3", "fsdp", "hsdp", "fsdp-grad-op"),
      pick("optimizer", "optimizer+gradients", "optimizer+gradients+parameters", "optimizer+parameters"),
      pick("optimizer:nvme", "optimizer:nvme+gradients:nvme+parameters:nvme", "optimizer+parameters:nvme",
           "optimizer+gradients:nvme"),
      pick("selective", "full", "mlp"), pick(true, "true, false"));
  return s;
}

// Schedules that split backward or run two copies of the model, with gradients that are reduced unit by unit and states
// elsewhere.
inline SmallSpace split_space(std::uint64_t seed) {
  Draw random{seed};
  const auto pick = [&](auto... values) {
    const std::vector<std::string> list{fmt::format("{}", values)...};
    return list[random.below(list.size())];
  };
  const bool experts = random.below(6) == 0;
  SmallSpace s;
  s.gpus = random.below(2) == 0 ? 16 : 8;
  const std::string ends = pick("", "", ", mtp_layers: 1");
  s.text = fmt::format(
      "model: {{name: small, layers: {}, hidden: {}, heads: 8, kv_heads: {}, feed_forward: {}, vocab: 16000, gated: "
      "{}, tied_embeddings: {}{}}}\nsequence: {}\ncluster: {{node: {}, nodes: 2}}\nsoftware: {}\n",
      pick(4, 6, 8), pick(1024, 2048, 6144), pick(2, 8), pick(4096, 8192, 24576), pick(true, false),
      experts || !ends.empty() ? "false" : pick(true, false),
      experts ? ", moe: {experts: 4, top_k: 2, feed_forward: 2048}" : ends, pick(1024, 2048, 8192),
      pick("dgx-a100", "dgx-h100"),
      experts ? "megatron-core" : pick("megatron-core", "deepspeed-2019", "pytorch-fsdp", "torchtitan"));
  s.text +=
      fmt::format("strategy: {{global_batch: {}, micro_batch: {}, clip: {}}}\n", pick(16, 32), pick(1, 2), pick(0, 1));
  s.text += fmt::format(
      "search: {{tensor: [1, {}], pipeline: [2, 4], context: [1], schedule: [{}, {}], virtual_stages: [1, 2], "
      "sharding: [{}, {}], shard_group: [2], offload: [none, {}], offload_activations: [none, {}], recompute: [none, "
      "{}], recompute_layers: [null], rank_order: [{}], sequence_parallel: [true], overlap_tensor: [false], "
      "overlap_gradient_reduce: [{}, false], overlap_parameter_gather: [{}], overlap_pipeline: [{}]}}\n",
      pick(1, 2), pick("zb-h1", "zb-h2", "zb-1p", "zb-2p"),
      pick("zb-v", "v-half", "v-min", "dualpipev", "chimera", "dualpipe"), pick("zero1", "zero2"),
      pick("zero3", "fsdp", "hsdp", "fsdp-grad-op"),
      pick("optimizer", "optimizer+gradients", "optimizer+gradients+parameters", "optimizer+parameters",
           "optimizer:nvme", "optimizer:nvme+gradients:nvme+parameters:nvme", "optimizer+gradients:nvme"),
      pick("none", "cpu", "nvme"), pick("selective", "full", "mlp"), pick("tp-cp-dp-pp", "tp-cp-pp-dp"),
      pick(true, false), pick(true, false), pick(true, false));
  return s;
}

// A student beside a teacher of another shape, or a policy beside its reference, either with experts or without.
inline SmallSpace two_models_space(std::uint64_t seed) {
  Draw random{seed};
  const auto pick = [&](auto... values) {
    const std::vector<std::string> list{fmt::format("{}", values)...};
    return list[random.below(list.size())];
  };
  const bool teaches = random.below(3) > 0;
  std::size_t with_experts = 0, with_shared = 0;
  const auto model = [&](const std::string& ends) {
    const bool experts = random.below(3) == 0, shared = experts && random.below(2) == 0;
    with_experts += experts ? 1 : 0;
    with_shared += shared ? 1 : 0;
    return fmt::format(
        "{{name: small, layers: {}, hidden: {}, heads: 8, kv_heads: {}, feed_forward: {}, vocab: 16000{}{}}}",
        pick(4, 6, 8), pick(512, 1024, 2048), pick(2, 8), pick(2048, 8192),
        experts ? fmt::format(", moe: {{experts: {}, top_k: 2, feed_forward: 1024{}{}}}", pick(4, 8),
                              shared ? ", shared_feed_forward: 512" : "", pick("", "", ", imbalance: 1.5"))
                : ends,
        experts ? pick("", ", mla: {kv_lora_rank: 128, qk_nope_head_dim: 64, qk_rope_head_dim: 32, v_head_dim: 64}")
                : pick("", "", ", sliding_window: {window: 256}"));
  };
  const std::string tied = ", tied_embeddings: true";
  SmallSpace s;
  s.text = "model: " + model(pick("", tied)) + '\n';
  s.text += teaches ? "teacher: " + model(pick("", tied)) + "\ndistill: {temperature: 2}\n" : "dpo: {beta: 0.1}\n";
  s.text += fmt::format(
      "sequence: {}\ncluster: {{node: {}, nodes: 1}}\nsoftware: {}\nstrategy: {{global_batch: {}, clip: {}}}\n",
      pick(512, 1024, 4096), pick("dgx-a100", "dgx-h100"),
      with_experts > 0 ? "megatron-core" : pick("megatron-core", "pytorch-fsdp", "torchtitan", "deepspeed-2019"),
      pick(16, 32), pick(0, 1));
  s.text += fmt::format(
      "search: {{tensor: [1, {}], pipeline: [1, {}], context: [1{}], schedule: [1f1b, {}], virtual_stages: [1, 2], "
      "micro_batch: [{}], sharding: [{}, {}], expert: [{}], expert_tensor: [{}], recompute: [none, {}], "
      "recompute_layers: [null, 1], rank_order: [{}], sequence_parallel: [true], overlap_tensor: [{}], overlap_expert: "
      "[{}], overlap_gradient_reduce: [{}], overlap_parameter_gather: [{}], overlap_pipeline: [{}], offload: "
      "[none{}], offload_activations: [{}]}}\n",
      pick(2, 4), pick(2, 4), teaches ? pick("", ", 2") : "",
      pick("gpipe", "interleaved", "zb-h1", "zb-h2", "naive", "zb-1p"), teaches ? pick("1", "1, 2") : "2",
      pick("none", "zero1", "zero2"), pick("zero3", "fsdp", "hsdp", "fsdp-grad-op"), pick("1, 2", "1, 4"),
      with_experts > 0 ? pick("1", "1, 2") : "1", pick("selective", "full", "mlp"), pick("tp-cp-dp-pp", "tp-cp-pp-dp"),
      pick(false, true), with_shared > 0 ? pick(false, true) : "false", pick(true, false), pick(true, false),
      pick(true, false),
      pick("", "", ", optimizer", ", optimizer+gradients", ", optimizer+gradients+parameters",
           ", optimizer+parameters"),
      pick("none", "none", "none, cpu"));
  return s;
}

// Whether a schedule is searched together with other schedules; DAPPLE cuts stages in another way, and is searched by
// itself.
inline bool is_searched_with_others(const ScheduleRow& row) { return has_bounds(row) && row.name != "dapple"; }

// Every schedule that a search knows and every sharding of ranks alike, in turn by the seed, beside others: a strategy
// of one layer's parts and one node's ranks, so that all of them are tried in no time.
inline SmallSpace any_space(std::uint64_t seed) {
  Draw random{seed};
  std::vector<std::string> schedules, shardings;
  for (const ScheduleRow& row : schedule_rows()) {
    if (is_searched_with_others(row)) schedules.emplace_back(row.name);
  }
  for (const ShardingRow& row : sharding_rows()) {
    if (!row.servers && !row.master) shardings.emplace_back(row.name);
  }
  const auto pick = [&](const std::vector<std::string>& list) { return list[random.below(list.size())]; };
  const std::string schedule = schedules[seed % schedules.size()];
  const bool both_ways = find_schedule(schedule).placement == ChunkPlacement::both_ways;
  std::set<std::string> those = {"1f1b", schedule, pick(schedules)};
  std::set<std::string> sharded = {shardings[seed % shardings.size()], pick(shardings)};
  if (find_schedule(schedule).placement != ChunkPlacement::in_turn) sharded.insert("none");
  if (both_ways) sharded.insert({"zero2", pick({"zero3", "fsdp", "fsdp-grad-op"})});
  bool flushes = true;
  for (const std::string& name : those) flushes &= find_schedule(name).updates == Updates::flush;
  SmallSpace s;
  s.text = fmt::format(
      "model: {{name: small, layers: {}, hidden: {}, heads: 8, feed_forward: 4096, vocab: {}, tied_embeddings: {}}}\n"
      "sequence: 1024\ncluster: {{node: {}, nodes: 1}}\nsoftware: {}\n"
      "strategy: {{global_batch: {}, micro_batch: 1, context: 1, clip: {}}}\n",
      pick({"4", "8"}), pick({"512", "2048"}), pick({"1000", "16000", "256000"}), seed % 3 == 0,
      pick({"dgx-a100", "dgx-h100"}), pick({"megatron-core", "pytorch-fsdp", "torchtitan", "orrery", "nanotron"}),
      pick({"8", "16"}), flushes ? pick({"0", "1"}) : "0");
  s.text += fmt::format(
      "search: {{tensor: [1, {}], pipeline: [{}, 4], schedule: [{}], virtual_stages: [1, 2{}], sharding: [{}], "
      "recompute: "
      "[none, {}], recompute_layers: [null], rank_order: [tp-cp-dp-pp], sequence_parallel: [{}], overlap_tensor: "
      "[false], overlap_gradient_reduce: [{}], overlap_parameter_gather: [{}], overlap_pipeline: [{}], offload: "
      "[none], "
      "offload_activations: [none]}}\n",
      pick({"2", "4"}), pick({"1", "2"}), fmt::join(those, ", "), pick({"", ", 4"}), fmt::join(sharded, ", "),
      pick({"full", "selective"}), pick({"true", "false"}), both_ways ? "true, false" : pick({"true", "false"}),
      pick({"true", "false"}), pick({"true", "false"}));
  return s;
}

inline Space space_of(const SmallSpace& s) { return {parse_open_spec(s.text, "small.yaml"), s.gpus}; }

// All points of a space; where as few layers as needed offload activations, a point for every number of layers.
inline std::vector<Point> points_of(const Space& space) {
  std::vector<Point> points;
  for (const RankLayout& layout : space.layouts()) {
    for (MemoryPlan cell : space.cells(layout)) {
      const bool open = cell.activation_layers == kAsNeeded;
      const std::int64_t first = open ? 1 : cell.activation_layers;
      const std::int64_t last = open ? space.fullest_stage(layout.pipeline, cell) : first;
      for (cell.activation_layers = first; cell.activation_layers <= last; ++cell.activation_layers) {
        for (const Features& features : space.features(layout, cell)) points.push_back({layout, cell, features});
      }
    }
  }
  return points;
}

}  // namespace orrery::test
