#include <algorithm>

#include "models/base/names.h"
#include "models/load/open_spec.h"
#include "models/load/reader.h"
#include "models/partition/rank_groups.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

// The words for the parts of a layer that can be recomputed; "selective" is attention alone (Korthikanti et al. 2022).
constexpr Named<bool Recompute::*> kRecomputed[] = {{"full", &Recompute::layer},
                                                    {"selective", &Recompute::attention},
                                                    {"attention", &Recompute::attention},
                                                    {"norm", &Recompute::norm},
                                                    {"mlp", &Recompute::mlp},
                                                    {"activation", &Recompute::activation},
                                                    {"moe", &Recompute::moe},
                                                    {"moe_activation", &Recompute::moe_activation},
                                                    {"mla_up_proj", &Recompute::mla_up_proj}};

constexpr SpecKey kStrategyKeys[] = {
    {"tensor", "ranks that cut each layer's matrices (tensor parallelism)", "8"},
    {"tensor_kind", "grid of the tensor ranks", "2d"},
    {"tensor_depth", "layers of a 2.5d grid", "2", "", "the deepest, at most a cube"},
    {"sequence_parallel", "activations between matrix products are cut over tensor ranks", "true", "",
     "tensor > 1, if the stack does"},
    {"pipeline", "stages of the pipeline", "4"},
    {"virtual_stages", "chunks of layers that each stage holds", "2", "", "those of the schedule"},
    {"schedule", "order of forwards and backwards (orrery list schedules), or a file of orders", kPlainSchedule,
     "name | {file: order.txt}", "1f1b; interleaved where virtual_stages > 1; or the stack's"},
    {"interleave_group", "interleaved: micro-batches of a chunk's turn; 0: the stack's", "8"},
    {"extra_warm_up", "interleaved: forwards beyond the usual before the first backward", "1"},
    {"vertical_sync", "pipedream: all stages use the weights that the first one has", "true"},
    {"stage_layers", "layers of each virtual stage in model order", "[9, 8, 8, 7]", "", "the stack's rule"},
    {"stage_replicas", "ranks of each stage that share every micro-batch (DAPPLE)", "[2, 1]",
     "list of whole numbers, or planned"},
    {"context", "ranks that cut the sequence (context parallelism)", "2"},
    {"context_kind", "how context ranks attend to the whole sequence, or how many do so each way", "ulysses",
     "ring | allgather | ulysses | {ring: N, ulysses: N}"},
    {"context_order", "parts of the sequence that a context rank has: both ends, or one block", "contiguous"},
    {"expert", "ranks that share out the experts (expert parallelism)", "8"},
    {"expert_tensor", "ranks that cut each expert's matrices", "2", "", "1, or tensor where the stack does"},
    {"data", "copies of the model, with samples of their own", "2"},
    {"rank_order", "order of ranks, innermost first; ranks fill a node before the next", "tp-cp-dp-pp"},
    {"sharding", "data-parallel variant (orrery list shardings)", "zero1",
     "none | zero1 | zero2 | zero3 | fsdp | fsdp-grad-op | hsdp | data-parallel | parameter-server"},
    {"shard_group", "hsdp: ranks that share one set of shards", "8", "", "data ranks of a node"},
    {"parameter_server", "servers that hold the weights, with sharding: parameter-server", "{servers: 8}"},
    {"no_sync", "gradients are reduced with the last micro-batch alone", "false", "",
     "true for whole gradients (none, zero1, and zero2 where the stack keeps them), else false"},
    {"units",
     "weights that zero3 and fsdp gather together: each layer's, the model's, those of so many layers, or of lists",
     "model", "layer | model | whole number | list of lists of layers", "layer"},
    {"zero_quantize", "narrow transfers of zero3 (ZeRO++)", "{weights: int8, gradients: int4, secondary_shards: node}"},
    {"bucket_MiB", "gradients in a bucket; 0: one bucket for each parameter", "25"},
    {"fused_buffers", "gradients are reduced in one buffer beside them", "true"},
    {"prefetch_units", "units gathered ahead of use", "2"},
    {"units_in_flight", "most units that are gathered at once", "2"},
    {"micro_batch", "sequences of a micro-batch", "2"},
    {"global_batch", "sequences of a step", "512"},
    {"precision", "precision of matrix products", "bf16", "fp32 | tf32 | fp16 | bf16 | fp8 | mxfp8 | nvfp4"},
    {"quantise", "formats of few bits of weights and of the inputs of products", "{weights: int4}"},
    {"gradient_precision", "precision in which gradients accumulate and reduce", "fp32",
     "fp32 | tf32 | fp16 | bf16 | fp8 | mxfp8 | nvfp4"},
    {"keep_16bit_gradients", "gradients of 16 bits, as backward writes them, stay beside their fp32 sums", "true"},
    {"optimizer", "optimizer and widths of its states", "adamw"},
    {"clip", "most gradient norm; 0: none is taken", "1"},
    {"recompute",
     "parts of a layer that backward runs again: attention, norm, mlp, activation, moe, moe_activation, mla_up_proj",
     "selective", "none | selective | full | list of parts"},
    {"recompute_layers", "layers of each stage that recompute", "4", "", "all"},
    {"partition_activations", "tensor ranks cut the kept inputs of recomputed layers (ZeRO-R)", "true"},
    {"contiguous_activations", "kept inputs of recomputed layers lie in one buffer, taken beforehand", "true"},
    {"attention", "kernel of attention", "unfused", "flash | unfused"},
    {"overlap", "communication that runs under compute", "{tensor: true}"},
    {"offload", "states and activations that lie on the host or on disks", "{optimizer: cpu}"},
    {"checkpoint", "weights and optimizer states written for a restart", "{every: 500, to: storage}"},
};
constexpr std::string_view kTensorKinds[] = {"1d", "2d", "2.5d", "3d"};
constexpr SpecKey kScheduleKeys[] = {
    {"file", "file with a line of actions for each stage: F0 F1 B0 ...", "order.txt", "path"},
};
constexpr std::string_view kContextOrders[] = {"zigzag", "contiguous"};
constexpr std::string_view kContextKinds[] = {"ring", "allgather", "ulysses"};
constexpr SpecKey kContextKeys[] = {
    {"ring", "ranks of each ring", "2"},
    {"ulysses", "ranks that exchange heads", "2"},
};
constexpr SpecKey kServerKeys[] = {
    {"servers", "servers, each with a range of the weights", "8"},
    {"colocated", "servers run on the workers' nodes", "false"},
    {"mode", "workers wait for each other's updates: always, never, or by staleness", "ssp"},
    {"staleness", "ssp: steps that a worker may run ahead", "4"},
    {"replicas", "servers that hold the same range, a chain", "2"},
    {"snapshot_every", "steps between snapshots; 0: never", "100"},
};
constexpr std::string_view kServerModes[] = {"sync", "async", "ssp"};
constexpr SpecKey kOverlapKeys[] = {
    {"gradient_reduce", "gradients are reduced under backward", "false"},
    {"parameter_gather",
     "parameters are gathered under forward, or under the update: each bucket as soon as it is updated", "update",
     "true or false | update"},
    {"tensor", "tensor-parallel transfers run in pieces under their products (user buffers)", "true"},
    {"pipeline", "sends and receives run under compute", "false"},
    {"pipeline_ends", "they do so in warm-up and flush too", "false"},
    {"expert", "tokens travel to experts under the shared experts", "true"},
    {"micro_batches", "a forward and a backward are woven, each computing during the other's transfers", "true"},
};

std::vector<std::string_view> schedule_names() {
  std::vector<std::string_view> names;
  for (const ScheduleRow& row : schedule_rows()) names.push_back(row.name);
  return names;
}

void read_schedule(const SpecSection& section, Strategy& s, const Software& software) {
  const bool habit = !software.layout.schedule.empty();
  s.schedule = habit ? software.layout.schedule : std::string(s.virtual_stages > 1 ? kChunkedSchedule : kPlainSchedule);
  const SpecNode* node = section.find("schedule");
  if (node != nullptr && node->kind == SpecNode::Kind::map) {
    const SpecSection file(section.reader(), node, "strategy.schedule", kScheduleKeys);
    if (!file.take("file", s.schedule_file) || s.schedule_file.empty())
      section.reader().fail(*node, "strategy.schedule", "a name, or {file: order.txt} with a file of orders");
    s.schedule = "file";
    s.schedule_file = beside(section.reader().path, s.schedule_file);
    return;
  }
  section.take_word("schedule", s.schedule, schedule_names(), habit ? "profile " + software.name : "default");
}

// Returns the number of virtual stages per pipeline stage that the schedule named in a spec requires.
std::int64_t chunks_of_schedule(const SpecSection& section) {
  const SpecNode* node = section.find("schedule");
  for (const ScheduleRow& row : schedule_rows()) {
    if (node != nullptr && node->text == row.name) return std::max<std::int64_t>(1, row.chunks);
  }
  return 1;
}

void read_context_kind(const SpecSection& section, Strategy& s) {
  const SpecNode* node = section.find("context_kind");
  if (node != nullptr && node->kind == SpecNode::Kind::map) {
    const SpecSection mixed(section.reader(), node, "strategy.context_kind", kContextKeys);
    mixed.take_count("ring", s.context_ring, kMostRanks);
    mixed.take_count("ulysses", s.context_ulysses, kMostRanks);
    s.context_kind = "mixed";
    return;
  }
  section.take_word("context_kind", s.context_kind, kContextKinds);
  (s.context_kind == "ulysses" ? s.context_ulysses : s.context_ring) = s.context;
}

void read_context(const SpecSection& section, Strategy& s) {
  read_context_kind(section, s);
  std::string order = "zigzag";
  section.take_word("context_order", order, kContextOrders);
  s.context_zigzag = order == "zigzag";
}

// Computes gpus or data, whichever the spec leaves out, from gpus = tensor * pipeline * context * data. If DAPPLE's
// planner is still to choose the number of stages, the pipeline gets all GPUs that the other degrees leave.
void read_data(const SpecSection& section, const SpecNode* gpus, bool planned, Spec& spec) {
  Strategy& s = spec.strategy;
  SpecReader& reader = section.reader();
  const std::int64_t inner = s.tensor * (planned ? 1 : s.places()) * s.context;
  if (inner > kMostRanks)
    throw Error(fmt::format("{}: strategy: tensor * pipeline * context is above {}", reader.path, kMostRanks));
  std::string from = "tensor * pipeline * context * data";
  if (gpus != nullptr) {
    convert(reader, *gpus, "gpus", spec.gpus);
    if (spec.gpus < 1 || spec.gpus > kMostRanks)
      reader.fail(*gpus, "gpus", fmt::format("{} is not between 1 and {}", spec.gpus, kMostRanks));
    from = reader.where(*gpus);
  } else if (section.find("data") == nullptr && gpus_of(spec.cluster) > 0) {
    spec.gpus = gpus_of(spec.cluster);
    from = "all of the cluster";
  }
  // A second model may have some of the GPUs for itself.
  const std::int64_t of_second = spec.second ? spec.second->gpus : 0;
  const std::int64_t own = spec.gpus > 0 ? spec.gpus - of_second : 0;
  if (spec.gpus > 0 && own < 1)
    throw Error(fmt::format("{}: gpus: {} leaves none for the model that trains beside {} of the {}",
                            gpus ? from : reader.path, spec.gpus, of_second, name_of(spec.second->role)));
  if (own % inner != 0 && section.find("data") == nullptr) {
    const std::string rest =
        of_second == 0 ? "" : fmt::format(" less {} of the {}", of_second, name_of(spec.second->role));
    throw Error(fmt::format("{}: gpus: {}{} is not a multiple of tensor * pipeline * context: {}",
                            gpus ? from : reader.path, spec.gpus, rest, inner));
  }
  s.data = planned ? 1 : std::max<std::int64_t>(1, own / inner);
  section.take_count("data", s.data, kMostRanks, planned ? "default" : "gpus / (tensor * pipeline * context)");
  if (spec.gpus == 0) spec.gpus = inner * s.data + of_second;
  if (planned) s.stage_replicas = {std::max<std::int64_t>(1, spec.gpus / (inner * s.data))};
  if (spec.cluster.gpus_per_node == 0) spec.cluster.gpus_per_node = static_cast<int>(std::min(spec.gpus, kMostRanks));
  reader.origins.push_back({"gpus", to_text(spec.gpus), from});
}

// Returns the largest depth d of a q * q * d grid of `ranks` ranks, with d at most q; 1 if there is none.
std::int64_t deepest_grid(std::int64_t ranks) {
  for (std::int64_t q = 1; q * q <= ranks; ++q) {
    if (ranks % (q * q) == 0 && ranks / (q * q) <= q) return ranks / (q * q);
  }
  return 1;
}

bool read_degrees(const SpecSection& section, const SpecNode* gpus, Spec& spec) {
  Strategy& s = spec.strategy;
  const Software& software = spec.software;
  const std::string profile = "profile " + software.name;
  section.take_count("tensor", s.tensor, kMostRanks);
  section.take_word("tensor_kind", s.tensor_kind, kTensorKinds);
  const bool layers = s.tensor_kind == "2.5d";
  if (layers) s.tensor_depth = deepest_grid(s.tensor);
  section.take_count("tensor_depth", s.tensor_depth, kMostRanks, layers ? "the deepest, at most a cube" : "default");
  s.sequence_parallel = s.tensor > 1 && !s.on_grid() && software.layout.sequence_parallel;
  section.take("sequence_parallel", s.sequence_parallel,
               s.on_grid()    ? "tensor_kind " + s.tensor_kind
               : s.tensor > 1 ? profile
                              : "tensor > 1");
  section.take_count("pipeline", s.pipeline, kMostRanks);
  s.virtual_stages = chunks_of_schedule(section);
  section.take_count("virtual_stages", s.virtual_stages, kMostRanks, s.virtual_stages > 1 ? "schedule" : "default");
  read_schedule(section, s, software);
  section.take("interleave_group", s.interleave_group,
               fmt::format("{}: {}", profile, name_in(kInterleaveGroups, software.layout.interleave_group)));
  section.take("extra_warm_up", s.extra_warm_up);
  section.take("vertical_sync", s.vertical_sync);
  section.take("stage_layers", s.stage_layers,
               fmt::format("{}: {}", profile, name_in(kStageRules, software.layout.stage_rule)));
  section.take_count("context", s.context, kMostRanks);
  read_context(section, s);
  section.take_count("expert", s.expert, kMostRanks);
  const bool follows = software.layout.expert_tensor_is_tensor && has_experts(spec);
  if (follows) s.expert_tensor = s.tensor;
  section.take_count("expert_tensor", s.expert_tensor, kMostRanks, follows ? profile : "default");
  const bool planned = read_replicas(section, s);
  read_data(section, gpus, planned, spec);
  s.rank_order = software.layout.rank_order;
  section.take("rank_order", s.rank_order, profile);
  return planned;
}

void read_server(const SpecSection& section, Strategy& s) {
  const SpecNode* node = section.find("parameter_server");
  if (node == nullptr && !row_of(s.sharding).servers) return;
  ParameterServer& server = s.parameter_server.emplace();
  const SpecSection map(section.reader(), node, "strategy.parameter_server", kServerKeys);
  map.take("servers", server.servers);
  map.take("colocated", server.colocated);
  map.take_word("mode", server.mode, kServerModes);
  map.take("staleness", server.staleness);
  map.take("replicas", server.replicas);
  map.take("snapshot_every", server.snapshot_every);
}

// Reads the sharding and the size of its shard group. FSDP's HYBRID_SHARD shards inside a node, so the default of
// shard_group is the number of data ranks in a node.
void read_sharding(const SpecSection& section, const Spec& spec, Strategy& s) {
  section.take_named(
      "sharding", s.sharding, find_sharding, [](Sharding kind) { return name_of(kind); }, "default");
  if (row_of(s.sharding).hybrid) {
    s.shard_group = std::clamp<std::int64_t>(spec.cluster.gpus_per_node / s.tensor, 1, s.data * s.context);
  }
  section.take("shard_group", s.shard_group, row_of(s.sharding).hybrid ? "data ranks of a node" : "all of them");
  read_server(section, s);
  section.take("fused_buffers", s.fused_buffers);
  section.take("prefetch_units", s.prefetch_units);
  section.take("units_in_flight", s.units_in_flight);
  read_units(section, spec, s);
  read_checkpoint(section, s);
}

void read_batch(const SpecSection& section, const Spec& spec, Strategy& s) {
  section.take_count("micro_batch", s.micro_batch, 1'000'000);
  s.global_batch = s.micro_batch * s.data;
  section.take("global_batch", s.global_batch, "micro_batch * data");
  read_precision(section, spec, s);
  section.take("keep_16bit_gradients", s.keep_16bit_gradients);
  read_optimizer(section, s.optimizer);
  section.take("clip", s.clip);
}

// Sets the parts that are recomputed by PyTorch's selective checkpointing by operation, as torchtitan sets it up: the
// results of attention and of every second matrix product are kept, everything else is recomputed. Here products are
// kept or recomputed by layers: the MLP of every second layer is 40 % of the products of two layers of Llama 3 8B,
// while every second product would be 37 %. cuDNN's attention was not on torchtitan's list of kept operations until
// December 2025 (pytorch/torchtitan pull request 2095).
void recompute_operations(Recompute& r, const Software& software) {
  r.attention = software.kernels.attention_kernel == FlashKernel::cudnn;
  r.norm = r.activation = r.every_second_mlp = true;
}

void read_recompute(const SpecSection& section, const Software& software, Strategy& s) {
  const SpecNode* node = section.find("recompute");
  std::string text = "none";
  if (node != nullptr) {
    const bool single = node->kind == SpecNode::Kind::scalar;
    text.clear();
    for (const SpecNode& item : section.find_words("recompute")) {
      std::string word;
      convert(section.reader(), item, "strategy.recompute", word);
      text += (text.empty() ? "" : ", ") + word;
      if (word == "none" && single) continue;
      section.located(item, "recompute", [&] {
        add_recompute(s.recompute, word, software);
        return true;
      });
    }
  }
  section.record("recompute", text.empty() ? "none" : text, node, "default");
  section.take("recompute_layers", s.recompute.layers);
  section.take("partition_activations", s.partition_activations);
  section.take("contiguous_activations", s.contiguous_activations);
}

void read_attention(const SpecSection& section, const Software& software, Strategy& s) {
  const auto find = [](std::string_view word) { return find_named(kAttentions, "attention", word); };
  s.attention = software.kernels.attention;
  section.take_named(
      "attention", s.attention, find, [](Attention a) { return name_in(kAttentions, a); }, "profile " + software.name);
}

// Reads strategy.overlap.parameter_gather: updated parameters are gathered during the next forward (true), between
// update and forward (false), or bucket by bucket while the optimizer updates the other buckets ("update").
void read_gather(const SpecSection& map, Overlap& o, const std::string& profile) {
  const SpecNode* node = map.find("parameter_gather");
  o.gather_in_update = node != nullptr && node->kind == SpecNode::Kind::scalar && node->text == "update";
  if (!o.gather_in_update) {
    map.take("parameter_gather", o.parameter_gather, profile);
    return;
  }
  o.parameter_gather = false;
  map.record("parameter_gather", "update", node, profile);
}

void read_overlap(const SpecSection& section, const Software& software, Strategy& s) {
  const std::string profile = "profile " + software.name;
  const SpecSection map(section.reader(), section.find("overlap"), "strategy.overlap", kOverlapKeys);
  Overlap& o = s.overlap;
  o.gradient_reduce = reduces_beside(software, s.sharding) && !runs_both_ways(s.schedule);
  o.parameter_gather = software.communication.overlap_parameter_gather;
  o.pipeline = software.communication.overlap_pipeline;
  map.take("gradient_reduce", o.gradient_reduce, runs_both_ways(s.schedule) ? "schedule " + s.schedule : profile);
  read_gather(map, o, profile);
  map.take("tensor", o.tensor);
  map.take("pipeline", o.pipeline, profile);
  map.take("pipeline_ends", o.pipeline_ends);
  map.take("expert", o.expert);
  map.take("micro_batches", o.micro_batches);
}

}  // namespace

double bucket_habit(const Software& software, const Strategy& s) {
  const Software::Communication& c = software.communication;
  if (c.sharded_in_one_bucket && s.sharding != Sharding::none) return kOneBucket_MiB;
  if (c.buckets_for_overlap && !s.overlap.gradient_reduce) return kOneBucket_MiB;
  const double ranks = static_cast<double>(s.data * s.context) * c.bucket_elements_of_rank;
  const double elements = std::max(c.bucket_elements, ranks);
  const double habit =
      elements > 0 ? elements * static_cast<double>(storage_bytes(s.gradient_precision)) / 1048576 : c.bucket_MiB;
  return habit > 0 ? habit : kOneBucket_MiB;
}

bool reduces_beside(const Software& software, Sharding sharding) {
  return software.communication.overlap_gradient_reduce &&
         (sharding == Sharding::none || software.communication.overlap_sharded);
}

void add_recompute(Recompute& recompute, std::string_view part, const Software& software) {
  if (part == "none") return;
  recompute.*find_named(kRecomputed, "part", part) = true;
  if (part != "selective") return;
  const SelectiveRecompute selective = software.layout.selective_recompute;
  if (selective == SelectiveRecompute::operations) recompute_operations(recompute, software);
  if (selective == SelectiveRecompute::second_layers) recompute = {.layer = true, .every_second_layer = true};
}

std::vector<std::string_view> recompute_parts() { return names_of(kRecomputed); }

void read_strategy(SpecReader& reader, const SpecNode* node, const SpecNode* gpus, Spec& spec) {
  const SpecSection section(reader, node, "strategy", kStrategyKeys);
  Strategy& s = spec.strategy;
  const bool planned = read_degrees(section, gpus, spec);
  read_sharding(section, spec, s);
  read_batch(section, spec, s);
  read_recompute(section, spec.software, s);
  read_attention(section, spec.software, s);
  read_overlap(section, spec.software, s);
  s.bucket_MiB = bucket_habit(spec.software, s);
  section.take("bucket_MiB", s.bucket_MiB, "profile " + spec.software.name);
  read_offload(section, s.offload);
  if (planned) plan_replicas(section, spec);
}

}  // namespace orrery
