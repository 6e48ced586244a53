// Bytes that leave a GPU in a step, by closed forms of a plain model.
#include <cmath>

#include <fmt/format.h>

#include "tests/metamorphic/relations.h"

namespace orrery::test {
namespace {

constexpr double kHidden = 2048, kWide = 8192, kVocab = 32000, kSequence = 4096, kBytes = 2;
constexpr int kLayers = 8, kMicroBatches = 4;

struct Layout {
  int tensor = 1, pipeline = 1, context = 1, data = 1, layers = kLayers;
};

Json plain(const Layout& l, const Json& more) {
  const int gpus = l.tensor * l.pipeline * l.context * l.data;
  Json s = {
      {"model", {{"layers", l.layers}, {"hidden", kHidden}, {"heads", 16}, {"feed_forward", kWide}, {"vocab", kVocab}}},
      {"sequence", kSequence},
      {"cluster", {{"node", "dgx-h100"}, {"nodes", (gpus + 7) / 8}}},
      {"gpus", gpus},
      {"software", "orrery"},
      {"strategy",
       {{"tensor", l.tensor},
        {"pipeline", l.pipeline},
        {"context", l.context},
        {"data", l.data},
        {"global_batch", l.data * kMicroBatches}}}};
  for (const char* key : {"hidden", "feed_forward", "vocab"}) s["model"][key] = s["model"][key].get<std::int64_t>();
  s["sequence"] = static_cast<std::int64_t>(kSequence);
  s["strategy"].update(more);
  return s;
}

void hold(Checks& checks, std::string_view what, const Json& spec, std::string_view group, double want) {
  const Run* run = checks.simulate(spec);
  if (run == nullptr) return checks.violated("closed traffic", checks.refusal, spec);
  double got = 0;
  for (const CommunicationRow& row : run->report.communication) got += row.group == group ? row.bytes_per_gpu : 0;
  if (std::abs(got - want) > .002 * want)
    checks.violated("closed traffic", fmt::format("{}: {:.6g} bytes, by its form {:.6g}", what, got, want), spec);
}

void data_traffic(Checks& checks) {
  const double parameters =
      kLayers * (4 * kHidden * kHidden + 3 * kHidden * kWide + 2 * kHidden) + 2 * kVocab * kHidden + kHidden;
  const std::pair<std::string_view, double> each[] = {{"none", 8},
                                                      {"zero1", 6},
                                                      {"zero2", 4 * kMicroBatches + 2},
                                                      {"zero3", 8 * kMicroBatches},
                                                      {"fsdp", 8 * kMicroBatches},
                                                      {"fsdp-grad-op", 6 * kMicroBatches}};
  for (const int d : {2, 8, 16}) {
    for (const auto& [sharding, bytes] : each)
      hold(checks, sharding, plain({.data = d}, {{"sharding", sharding}}), "data", bytes * parameters * (d - 1) / d);
  }
}

// Reductions with every micro-batch, whole gradients beside shards, units, adapters, and ZeRO++.
void training_traffic(Checks& checks) {
  const double layer = 4 * kHidden * kHidden + 3 * kHidden * kWide, rank = 16;
  const double parameters = kLayers * (layer + 2 * kHidden) + 2 * kVocab * kHidden + kHidden;
  const double adapters =
      kLayers * rank * (kHidden + 3 * kHidden + 2 * kHidden + kHidden + 2 * kWide + kWide + kHidden);
  for (const int d : {2, 8}) {
    const double part = (d - 1.0) / d;
    const auto moved = [&](std::string_view what, const Json& more, double each) {
      hold(checks, what, plain({.data = d}, more), "data", each * parameters * part);
    };
    moved("no no_sync", {{"sharding", "none"}, {"no_sync", false}}, 8 * kMicroBatches);
    moved("no no_sync", {{"sharding", "zero1"}, {"no_sync", false}}, 8 * kMicroBatches + 2);
    moved("no_sync", {{"sharding", "zero2"}, {"no_sync", true}}, 4 + 2);
    moved("no_sync", {{"sharding", "zero3"}, {"no_sync", true}}, 4 * kMicroBatches + 4);
    for (const Json& units : {Json("model"), Json(2), Json::parse("[[0, 7], [1, 2, 3]]")})
      moved("units", {{"sharding", "fsdp"}, {"units", units}}, 8 * kMicroBatches);
    // Weights come in 8 bits, in forward and in backward, with a scale of 4 bytes for each 4,096 of them.
    moved("zero++", {{"sharding", "zero3"}, {"zero_quantize", {{"weights", "int8"}}}},
          (4 + 2 * (1 + 4.0 / 4096)) * kMicroBatches);
    // Gradients are exchanged in 4 bits, with a scale for as many as the model is wide; the ranks are on one node.
    hold(checks, "zero++ gradients",
         plain({.data = d}, {{"sharding", "zero3"}, {"zero_quantize", {{"gradients", "int4"}}}}), "data-in-node",
         (.5 + 4 / kHidden) * kMicroBatches * parameters * part);
    Json lora = plain({.data = d}, {{"sharding", "none"}});
    lora["model"]["lora"] = {{"rank", rank}};
    lora["model"]["lora"]["rank"] = static_cast<std::int64_t>(rank);
    hold(checks, "adapters", lora, "data", 8 * adapters * part);
  }
}

void tensor_traffic(Checks& checks) {
  const double hidden = kSequence * kHidden * kBytes;
  for (const int t : {2, 4, 8}) {
    const double moved = kMicroBatches * hidden * (t - 1) / t;
    hold(checks, "tensor, sequence parallel", plain({.tensor = t}, Json::object()), "tensor",
         moved * (10 * kLayers + 5));
    hold(checks, "tensor", plain({.tensor = t}, {{"sequence_parallel", false}}), "tensor", moved * (8 * kLayers + 4));
  }
}

void pipeline_traffic(Checks& checks) {
  const double hidden = kSequence * kHidden * kBytes;
  for (const int p : {2, 4, 8}) {
    for (const int v : {1, 2}) {
      for (const int t : {1, 2}) {
        const Json more = {{"schedule", v > 1 ? "interleaved" : "1f1b"}, {"virtual_stages", v}, {"global_batch", 8}};
        hold(checks, "pipeline", plain({.tensor = t, .pipeline = p, .layers = 16}, more), "pipeline",
             2 * 8 * hidden / t * (p * v - 1) / p);
      }
    }
  }
}

void context_traffic(Checks& checks) {
  for (const int c : {2, 4, 8}) {
    const double both = kSequence / c * 2 * kHidden * kBytes, all = kMicroBatches * kLayers * both;
    hold(checks, "ring", plain({.context = c}, {{"context_kind", "ring"}}), "context", all * (3 * (c - 1) + 1));
    hold(checks, "all-gather", plain({.context = c}, {{"context_kind", "allgather"}}), "context", all * 3 * (c - 1));
  }
}

void expert_traffic(Checks& checks) {
  for (const int e : {2, 4, 8}) {
    for (const int k : {1, 2}) {
      Json spec = plain({.data = 8}, {{"expert", e}});
      spec["model"]["moe"] = {{"experts", 8}, {"top_k", k}, {"feed_forward", 2048}};
      hold(checks, "experts", spec, "expert",
           kMicroBatches * kLayers * 4 * kSequence * k * kHidden * kBytes * (e - 1) / e);
    }
  }
}

}  // namespace

void traffic(Checks& checks) {
  data_traffic(checks);
  training_traffic(checks);
  tensor_traffic(checks);
  pipeline_traffic(checks);
  context_traffic(checks);
  expert_traffic(checks);
}

}  // namespace orrery::test
