// The table of limits, held to the planner: pairs that it does not list plan, pairs that it lists are refused by their
// row, and rows that are stale or missing are found.
#include "models/load/combinations.h"

#include <map>
#include <optional>
#include <set>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/cluster_features.h"
#include "models/load/load_spec.h"
#include "models/load/open_spec.h"
#include "models/load/second_features.h"
#include "models/planner/make_plan.h"

namespace orrery::feature {
namespace {

using Values = std::map<std::string, std::string>;  // values by key

constexpr const char* kBase =
    "model: {name: small, layers: 4, hidden: 64, heads: 8, kv_heads: 8, head_dim: 8, feed_forward: 256, vocab: 256}\n"
    "sequence: 64\n"
    "cluster: {node: dgx-h100, nodes: 64}\n"
    "software: {profile: orrery}\n"
    "strategy: {data: 1, micro_batch: 4, global_batch: 32, clip: 0, overlap: {gradient_reduce: false}}\n";

constexpr const char* kMoe = "{experts: 4, top_k: 2, feed_forward: 64}";
constexpr const char* kWideRouter = "{experts: 4, top_k: 2, feed_forward: 64, router_fp32: true}";
constexpr const char* kShared = "{experts: 4, top_k: 2, feed_forward: 64, shared_feed_forward: 64, shared_gate: true}";
constexpr const char* kHashes = "{experts: 4, top_k: 2, feed_forward: 64, hash_layers: 2}";
constexpr const char* kCompressing =
    "{q_lora_rank: 16, rope_head_dim: 4, heavy_rate: 16, output_groups: 8, output_rank: 8}";
constexpr const char* kTeacher = "{layers: 4, hidden: 64, heads: 8, feed_forward: 128, vocab: 256}";
constexpr const char* kTeacherOfExperts =
    "{layers: 4, hidden: 64, heads: 8, feed_forward: 128, vocab: 256, moe: {experts: 4, top_k: 2, feed_forward: 64}}";
constexpr const char* kText = "{batch: 32, input: 64, output: 8}";
constexpr const char* kMla =
    "{q_lora_rank: 16, kv_lora_rank: 16, qk_nope_head_dim: 8, qk_rope_head_dim: 8, v_head_dim: 8}";

Values pipeline(const std::string& schedule, Values more = {}) {
  more.try_emplace("strategy.pipeline", "2");
  more["strategy.schedule"] = schedule;
  return more;
}
Values sharded(const std::string& sharding, Values more = {}) {
  more["strategy.data"] = "2";
  more["strategy.sharding"] = sharding;
  return more;
}
Values servers(const std::string& options) {
  return sharded("parameter-server", {{"strategy.parameter_server", options}});
}
Values replicas(const std::string& schedule = "dapple") {
  return pipeline(schedule, {{"strategy.stage_replicas", "[2, 1]"}});
}
Values tensor(const std::string& sequence_parallel, Values more = {}) {
  more["strategy.tensor"] = "2";
  more["strategy.sequence_parallel"] = sequence_parallel;
  return more;
}

Values experts_over(const std::string& degree, const char* moe) {
  return {{"strategy." + degree, "2"}, {"model.moe", moe}, {"strategy.data", "2"}, {"strategy.context", "2"}};
}

// Ways to ask for a feature of the base; none: the base has it.
const std::vector<Values>& ways_of(const Feature& f) {
  const std::string grid = "strategy.tensor_kind";
  static const std::map<const Feature*, std::vector<Values>> ways = {
      {&kExperts, {{{"model.moe", kMoe}}, {{"model.moe", kShared}}}},
      {&kGatedExperts, {{{"model.moe", kShared}}}},
      {&kBias, {{{"model.bias", "true"}}}},
      {&kParallelBlock, {{{"model.parallel_block", "true"}}}},
      {&kSinks, {{{"model.attention_sinks", "true"}}}},
      {&kNormOfAllHeads, {{{"model.qk_norm_all", "true"}}}},
      {&kFp32Router, {{{"model.moe", kWideRouter}}}},
      {&kClampApart, {{{"model.gated", "true"}, {"model.activation_clamp", "7"}, {"software.fused_clamp", "false"}}}},
      {&kBareNorms, {{{"model.norm_weight", "false"}}}},
      {&kEmbeddingNorm, {{{"model.embedding_norm", "true"}}}},
      {&kPostNorms, {{{"model.post_norms", "true"}}}},
      {&kLatent, {{{"model.mla", kMla}}}},
      {&kIndexer, {{{"model.mla", kMla}, {"model.indexer", "{heads: 2, head_dim: 8, top_k: 16}"}}}},
      {&kTrainedIndex, {{{"model.mla", kMla}, {"model.indexer", "{heads: 2, head_dim: 8, top_k: 16}"}}}},
      {&kCompressed,
       {{{"model.kv_heads", "1"},
         {"model.layer_kinds", "[heavily_compressed]"},
         {"model.compressed_attention", kCompressing}},
        {{"model.kv_heads", "1"},
         {"model.layer_kinds", "[windowed, compressed_sparse]"},
         {"model.indexer", "{heads: 2, head_dim: 8, top_k: 16}"},
         {"model.compressed_attention", kCompressing}}}},
      {&kOtherAttention,
       {{{"model.qk_norm_all", "true"}},
        {{"model.bias", "true"}},
        {{"model.positions", "none"}},
        {{"model.mla", kMla}}}},
      {&kStreams, {{{"model.hyper_connections", "2"}}, {{"model.hyper_connections", "2"}, {"model.mtp_layers", "1"}}}},
      {&kHashed, {{{"model.moe", kHashes}}}},
      {&kAttentionGate, {{{"model.attention_gate", "true"}}}},
      {&kRecurrence,
       {{{"model.layer_kinds", "[recurrence, attention]"},
         {"model.recurrence", "{heads: 8, groups: 8, key_dim: 8, value_dim: 8}"}}}},
      {&kNotRope, {{{"model.positions", "none"}}}},
      {&kLearned, {{{"model.positions", "learned"}}}},
      {&kAlibi, {{{"model.positions", "alibi"}}}},
      {&kPredictions, {{{"model.mtp_layers", "1"}}}},
      {&kImages,
       {{{"model.vision", "{layers: 2, hidden: 64, heads: 8, feed_forward: 64, merge: 2}"},
         {"sequence.images", "{patches: 64}"}}}},
      {&kTied, {{{"model.tied_embeddings", "true"}}}},
      {&kCappedLogits, {{{"model.logit_softcap", "30"}}}},
      {&kCaps, {{{"model.attention_softcap", "50"}}}},
      {&kTensor, {tensor("true"), tensor("false")}},
      {&kSequence, {tensor("true"), {{"strategy.tensor", "4"}, {"strategy.sequence_parallel", "true"}}}},
      {&kNoSequence, {tensor("false")}},
      {&kGrid,
       {{{"strategy.tensor", "4"}, {grid, "2d"}, {"strategy.sequence_parallel", "false"}},
        {{"strategy.tensor", "4"}, {grid, "2d"}, {"strategy.sequence_parallel", "true"}}}},
      {&kGridKind, {{{"strategy.tensor", "4"}, {grid, "2d"}, {"strategy.sequence_parallel", "false"}}}},
      {&kDepth,
       {{{"strategy.tensor", "8"},
         {grid, "2.5d"},
         {"strategy.tensor_depth", "2"},
         {"strategy.sequence_parallel", "false"}},
        {{"strategy.tensor_depth", "2"}}}},
      {&kTensorOverlap, {tensor("true", {{"strategy.overlap.tensor", "true"}}), {{"strategy.overlap.tensor", "true"}}}},
      {&kPieces, {tensor("true", {{"strategy.overlap.tensor", "true"}})}},
      {&kOwnRows, {tensor("true", {{"software.own_rows_first", "true"}})}},
      {&kUnfused, {{{"strategy.attention", "unfused"}}}},
      {&kContext,
       {{{"strategy.context", "2"}, {"strategy.context_kind", "ulysses"}, {"strategy.micro_batch", "1"}},
        {{"strategy.context", "2"}}}},
      {&kRing, {{{"strategy.context", "2"}}}},
      {&kFewHeads,
       {{{"model.kv_heads", "1"},
         {"strategy.context", "2"},
         {"strategy.context_kind", "ulysses"},
         {"strategy.micro_batch", "1"}}}},
      {&kPipeline, {pipeline("1f1b")}},
      {&kVocabulary, {pipeline("vocab-1f1b")}},
      {&kCopies, {pipeline("dualpipe"), pipeline("chimera")}},
      {&kCopiesApart, {pipeline("chimera-4", {{"strategy.pipeline", "4"}})}},
      {&kManyCopies, {pipeline("chimera-4", {{"strategy.pipeline", "4"}})}},
      {&kAsynchronous, {{{"strategy.schedule", "pipedream"}}, pipeline("pipedream")}},
      {&kAsynchronousStages, {pipeline("pipedream")}},
      {&kBalanced, {pipeline("bpipe", {{"strategy.pipeline", "4"}})}},
      {&kSharedTable, {pipeline("vocab-1f1b")}},
      {&kEvicted, {pipeline("bpipe", {{"strategy.pipeline", "4"}})}},
      {&kWoven,
       {{{"strategy.overlap.micro_batches", "true"}}, pipeline("gpipe", {{"strategy.overlap.micro_batches", "true"}})}},
      {&kNotWoven, {pipeline("gpipe")}},
      {&kWovenEnds, {pipeline("dualpipev", {{"model.tied_embeddings", "true"}})}},
      {&kWovenChunk, {{{"strategy.overlap.micro_batches", "true"}}}},
      {&kReplicas,
       {replicas(),
        replicas("pipedream"),
        replicas("chimera"),
        replicas("vocab-1f1b"),
        replicas("1f1b"),
        pipeline("bpipe", {{"strategy.pipeline", "4"}, {"strategy.stage_replicas", "[2, 1, 1, 1]"}}),
        {{"strategy.pipeline", "1"}, {"strategy.stage_replicas", "[2]"}}}},
      {&kUnlikeEnds,
       {{{"model.tied_embeddings", "true"}, {"strategy.pipeline", "2"}, {"strategy.stage_replicas", "[2, 1]"}}}},
      {&kLater,
       {{{"software.post_update_validation", "true"}, {"strategy.pipeline", "2"}},
        pipeline("dualpipe", {{"software.post_update_validation", "true"}}),
        pipeline("1f1b", {{"software.post_update_validation", "true"}, {"strategy.stage_replicas", "[2, 1]"}})}},
      {&kValidates, {{{"software.post_update_validation", "true"}}}},
      {&kTurns,
       {pipeline("interleaved", {{"strategy.virtual_stages", "2"}, {"strategy.interleave_group", "2"}}),
        {{"strategy.interleave_group", "4"}}}},
      {&kWarmUp,
       {pipeline("interleaved", {{"strategy.virtual_stages", "2"}, {"strategy.extra_warm_up", "1"}}),
        {{"strategy.extra_warm_up", "1"}}}},
      {&kVerticalSync,
       {pipeline("pipedream", {{"strategy.vertical_sync", "true"}}), {{"strategy.vertical_sync", "true"}}}},
      {&kShards, {sharded("zero1")}},
      {&kWholeStates, {{{"strategy.data", "2"}}}},
      {&kUnitGradients, {sharded("fsdp")}},
      {&kUnitEnds, {pipeline("zb-v", sharded("fsdp"))}},
      {&kGathered, {sharded("fsdp"), sharded("zero3")}},
      {&kWideShards, {sharded("fsdp")}},
      {&kHybrid, {sharded("hsdp", {{"strategy.data", "2"}, {"strategy.shard_group", "2"}})}},
      {&kShardGroup,
       {sharded("hsdp", {{"strategy.data", "2"}, {"strategy.shard_group", "2"}}), {{"strategy.shard_group", "2"}}}},
      {&kMaster, {sharded("data-parallel")}},
      {&kNodes, {{{"cluster.gpus_per_node", "1"}, {"strategy.data", "2"}}}},
      {&kServers, {servers("{servers: 2}")}},
      {&kServerKeys, {servers("{servers: 2}"), {{"strategy.parameter_server", "{servers: 2}"}}}},
      {&kApart, {sharded("data-parallel"), servers("{servers: 2}")}},
      {&kOwnPace,
       {servers("{servers: 2, mode: async}"), servers("{servers: 2, mode: async, replicas: 2}"),
        servers("{servers: 2, mode: async, snapshot_every: 4}")}},
      {&kChains,
       {servers("{servers: 2, replicas: 2}"), servers("{servers: 2, mode: async, replicas: 2}"),
        servers("{servers: 2, snapshot_every: 4, replicas: 2}")}},
      {&kSnapshots,
       {servers("{servers: 2, snapshot_every: 4}"), servers("{servers: 2, mode: async, snapshot_every: 4}"),
        servers("{servers: 2, snapshot_every: 4, replicas: 2}")}},
      {&kStaleness,
       {servers("{servers: 2, mode: ssp, staleness: 2}"), servers("{servers: 2, mode: sync, staleness: 2}")}},
      {&kNotBounded, {servers("{servers: 2}"), servers("{servers: 2, mode: sync, staleness: 2}")}},
      {&kLateGather, {{{"strategy.overlap.parameter_gather", "false"}}}},
      {&kGatherInUpdate, {{{"strategy.overlap.parameter_gather", "update"}}}},
      {&kEarlyReduce, {{{"strategy.overlap.gradient_reduce", "true"}}}},
      {&kFusedBuffers, {{{"strategy.fused_buffers", "true"}}}},
      {&kCopiedGradients, {{{"software.gradient_average", "copy"}, {"strategy.data", "2"}}}},
      {&kClip, {{{"strategy.clip", "1"}}}},
      {&kEightBit, {{{"strategy.precision", "fp8"}}}},
      {&kHalf, {{{"strategy.precision", "fp16"}}}},
      {&kCheckpoints, {{{"strategy.checkpoint", "{every: 100}"}, {"cluster.nvme", "{write_GBps: 10}"}}}},
      {&kUnexecuted, {{{"strategy.precision", "fp8"}}}},
      {&kOtherGradients, {{{"strategy.gradient_precision", "fp16"}}}},
      {&kNarrowStates, {{{"strategy.optimizer.moments", "bf16"}}}},
      {&kLossMetrics, {{{"software.loss_metrics", "1"}}}},
      {&kLossInPlace, {{{"software.fused_loss_on", "logits"}}}},
      {&kRecomputedExperts,
       {{{"strategy.recompute", "[moe]"}, {"model.moe", kMoe}}, {{"strategy.recompute", "[moe]"}}}},
      {&kRecomputedLatent,
       {{{"strategy.recompute", "[mla_up_proj]"}, {"model.mla", kMla}}, {{"strategy.recompute", "[mla_up_proj]"}}}},
      {&kPartitioned,
       {tensor("false", {{"strategy.partition_activations", "true"}, {"strategy.recompute", "full"}}),
        {{"strategy.partition_activations", "true"}},
        {{"strategy.partition_activations", "true"}, {"strategy.recompute", "full"}}}},
      {&kContiguous,
       {{{"strategy.contiguous_activations", "true"}, {"strategy.recompute", "full"}},
        {{"strategy.contiguous_activations", "true"}}}},
      {&kExpertOverlap,
       {{{"strategy.overlap.expert", "true"}, {"model.moe", kShared}}, {{"strategy.overlap.expert", "true"}}}},
      {&kExpertRanks,
       {experts_over("expert", kMoe),
        experts_over("expert", kShared),
        experts_over("expert", kHashes),
        experts_over("expert", kWideRouter),
        {{"strategy.expert", "2"}}}},
      {&kExpertTensor,
       {experts_over("expert_tensor", kMoe),
        experts_over("expert_tensor", kShared),
        experts_over("expert_tensor", kHashes),
        experts_over("expert_tensor", kWideRouter),
        {{"strategy.expert_tensor", "2"}}}},
      {&kOffload, {{{"strategy.offload.activations", "cpu"}}, {{"strategy.offload.optimizer.device", "cpu"}}}},
      {&kTiling, {{{"strategy.offload.tiling", "2"}}}},
      {&kHostUpdate,
       {{{"strategy.offload.optimizer.device", "cpu"}},
        sharded("zero1", {{"strategy.offload.optimizer.device", "cpu"}})}},
      {&kHostWeights,
       {sharded("zero3", {{"strategy.offload.parameters", "cpu"}, {"strategy.offload.optimizer.device", "cpu"}}),
        sharded("zero1", {{"strategy.offload.parameters", "cpu"}, {"strategy.offload.optimizer.device", "cpu"}}),
        {{"strategy.offload.parameters", "cpu"}}}},
      {&kHostGradients,
       {{{"strategy.offload.gradients", "cpu"}, {"strategy.offload.optimizer.device", "cpu"}},
        {{"strategy.offload.gradients", "cpu"}}}},
      {&kDiskWeights,
       {sharded("zero3", {{"strategy.offload.parameters", "nvme"}, {"strategy.offload.optimizer.device", "cpu"}})}},
      {&kDiskStates, {{{"strategy.offload.optimizer.device", "nvme"}}}},
      {&kDelayed,
       {{{"strategy.offload.optimizer.device", "cpu"}, {"strategy.offload.optimizer.delayed_update", "true"}},
        {{"strategy.offload.optimizer.delayed_update", "true"}}}},
      {&kHostActivations, {{{"strategy.offload.activations", "cpu"}}}},
      {&kActivationLayers,
       {{{"strategy.offload.activations.device", "cpu"}, {"strategy.offload.activations.layers", "1"}},
        {{"strategy.offload.activations.layers", "1"}}}},
      {&kKeptGradients, {{{"strategy.keep_16bit_gradients", "true"}, {"strategy.gradient_precision", "fp32"}}}},
      {&kGivenSync, {{{"strategy.no_sync", "true"}}}},
      {&kReducedEachTime, {{{"strategy.no_sync", "false"}}, sharded("data-parallel", {{"strategy.no_sync", "false"}})}},
      {&kWholeSums,
       {sharded("fsdp", {{"strategy.no_sync", "true"}}), sharded("zero3", {{"strategy.no_sync", "true"}}),
        pipeline("chimera", sharded("zero3", {{"strategy.no_sync", "true"}}))}},
      {&kJoinedUnits,
       {sharded("fsdp", {{"strategy.units", "model"}}),
        sharded("zero3", {{"strategy.units", "2"}}),
        {{"strategy.units", "model"}},
        pipeline("zb-v", sharded("fsdp", {{"strategy.units", "model"}}))}},
      {&kNarrowed,
       {sharded("zero3", {{"strategy.zero_quantize", "{weights: int8}"}}),
        {{"strategy.zero_quantize", "{weights: int8}"}}}},
      {&kFrozenWeights, {{{"model.lora", "{rank: 4}"}}, {{"model.frozen", "[embedding]"}}}},
      {&kUnevenNodes,
       {{{"strategy.data", "12"},
         {"strategy.global_batch", "48"},
         {"strategy.sharding", "zero3"},
         {"strategy.zero_quantize", "{weights: int8}"}}}},
      {&kOrderOfTraining, {pipeline("dualpipe"), pipeline("pipedream"), pipeline("vocab-1f1b"), pipeline("bpipe")}},
      {&kGenerates, {{{"generate", kText}}}},
      {&kGraphedParts, {{{"software.cuda_graphs", "true"}, {"software.cuda_graph_scope", "layer"}}}},
      {&kSpeculates,
       {{{"generate", "{batch: 32, input: 64, output: 8, drafts: 2, acceptance: 0.5}"}, {"model.mtp_layers", "1"}}}},
      {&kNarrowLatentCache,
       {{{"generate", "{batch: 32, input: 64, output: 8, kv_precision: fp8}"}, {"model.mla", kMla}}}},
      {&kOutliers, {{{"generate", kText}, {"strategy.quantise", "{weights: int4, group: 8, outliers: 0.01}"}}}},
      {&kRounds, {{{"strategy.quantise", "{weights: int4, group: 8}"}}}},
      {&kServedBiases,
       {{{"generate", kText}, {"model.moe", kMoe}, {"model.bias", "true"}},
        {{"generate", kText}, {"model.moe", kMoe}, {"model.bias", "true"}, {"strategy.data", "2"}}}},
      {&kCompressedBiases, {{{"generate", kText}, {"model.mla", kMla}, {"model.bias", "true"}}}},
      {&kTwoModels, {{{"teacher", kTeacher}}, {{"teacher", kTeacherOfExperts}}, {{"dpo", "{beta: 0.1}"}}}},
      {&kComparedStates,
       {{{"teacher", kTeacher}, {"distill", "{features: {student: [0, 4], teacher: [0, 4], weight: 0.1}}"}},
        {{"teacher", kTeacher},
         {"distill", "{gpus: 2, strategy: {tensor: 2}, features: {student: [0, 4], teacher: [0, 4], weight: 0.1}}"}}}},
      {&kHostedSecond,
       {sharded("zero3", {{"teacher", kTeacher}, {"distill", "{offload: true}"}}),
        sharded("fsdp", {{"dpo", "{offload: true}"}}),
        {{"teacher", kTeacher}, {"distill", "{offload: true}"}},
        sharded("zero3", {{"teacher", kTeacher}, {"distill", "{gpus: 2, strategy: {tensor: 2}, offload: true}"}})}},
      {&kOwnGpus,
       {{{"teacher", kTeacher}, {"distill", "{gpus: 2, strategy: {tensor: 2}}"}},
        {{"dpo", "{gpus: 2, strategy: {pipeline: 2}}"}},
        {{"teacher", kTeacher}, {"distill", "{gpus: 4, strategy: {tensor: 2}}"}, {"strategy.context", "2"}},
        {{"teacher", kTeacher},
         {"distill", "{gpus: 2, strategy: {tensor: 2}, features: {student: [0, 4], teacher: [0, 4], weight: 0.1}}"}},
        {{"teacher", kTeacher}, {"distill", "{gpus: 2, strategy: {tensor: 2}, offload: true}"}}}},
      {&kUnlikeRanks,
       {{{"model.moe", "{experts: 8, top_k: 2, feed_forward: 64, imbalance: 1.5}"},
         {"strategy.expert", "2"},
         {"strategy.data", "2"}},
        {{"model.moe", "{experts: 8, top_k: 2, feed_forward: 64, imbalance: 1.5}"},
         {"strategy.expert", "2"},
         {"strategy.data", "4"}}}},
      {&kStreamsOfEither, {{{"model.hyper_connections", "2"}}}},
      {&kPreferencePairs, {{{"dpo", "{beta: 0.1}"}}}},
      {&kEndsOnOneStage, {pipeline("zb-v"), pipeline("v-half")}},
      {&kDocuments, {{{"sequence.documents", "{mean: 10}"}}}},
      {&kEightBitStates, {{{"strategy.optimizer.states", "8bit"}}}},
      {&kWithoutMoments, {{{"strategy.optimizer.name", "sgd"}}, {{"strategy.optimizer.name", "adafactor"}}}},
      {&kMuon, {{{"strategy.optimizer.name", "muon"}}}},
      {&kWholeMatrices, {{{"strategy.optimizer.name", "muon"}}, {{"strategy.optimizer.name", "adafactor"}}}},
      {&kLion, {{{"strategy.optimizer.name", "lion"}}}},
      {&kStragglers, {{{"cluster.stragglers", "[{rank: 0, slowdown: 1.5}]"}}}},
      {&kFailures, {{{"cluster.failures", "{}"}}}},
      {&kVariation, {{{"cluster.variation", "{gpus: 0.03}"}}}},
      {&kNetwork, {{{"cluster.network", "{leaf: {nodes: 1}}"}}}},
  };
  static const std::vector<Values> none = {{}};
  const auto found = ways.find(&f);
  return found == ways.end() ? none : found->second;
}

std::vector<const Feature*> all_features() {
  std::vector<const Feature*> all;
  for (const Pair& p : combinations()) {
    for (const Feature* f : {p.a, p.b})
      if (f != nullptr && std::find(all.begin(), all.end(), f) == all.end()) all.push_back(f);
  }
  return all;
}

// The values of both; nothing where they want the same key to be different.
std::optional<Values> merged(Values a, const Values& b) {
  for (const auto& [key, value] : b) {
    for (const auto& [other, text] : a) {
      const bool inside = other.starts_with(key + ".") || key.starts_with(other + ".");
      if (inside || (other == key && text != value)) return std::nullopt;
    }
    a[key] = value;
  }
  return a;
}

// Visits the specs that ask for both features (b null: for the first), unchecked, until a visit returns true.
template <class Visit>
void visit_specs(const Feature& a, const Feature* b, Visit visit) {
  static const std::vector<Values> nothing = {{}};
  for (const Values& way : ways_of(a)) {
    for (const Values& other : b == nullptr ? nothing : ways_of(*b)) {
      const std::optional<Values> both = merged(way, other);
      if (!both) continue;
      std::vector<std::string> overrides;
      for (const auto& [key, value] : *both) overrides.push_back(key + "=" + value);
      Spec spec;
      try {
        spec = parse_open_spec(kBase, "t.yaml", overrides).spec;
      } catch (const Error&) {
        continue;  // two workloads
      }
      spec.name = fmt::format("{}", fmt::join(overrides, " "));
      if (a.asked(spec) && (b == nullptr || b->asked(spec)) && visit(spec)) return;
    }
  }
}

std::string why_not(const Spec& spec) {
  if (std::string rule = rule_broken_by(spec, "t.yaml"); !rule.empty()) return rule;
  try {
    make_plan(spec);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string text_of(const Feature& a, const Feature* b) {
  return b == nullptr ? std::string(a.text) : fmt::format("{} with {}", a.text, b->text);
}

bool is_listed(std::span<const Pair> rows, const Feature* a, const Feature* b) {
  return std::ranges::any_of(rows, [&](const Pair& p) {
    return p.which <= Limit::plan && ((p.a == a && p.b == b) || (p.a == b && p.b == a));
  });
}

// Faults of rows: those that refuse no spec that asks for their features.
std::vector<std::string> stale_rows(std::span<const Pair> rows) {
  std::vector<std::string> faults;
  for (const Pair& row : rows) {
    bool refuses = row.a == &kOrderFile;  // needs a file
    visit_specs(*row.a, row.b, [&](const Spec& spec) {
      const Pair* first = first_limit(spec, std::max(row.which, Limit::plan));
      const bool same = first != nullptr && first->a == row.a && first->b == row.b;
      const bool said = row.which > Limit::plan || why_not(spec).find(refusal(spec, row)) != std::string::npos;
      refuses = refuses || (same && said);
      return refuses;
    });
    if (!refuses) faults.push_back(text_of(*row.a, row.b));
  }
  return faults;
}

// Faults of rows that are missing: pairs that do not plan, though no other row refuses them. third: pairs to look at,
// if not all.
std::vector<std::string> missing_rows(std::span<const Pair> rows, const std::vector<const Feature*>& all,
                                      std::optional<std::size_t> third = {}) {
  std::vector<std::string> faults;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i; j < all.size(); ++j) {
      if (third && (i + j) % 3 != *third) continue;
      const Feature* b = i == j ? nullptr : all[j];
      if (is_listed(rows, all[i], b) || is_listed(rows, all[i], nullptr) || (b && is_listed(rows, b, nullptr)))
        continue;
      if (b != nullptr && (ways_of(*all[i]).front().empty() || ways_of(*b).front().empty())) continue;
      std::string why;
      bool plans = false;
      visit_specs(*all[i], b, [&](const Spec& spec) {
        const Pair* first = first_limit(spec, Limit::plan);
        if (first != nullptr && is_listed(rows, first->a, first->b)) return false;
        const std::string refused = why_not(spec);
        plans = refused.empty();
        why = spec.name + ": " + refused;
        return plans;
      });
      if (!plans && !why.empty()) faults.push_back(fmt::format("{}: {}", text_of(*all[i], b), why));
    }
  }
  return faults;
}

// A third of the pairs each, side by side.
class Unlisted : public testing::TestWithParam<std::size_t> {};
TEST_P(Unlisted, PairsPlan) {
  for (const std::string& fault : missing_rows(combinations(), all_features(), GetParam())) ADD_FAILURE() << fault;
}
INSTANTIATE_TEST_SUITE_P(Combinations, Unlisted, testing::Range<std::size_t>(0, 3));

TEST(Combinations, EveryRowRefusesWithItsLine) {
  for (const std::string& fault : stale_rows(combinations())) ADD_FAILURE() << fault;
}

TEST(Combinations, StaleAndMissingRowsAreFound) {
  const Pair stale = {&kTensor, &kPipeline, "not built yet", "choose 1"};
  EXPECT_EQ(stale_rows({&stale, 1}), std::vector<std::string>{"tensor above 1 with pipeline above 1"});
  std::vector<Pair> rows(combinations().begin(), combinations().end());
  std::erase_if(rows, [](const Pair& p) { return p.a == &kGrid && p.b == &kLatent; });
  const std::vector<std::string> missing = missing_rows(rows, {&kGrid, &kLatent, &kBias});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_TRUE(missing[0].find("with latent attention") != std::string::npos) << missing[0];
}

// No two rows say the same, and every row says what to do.
TEST(Combinations, RowsAreDistinctAndWhole) {
  std::set<std::tuple<const Feature*, const Feature*, Limit>> seen;
  for (const Pair& p : combinations()) {
    EXPECT_TRUE(seen.insert({p.a, p.b, p.which}).second) << text_of(*p.a, p.b);
    EXPECT_FALSE(p.why.empty() || p.advice.empty()) << text_of(*p.a, p.b);
  }
}

// A refusal names the key that the spec gives, at its line, or the model's.
TEST(Combinations, RefusalsHaveTheirPlace) {
  const auto refused = [](const std::string& text) {
    try {
      make_plan(parse_spec(text, "t.yaml"));
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string head = "sequence: 64\ncluster: {node: dgx-h100, nodes: 1}\n";
  EXPECT_EQ(refused(head + "model: mixtral-8x7b\nstrategy:\n  data: 2\n  sharding: data-parallel\n"),
            "t.yaml:6: strategy.sharding: experts with data-parallel or parameter-server: not built yet; choose "
            "another model");
  EXPECT_EQ(refused(head + "model: mixtral-8x7b\nstrategy: {data: 1}\nsoftware: {post_update_validation: true}\n"), "");
}

}  // namespace
}  // namespace orrery::feature
