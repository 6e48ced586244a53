#pragma once

// Specs and plans for the planner's tests: a small model whose every switch can be set, specs drawn at random (own
// counter-based numbers, the same everywhere), and sums over a plan that are written down a second time here.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/blocks.h"
#include "models/error.h"
#include "models/make_plan.h"
#include "models/plan.h"
#include "models/spec.h"
#include "models/stages.h"

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
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL) {}
  std::uint64_t next() {  // splitmix64 of a counter
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  bool chance(int percent) { return static_cast<int>(next() % 100) < percent; }
  template <typename T>
  T pick(const std::vector<T>& from) {
    return from[next() % from.size()];
  }
  bool flag() { return chance(50); }

 private:
  std::uint64_t state_;
};

inline std::string random_model(Random& r, std::int64_t layers) {
  const bool layernorm = r.flag(), parallel = r.chance(20);
  std::string m = fmt::format(
      "name: small, layers: {}, hidden: 64, heads: 8, kv_heads: {}, head_dim: {}, feed_forward: {}, vocab: {}, "
      "gated: {}, tied_embeddings: {}, positions: {}, norm: {}, bias: {}, dropout: {}, parallel_block: {}",
      layers, r.pick<int>({1, 2, 4, 8}), r.pick<int>({8, 16}), r.pick<int>({128, 256}), r.pick<int>({256, 264}),
      r.flag(), r.flag(), r.pick<std::string>({"rope", "learned", "none"}), layernorm ? "layernorm" : "rmsnorm",
      r.flag(), r.flag() ? 0.1 : 0.0, parallel);
  if (r.chance(30)) m += ", qk_norm: true";
  if (!parallel && r.chance(30)) m += ", post_norms: true";
  if (layers > 1 && r.chance(30)) m += ", sliding_window: {window: 16, every: 2}";
  return m;
}

inline std::string random_software(Random& r) {
  std::string s = "profile: orrery";
  for (const char* key : {"fused_softmax", "fused_activation", "fused_norm", "gradient_accumulation_fusion",
                          "regather_input", "tensor_reduce_overlaps_wgrad", "keep_gradients_whole", "batched_p2p"})
    s += fmt::format(", {}: {}", key, r.flag());
  return s;
}

// A valid spec. Sharding names may be given, to draw from those alone.
inline Spec random_spec(std::uint64_t seed, const std::vector<std::string>& shardings = {
                                                "none", "zero1", "zero2", "zero3", "fsdp", "fsdp-grad-op", "hsdp"}) {
  Random r(seed);
  const int tensor = r.pick<int>({1, 1, 2, 4, 8}), pipeline = r.pick<int>({1, 1, 2, 3, 4});
  const int data = r.pick<int>({1, 2, 3, 4, 8});
  const std::string schedule =
      r.pick<std::string>(pipeline > 1 ? std::vector<std::string>{"naive", "gpipe", "1f1b", "dapple", "interleaved"}
                                       : std::vector<std::string>{"naive", "gpipe", "1f1b", "dapple"});
  const int chunks = schedule == "interleaved" ? r.pick<int>({2, 3}) : 1;
  const int micro_batches = schedule == "interleaved" ? pipeline * r.pick<int>({1, 2, 3}) : r.pick<int>({1, 2, 3, 5});
  const int micro_batch = r.pick<int>({1, 2});
  std::vector<int> cut;
  int layers = 0;
  for (int i = 0; i < pipeline * chunks; ++i) {
    cut.push_back(r.pick<int>({0, 1, 2, 3}));
    if (i == 0 && cut[0] == 0) cut[0] = 1;
    layers += cut.back();
  }
  const std::string sharding = r.pick(shardings);
  const std::string recompute =
      r.pick<std::string>({"none", "none", "selective", "full", "[norm]", "[mlp]", "[activation, norm]",
                           "[attention, mlp]", "[attention, norm, activation]"});
  const std::string precision = r.pick<std::string>({"bf16", "bf16", "fp16", "fp32", "fp8"});
  const bool sequence_parallel = tensor > 1 && r.flag();
  const bool tensor_overlap = (tensor == 1 || sequence_parallel) && r.chance(30);
  std::string s = fmt::format(
      "tensor: {}, pipeline: {}, data: {}, schedule: {}, virtual_stages: {}, micro_batch: {}, global_batch: {}, "
      "stage_layers: [{}], sharding: {}, recompute: {}, precision: {}, gradient_precision: {}, attention: {}, "
      "sequence_parallel: {}, clip: {}, optimizer: {}, bucket_MiB: {}, prefetch_units: {}, units_in_flight: {}, "
      "overlap: {{gradient_reduce: {}, parameter_gather: {}, tensor: {}, pipeline: {}}}",
      tensor, pipeline, data, schedule, chunks, micro_batch, micro_batch * data * micro_batches, fmt::join(cut, ", "),
      sharding, recompute, precision,
      precision == "fp32" || r.flag() ? "fp32"
      : precision == "fp16"           ? "fp16"
                                      : "bf16",
      r.pick<std::string>({"flash", "unfused"}), sequence_parallel, r.pick<int>({0, 1}),
      r.pick<std::string>({"adamw", "sgd"}), r.pick<double>({0, 0.01, 0.05, 25}), r.pick<int>({0, 1, 2}),
      r.pick<int>({1, 2, 3}), r.flag(), r.flag(), tensor_overlap, r.flag());
  if (r.chance(30)) s += ", recompute_layers: 1";
  if (sharding == "hsdp") {
    std::vector<int> divisors;
    for (int d = 1; d <= data; ++d)
      if (data % d == 0) divisors.push_back(d);
    s += fmt::format(", shard_group: {}", r.pick(divisors));
  }
  return spec_of(random_model(r, layers), s, 32, random_software(r));
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

// Weights of one stage on one rank, each of its virtual stages apart.
inline std::vector<std::int64_t> local_parameters(const Spec& spec, std::int64_t stage) {
  const std::vector<std::int64_t> cut = stage_layers(spec);
  const std::int64_t p = spec.strategy.pipeline;
  std::vector<std::int64_t> result;
  std::int64_t layer = 0;
  for (std::size_t k = 0; k < cut.size(); ++k) {
    std::vector<Parameter> all;
    const auto add = [&](const std::vector<Parameter>& more) { all.insert(all.end(), more.begin(), more.end()); };
    if (k == 0) add(embedding_parameters(spec.model, spec.sequence));
    for (std::int64_t i = 0; i < cut[k]; ++i) add(layer_parameters(spec.model, layer++));
    if (k + 1 == cut.size()) {
      add(head_parameters(spec.model));
      // A tied matrix on a stage of its own is a second copy.
      if (spec.model.tied_embeddings && cut.size() > 1)
        all.push_back({"copy", spec.model.vocab, spec.model.hidden, Partition::vocabulary});
    }
    if (static_cast<std::int64_t>(k) % p != stage) continue;
    std::int64_t sum = 0;
    for (const Parameter& one : all) sum += local_elements(spec, one);
    result.push_back(sum);
  }
  return result;
}

// Bytes of the state buffers of a slot.
inline Bytes state_bytes(const Plan& plan, std::uint32_t slot) {
  Bytes sum = 0;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (f.slot != slot || block.role != BlockRole::state) continue;
    for (const Slot& s : block.slots) sum += s.category == Category::buffers ? 0 : s.bytes;  // no gradient norm
  }
  return sum;
}

// Bytes that an op with a collective of this kind and group moves, summed over one slot's tasks.
inline std::int64_t elements_moved(const Plan& plan, std::uint32_t slot, Dimension group, CollectiveKind kind) {
  std::int64_t sum = 0;
  for (TaskId t = plan.slots[slot].begin; t < plan.slots[slot].end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c != nullptr && c->group == group && c->kind == kind) sum += c->bytes / c->width;
  }
  return sum;
}

}  // namespace orrery::test
