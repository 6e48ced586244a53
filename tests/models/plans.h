#pragma once

// Specs and plans for the planner's tests: a small model with every option, specs drawn at random (with a counter-based
// generator, the same everywhere), and sums over a plan that are computed here independently.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "models/layers/blocks.h"
#include "models/load/load_spec.h"
#include "models/partition/layers_of_stages.h"
#include "models/plan/plan.h"
#include "models/planner/make_plan.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "models/spec/spec.h"
#include "tests/random_bits.h"

namespace orrery::test {

inline constexpr const char* kSmall =
    "name: small, layers: 8, hidden: 64, heads: 8, kv_heads: 8, head_dim: 8, feed_forward: 256, vocab: 256";

// model: a built-in name or the inside of a map; strategy: the inside of a map, with one data rank unless it says more.
inline Spec spec_of(const std::string& model, const std::string& strategy, std::int64_t sequence = 32,
                    const std::string& software = "profile: orrery") {
  const std::string all = strategy.find("data:") == std::string::npos ? "data: 1, " + strategy : strategy;
  const std::string map = model.find(':') == std::string::npos ? model : "{" + model + "}";
  return parse_spec(
      fmt::format(
          "model: {}\nsequence: {}\ncluster: {{node: dgx-h100, nodes: 512}}\nsoftware: {{{}}}\nstrategy: {{{}}}\n", map,
          sequence, software, all),
      "test");
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : counter_(random_bits(seed + 1)) {}
  std::uint64_t next() { return random_bits(++counter_); }
  bool chance(int percent) { return static_cast<int>(next() % 100) < percent; }
  template <typename T>
  T pick(const std::vector<T>& from) {
    return from[next() % from.size()];
  }
  bool flag() { return chance(50); }

 private:
  std::uint64_t counter_;
};

// Keys with values drawn one after another: the arguments of one call would be drawn in an order that depends on the
// compiler.
class Keys {
 public:
  template <typename T>
  Keys& add(const char* key, const T& value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", key, value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct RandomFeatures {
  bool tied = true, capped = true, predictions = true;  // whether the model may have them
};

inline std::string random_model(Random& r, std::int64_t layers, const RandomFeatures& may) {
  const bool parallel = r.chance(20);
  Keys m;
  m.add("name", "small").add("layers", layers).add("hidden", 64).add("heads", 8);
  m.add("kv_heads", r.pick<int>({1, 2, 4, 8}));
  m.add("head_dim", r.pick<int>({8, 16}));
  m.add("feed_forward", r.pick<int>({128, 256}));
  m.add("vocab", r.pick<int>({256, 264}));
  m.add("gated", r.flag());
  const bool tied = r.flag() && may.tied;
  const auto positions = r.pick<std::string>({"rope", "learned", "none"});
  const bool predicts = r.chance(30) && may.predictions && !tied && positions != "learned";
  m.add("tied_embeddings", tied);
  m.add("positions", positions);
  m.add("mtp_layers", predicts ? r.pick<int>({1, 2}) : 0);
  m.add("norm", r.flag() ? "layernorm" : "rmsnorm");
  m.add("bias", r.flag());
  m.add("dropout", r.flag() ? 0.1 : 0.0);
  m.add("parallel_block", parallel);
  m.add("qk_norm", r.chance(30));
  m.add("post_norms", !parallel && r.chance(30));
  m.add("scaled_embedding", r.chance(30));
  m.add("attention_softcap", r.chance(30) ? 50 : 0);
  m.add("logit_softcap", r.chance(30) && may.capped ? 30 : 0);
  if (m.text().find("gated: true") != std::string::npos) m.add("activation_clamp", r.chance(30) ? 0.5 : 0.0);
  if (layers > 1 && r.chance(30)) m.add("sliding_window", "{window: 16, every: 2}");
  return m.text();
}

inline std::string random_software(Random& r) {
  std::string s = "profile: orrery";
  for (const char* key : {"fused_softmax", "fused_activation", "fused_norm", "fused_clip", "dense_embedding_gradient",
                          "gradient_accumulation_fusion", "regather_input", "tensor_reduce_overlaps_wgrad",
                          "own_rows_first", "keep_gradients_whole", "batched_p2p"})
    s += fmt::format(", {}: {}", key, r.flag());
  s += ", gradient_average: " + r.pick<std::string>({"none", "scale", "copy"});
  s += ", unit_average: " + r.pick<std::string>({"none", "scale", "scale_or_premultiply"});
  s += ", kept_units: " + r.pick<std::string>({"none", "last", "ends"});
  s += ", unit_copies: " + r.pick<std::string>({"none", "parameters", "gradients"});
  s += fmt::format(", sequence_copies: {}", r.flag());
  return s;
}

// Stages, schedule and batches; the first virtual stage has a layer.
struct RandomPipeline {
  int pipeline, chunks, micro_batches, layers = 0;
  std::string schedule;
  std::vector<int> cut;

  const ScheduleRow& row() const { return find_schedule(schedule); }
  bool both_ways() const { return row().placement == ChunkPlacement::both_ways; }
  bool shares_vocabulary() const { return pipeline > 1 && row().vocabulary_barriers > 0; }
  bool may_weave() const { return schedule == "interleaved" || (schedule == "1f1b" && pipeline == 1); }
  bool weaves() const { return schedule.starts_with("dualpipe"); }
};

// plain: one copy of the model, its vocabulary at the ends of the pipeline, no further predictions, and no gradients by
// unit where backward runs in two parts.
enum class Drawn { everything, plain };

// Any schedule with one update per step and without activation eviction (BPipe).
inline RandomPipeline random_pipeline(Random& r, Drawn drawn) {
  RandomPipeline p;
  p.pipeline = r.pick<int>({1, 1, 2, 3, 4});
  std::vector<std::string> schedules;
  for (const ScheduleRow& row : schedule_rows()) {
    const bool both_ways = row.placement == ChunkPlacement::both_ways;
    if (drawn == Drawn::plain && (both_ways || row.vocabulary_barriers > 0)) continue;
    if (row.updates != Updates::flush || row.moves != nullptr || (row.chunks != 1 && p.pipeline == 1)) continue;
    if (!both_ways || p.pipeline % row.copies == 0) schedules.emplace_back(row.name);
  }
  p.schedule = r.pick(schedules);
  const std::int64_t chunks = p.row().chunks;
  p.chunks = chunks == 0 ? r.pick<int>({2, 3}) : static_cast<int>(chunks);
  p.micro_batches = chunks == 0 ? p.pipeline * r.pick<int>({1, 2, 3}) : r.pick<int>({1, 2, 3, 5});
  if (p.weaves()) p.micro_batches += 2 * p.pipeline;
  if (p.both_ways()) p.micro_batches *= static_cast<int>(p.row().copies);
  for (int i = 0; i < p.pipeline * p.chunks; ++i) {
    p.cut.push_back(i == 0 ? r.pick<int>({1, 1, 2, 3}) : r.pick<int>({0, 1, 2, 3}));
    p.layers += p.cut.back();
  }
  return p;
}

// The given shardings that the schedule can be combined with.
inline std::vector<std::string> shardings_of(const RandomPipeline& p, const std::vector<std::string>& given,
                                             Drawn drawn) {
  if (!p.schedule.starts_with("chimera") && !(drawn == Drawn::plain && p.row().splits)) return given;
  std::vector<std::string> whole;  // shardings that leave gradients whole until the last micro-batch
  for (const char* sharding : {"none", "zero1"}) {
    if (std::find(given.begin(), given.end(), sharding) != given.end()) whole.emplace_back(sharding);
  }
  return whole;
}

// Returns whether gradients of 16 bits are added to fp32 sums.
inline bool add_precision(Random& r, Keys& s) {
  const auto precision = r.pick<std::string>({"bf16", "bf16", "fp16", "fp32", "fp8"});
  const bool wide = r.flag() || precision == "fp32";
  s.add("precision", precision);
  s.add("gradient_precision", wide ? "fp32" : precision == "fp16" ? "fp16" : "bf16");
  return wide && precision != "fp32";
}

inline void add_overlap(Random& r, Keys& s, bool tensor_may, bool reduce_may, bool weave_may, bool units) {
  Keys o;
  o.add("gradient_reduce", r.flag() && reduce_may);
  const auto gather = r.pick<std::string>({"true", "false", "update"});
  o.add("parameter_gather", gather == "update" && units ? "false" : gather);
  o.add("tensor", tensor_may && r.chance(30));
  o.add("pipeline", r.flag());
  o.add("micro_batches", r.chance(30) && weave_may);
  s.add("overlap", "{" + o.text() + "}");
}

inline std::string add_sharding(Random& r, Keys& s, int data, const std::vector<std::string>& shardings) {
  const std::string sharding = r.pick(shardings);
  s.add("sharding", sharding);
  s.add("bucket_MiB", r.pick<double>({0, 0.01, 0.05, 25}));
  s.add("prefetch_units", r.pick<int>({0, 1, 2}));
  s.add("units_in_flight", r.pick<int>({1, 2, 3}));
  std::vector<int> divisors;
  for (int d = 1; d <= data; ++d)
    if (data % d == 0) divisors.push_back(d);
  if (sharding == "hsdp") s.add("shard_group", r.pick(divisors));
  return sharding;
}

inline const std::vector<std::string> kAllShardings = {"none", "zero1",        "zero2", "zero3",
                                                       "fsdp", "fsdp-grad-op", "hsdp"};

// A valid spec. Sharding names may be given, to draw from those alone.
inline Spec random_spec(std::uint64_t seed, const std::vector<std::string>& shardings = kAllShardings,
                        Drawn drawn = Drawn::everything) {
  Random r(seed);
  const RandomPipeline p = random_pipeline(r, drawn);
  const int tensor = r.pick<int>({1, 1, 2, 4, 8}), data = r.pick<int>({1, 2, 3, 4, 8});
  const int micro_batch = r.pick<int>({1, 2});
  const bool sequence_parallel = tensor > 1 && r.flag();
  Keys s;
  s.add("tensor", tensor).add("pipeline", p.pipeline).add("data", data);
  s.add("schedule", p.schedule).add("virtual_stages", p.chunks);
  s.add("micro_batch", micro_batch).add("global_batch", micro_batch * data * p.micro_batches);
  s.add("stage_layers", fmt::format("[{}]", fmt::join(p.cut, ", ")));
  s.add("sequence_parallel", sequence_parallel);
  s.add("recompute", r.pick<std::string>({"none", "none", "selective", "full", "[norm]", "[mlp]", "[activation, norm]",
                                          "[attention, mlp]", "[attention, norm, activation]"}));
  if (r.chance(30)) s.add("recompute_layers", 1);
  s.add("attention", r.pick<std::string>({"flash", "unfused"}));
  s.add("clip", r.pick<int>({0, 1}));
  s.add("optimizer", r.pick<std::string>({"adamw", "sgd"}));
  const bool widens = add_precision(r, s);
  const ShardingRow& row = row_of(find_sharding(add_sharding(r, s, data, shardings_of(p, shardings, drawn))));
  add_overlap(r, s, tensor == 1 || sequence_parallel, !p.both_ways(), p.may_weave() && !row.shards_parameters,
              row.shards_parameters);
  const bool ends_interleave = p.pipeline > 1 && p.row().placement != ChunkPlacement::in_turn,
             own = !p.shares_vocabulary();
  const RandomFeatures may = {
      .tied = !p.weaves() || !row.shards_parameters,
      .capped = own,
      .predictions = own && drawn == Drawn::everything && !(row.shards_gradients && ends_interleave)};
  const std::string model = random_model(r, p.layers, may), software = random_software(r);
  if (widens && !row.shards_gradients && r.chance(20)) s.add("keep_16bit_gradients", "true");
  return spec_of(model, s.text(), 32, software);
}

// Elements of a weight that one tensor rank holds; key/value heads are whole where there are fewer of them than ranks.
inline std::int64_t local_elements(const Spec& spec, const Parameter& p) {
  const std::int64_t t = spec.strategy.tensor;
  if (p.partition == Partition::replicated) return p.out * p.in;
  if (p.partition == Partition::vocabulary) return BlockContext(spec, row_of(Sharding::none)).padded_vocab / t * p.in;
  const Model& m = spec.model;
  if (p.name.rfind("attention.qkv", 0) == 0)
    return (m.heads / t + 2 * std::max<std::int64_t>(1, m.kv_heads / t)) * m.head_dim * p.in;
  return p.out * p.in / t;
}

inline Schedule placement_of(const Spec& spec) {
  const Strategy& s = spec.strategy;
  return place_chunks(find_schedule(s.schedule), {s.pipeline, s.micro_batches(), s.virtual_stages, {}});
}

// Parameters of further predictions: for each a norm of the tokens, of the hidden states and of the result, a
// projection, and a layer.
inline std::vector<Parameter> all_predictions(const Model& m) {
  std::vector<Parameter> all;
  for (std::int64_t d = 0; d < m.mtp_layers; ++d) {
    const std::vector<Parameter> layer = layer_parameters(m, m.layers - 1);
    all.insert(all.end(), layer.begin(), layer.end());
    const std::int64_t norms = m.norm == Norm::layernorm ? 6 : 3;
    all.push_back({"prediction", norms + 2 * m.hidden, m.hidden});
  }
  return all;
}

// Parameters of a virtual stage. A vocabulary that all stages share is not included.
inline std::vector<Parameter> virtual_stage_parameters(const Spec& spec, std::size_t k, const Schedule& placement) {
  const std::vector<std::int64_t> cut = stage_layers(spec);
  std::vector<Parameter> all;
  const auto add = [&](const std::vector<Parameter>& more) { all.insert(all.end(), more.begin(), more.end()); };
  std::int64_t layer = std::accumulate(cut.begin(), cut.begin() + static_cast<std::ptrdiff_t>(k), std::int64_t{0});
  if (k == 0) add(embedding_parameters(spec.model, spec.sequence));
  for (std::int64_t i = 0; i < cut[k]; ++i) add(layer_parameters(spec.model, layer++));
  if (k + 1 == cut.size()) {
    add(all_predictions(spec.model));
    add(head_parameters(spec.model));
    // A tied matrix on a stage of its own is a second copy; so is the table of further predictions' lookups.
    if ((spec.model.tied_embeddings || spec.model.mtp_layers > 0) && !ends_meet(placement))
      all.push_back({"copy", spec.model.vocab, spec.model.hidden, Partition::vocabulary});
  }
  if (placement.spreads_vocabulary())
    std::erase_if(all, [](const Parameter& p) { return p.partition == Partition::vocabulary; });
  return all;
}

// Weights of one stage on one rank, each of its chunks apart.
inline std::vector<std::int64_t> local_parameters(const Spec& spec, std::int64_t stage) {
  const Schedule placement = placement_of(spec);
  const auto count = static_cast<std::size_t>(placement.virtual_stages());
  const std::int64_t rows = BlockContext(spec, row_of(Sharding::none)).padded_vocab / spec.strategy.tensor;
  std::vector<std::int64_t> result;
  const std::int64_t part = rows / spec.strategy.pipeline * spec.model.hidden;
  if (placement.spreads_vocabulary()) result.push_back(part);
  for (std::size_t place = 0; place < placement.stage_of.size(); ++place) {
    if (placement.stage_of[place] != stage) continue;
    std::int64_t sum = 0;
    for (const Parameter& one : virtual_stage_parameters(spec, place % count, placement))
      sum += local_elements(spec, one);
    result.push_back(sum);
  }
  if (placement.spreads_vocabulary()) result.push_back(spec.model.tied_embeddings ? 0 : part);
  return result;
}

// Bytes of the state buffers of a slot, without copies of states (buckets, fp8 weights).
inline Bytes state_bytes(const Plan& plan, std::uint32_t slot) {
  Bytes sum = 0;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (f.slot != slot || block.role != BlockRole::state) continue;
    for (const BlockBuffer& s : block.buffers) sum += s.category == Category::buffers ? 0 : s.bytes;
  }
  return sum;
}

// Bytes that an op with a collective of this kind and group moves, summed over one slot's tasks.
inline std::int64_t elements_moved(const Plan& plan, std::uint32_t slot, Dimension group, CollectiveKind kind) {
  std::int64_t sum = 0;
  for (TaskId t = plan.classes[slot].begin; t < plan.classes[slot].end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c != nullptr && c->group == group && c->kind == kind) sum += c->bytes / c->width;
  }
  return sum;
}

}  // namespace orrery::test
