#pragma once

// This header has the options (properties of a spec's model, strategy, software or cluster) that do not work with some
// other option, with the executor or with the search, each as a Feature that checks whether a spec uses it; the table
// in combinations.cpp names these combinations. The checks need a spec whose single values are valid; the longer ones
// are functions in the namespace `is`.
#include "models/load/combinations.h"
#include "models/load/model_features.h"
#include "models/schedule/schedules.h"
#include "models/spec/asynchrony.h"
#include "models/spec/gradients.h"
#include "models/spec/sharding.h"

namespace orrery::feature {

// The functions in this namespace are the longer checks of features, defined in features.cpp; each tells something
// about a spec. If the schedule has no valid order of passes, checks that need this order return false, because other
// rules reject such a spec.
namespace is {
// whether context parallelism passes keys and values round a ring, or exchanges heads (Ulysses) of several sequences in
// a micro-batch; GPU ranks can exchange only the heads of a single sequence
bool ring_of_parts(const Spec& spec);
// whether the first and the last virtual stage (with the embedding and the output layer) may lie on the same stage of a
// pipeline with several stages
bool both_ends(const Spec& spec);
// whether tied embeddings lie on a first and a last stage with different numbers of ranks
bool ends_apart(const Spec& spec);
// whether a bidirectional schedule (one that runs copies of the model in opposite directions through the pipeline) is
// not symmetric: some stage i of p orders its passes differently from stage p - 1 - i, even if the copies are exchanged
bool copies_out_of_step(const Spec& spec);
// whether a stage's activations are kept by another stage until their backward (BPipe)
bool evicted(const Spec& spec);
// whether the ops of a forward pass alternate with the ops of a backward pass (overlapped F and B)
bool woven(const Spec& spec);
// whether a schedule only makes sense with backward passes: it runs several copies of the model, shards the vocabulary
// over the stages, updates without a flush, moves activations between stages, overlaps forward with backward, or is
// from a file
bool order_of_training(const Spec& spec);
// whether ranks of one stage of either model, which is on ranks of its own, do unlike work: they have more or less of
// the tokens for experts, or parts of a sequence that attend to more or fewer keys
bool unlike_ranks(const Spec& spec);
bool woven_chunk(const Spec& spec);  // whether an overlapped forward and backward belong to the same chunk
// whether the framework copies gradients into separate buffers for the buckets (Averaging::copy)
bool copied_gradients(const Spec& spec);
bool state_on_disk(const Spec& spec);
// whether ZeRO++ is asked for where the nodes have unlike numbers of the ranks that share one set of shards
bool uneven_nodes(const Spec& spec);
const ShardingRow& sharding(const Spec& spec);
// Returns the spec's row of the table of built-in pipeline schedules; null if a file has the order of its passes.
const ScheduleRow* schedule(const Spec& spec);
}  // namespace is

using S = const Spec&;

// Each of these features says whether a spec uses an option of tensor parallelism; combinations.cpp lists the options
// with which it does not work.
inline constexpr Feature kTensor = {"strategy.tensor", "tensor above 1", [](S s) { return s.strategy.tensor > 1; }};
inline constexpr Feature kNoTensor = {"strategy.tensor", "tensor: 1", [](S s) { return s.strategy.tensor == 1; }};
inline constexpr Feature kSequence = {"strategy.sequence_parallel", "sequence_parallel",
                                      [](S s) { return s.strategy.sequence_parallel; }};
inline constexpr Feature kNoSequence = {
    "strategy.sequence_parallel", "tensor ranks without sequence_parallel", [](S s) {
      return s.strategy.tensor > 1 && !s.strategy.sequence_parallel && !s.strategy.on_grid() && !s.generation;
    }};
inline constexpr Feature kGrid = {"strategy.tensor_kind", "a grid of tensor ranks (2d, 2.5d, 3d)",
                                  [](S s) { return s.strategy.on_grid(); }};
inline constexpr Feature kGridKind = {"strategy.tensor_kind", "a tensor_kind other than 1d",
                                      [](S s) { return s.strategy.tensor_kind != "1d"; }};
inline constexpr Feature kDepth = {"strategy.tensor_depth", "tensor_depth",
                                   [](S s) { return s.strategy.tensor_depth > 1; }};
inline constexpr Feature kNoDepth = {"strategy.tensor_kind", "a tensor_kind other than 2.5d",
                                     [](S s) { return s.strategy.tensor_kind != "2.5d"; }};
inline constexpr Feature kTensorOverlap = {"strategy.overlap.tensor", "overlap.tensor",
                                           [](S s) { return s.strategy.overlap.tensor; }};
inline constexpr Feature kPieces = {"strategy.overlap.tensor", "products cut into pieces by overlap.tensor",
                                    [](S s) { return s.strategy.overlap.tensor && s.strategy.tensor > 1; }};
inline constexpr Feature kOwnRows = {"software.own_rows_first", "products that begin with a rank's own rows", [](S s) {
                                       return s.software.communication.own_rows_first && s.strategy.tensor > 1 &&
                                              s.strategy.sequence_parallel;
                                     }};

// Each of these features says whether a spec uses an option of attention or context parallelism; combinations.cpp lists
// the options with which it does not work.
inline constexpr Feature kUnfused = {"strategy.attention", "unfused attention",
                                     [](S s) { return s.strategy.attention == Attention::unfused; }};
inline constexpr Feature kContext = {"strategy.context", "context above 1", [](S s) { return s.strategy.context > 1; }};
inline constexpr Feature kRing = {"strategy.context_kind", "a context ring, or Ulysses with micro_batch above 1",
                                  is::ring_of_parts};
inline constexpr Feature kFewHeads = {
    "strategy.context_kind", "Ulysses over more ranks than key/value heads",
    [](S s) { return s.strategy.context > 1 && s.model.kv_heads / s.strategy.tensor < s.strategy.context_ulysses; }};

// Each of these features says whether a spec uses an option of pipelines and their schedules; combinations.cpp lists
// the options with which it does not work.
inline constexpr Feature kPipeline = {"strategy.pipeline", "pipeline above 1",
                                      [](S s) { return s.strategy.pipeline > 1; }};
inline constexpr Feature kVocabulary = {"strategy.schedule", "a vocabulary that all stages share", [](S s) {
                                          return s.strategy.pipeline > 1 && spreads_vocabulary(s.strategy.schedule);
                                        }};
inline constexpr Feature kCopies = {"strategy.schedule", "several copies of the model (dualpipe, chimera)",
                                    [](S s) { return runs_both_ways(s.strategy.schedule); }};
inline constexpr Feature kCopiesApart = {
    "strategy.schedule", "copies of the model that reduce in unlike orders (chimera)", is::copies_out_of_step};
inline constexpr Feature kManyCopies = {"strategy.schedule", "more than two copies of the model",
                                        [](S s) { return model_copies(s.strategy.schedule) > 2; }};
inline constexpr Feature kAsynchronous = {
    "strategy.schedule", "updates while micro-batches are on their way (pipedream)",
    [](S s) { return is::schedule(s) != nullptr && is::schedule(s)->updates != Updates::flush; }};
inline constexpr Feature kAsynchronousStages = {"strategy.schedule",
                                                "updates on their way over several stages (pipedream)",
                                                [](S s) { return kAsynchronous.asked(s) && s.strategy.pipeline > 1; }};
inline constexpr Feature kBalanced = {"strategy.schedule", "activations that may leave their stage (bpipe)", [](S s) {
                                        return is::schedule(s) != nullptr && is::schedule(s)->moves != nullptr;
                                      }};
inline constexpr Feature kSharedTable = {"strategy.schedule", "a schedule that spreads the vocabulary",
                                         [](S s) { return spreads_vocabulary(s.strategy.schedule); }};
inline constexpr Feature kEvicted = {"strategy.schedule", "activations that another stage keeps (bpipe)", is::evicted};
inline constexpr Feature kWoven = {"strategy.overlap.micro_batches", "overlap.micro_batches",
                                   [](S s) { return s.strategy.overlap.micro_batches; }};
inline constexpr Feature kNotWoven = {"strategy.schedule",
                                      "a schedule other than interleaved, or 1f1b without a pipeline",
                                      [](S s) { return !weaves_if_asked(s.strategy.schedule, s.strategy.pipeline); }};
inline constexpr Feature kWovenEnds = {"strategy.schedule", "woven passes of both ends of a model with tied embeddings",
                                       [](S s) { return s.model.tied_embeddings && is::both_ends(s) && is::woven(s); }};
inline constexpr Feature kWovenChunk = {"strategy.schedule", "woven passes over the same weights", is::woven_chunk};
inline constexpr Feature kReplicas = {"strategy.stage_replicas", "stage_replicas",
                                      [](S s) { return !s.strategy.stage_replicas.empty(); }};
inline constexpr Feature kUnlikeEnds = {
    "strategy.stage_replicas", "tied embeddings over first and last stages of unlike numbers of ranks", is::ends_apart};
inline constexpr Feature kLater = {
    "software.post_update_validation", "updates that are validated in the next step",
    [](S s) { return s.software.communication.post_update_validation && s.strategy.pipeline > 1; }};
inline constexpr Feature kValidates = {"software.post_update_validation", "post_update_validation",
                                       [](S s) { return s.software.communication.post_update_validation; }};
inline constexpr Feature kOrderFile = {"strategy.schedule", "an order from a file",
                                       [](S s) { return s.strategy.schedule == "file"; }};
inline constexpr Feature kTurns = {"strategy.interleave_group", "interleave_group",
                                   [](S s) { return s.strategy.interleave_group != 0; }};
inline constexpr Feature kWarmUp = {"strategy.extra_warm_up", "extra_warm_up",
                                    [](S s) { return s.strategy.extra_warm_up != 0; }};
inline constexpr Feature kNoTurns = {"strategy.schedule", "a schedule whose chunks take no turns",
                                     [](S s) { return is::schedule(s) == nullptr || !is::schedule(s)->takes_turns; }};
inline constexpr Feature kVerticalSync = {"strategy.vertical_sync", "vertical_sync",
                                          [](S s) { return s.strategy.vertical_sync; }};
inline constexpr Feature kOneVersion = {
    "strategy.schedule", "a schedule that does not update after every micro-batch",
    [](S s) { return is::schedule(s) == nullptr || is::schedule(s)->updates != Updates::every_micro_batch; }};

// Each of these features says whether a spec uses an option of data parallelism and sharding; combinations.cpp lists
// the options with which it does not work.
inline constexpr Feature kShards = {"strategy.sharding", "shards of the states",
                                    [](S s) { return s.strategy.sharding != Sharding::none; }};
inline constexpr Feature kWholeStates = {
    "strategy.sharding", "states that each of several data ranks holds whole",
    [](S s) { return s.strategy.sharding == Sharding::none && s.strategy.data * s.strategy.context > 1; }};
inline constexpr Feature kUnitGradients = {"strategy.sharding",
                                           "gradients reduced unit by unit (zero2, zero3, fsdp, offload)",
                                           [](S s) { return unit_gradients(s, is::sharding(s)); }};
inline constexpr Feature kKeptGradients = {"strategy.keep_16bit_gradients", "keep_16bit_gradients",
                                           [](S s) { return s.strategy.keep_16bit_gradients; }};
inline constexpr Feature kUnitEnds = {
    "strategy.schedule", "gradients reduced unit by unit where one of several stages has both ends of the model",
    [](S s) { return kUnitGradients.asked(s) && is::both_ends(s); }};
inline constexpr Feature kGathered = {"strategy.sharding", "weights gathered before use (zero3, fsdp)",
                                      [](S s) { return is::sharding(s).shards_parameters; }};
inline constexpr Feature kNotGathered = {"strategy.sharding", "weights that every data rank holds whole",
                                         [](S s) { return !is::sharding(s).shards_parameters; }};
inline constexpr Feature kWideShards = {"strategy.sharding", "shards that are the master weights (fsdp)",
                                        [](S s) { return is::sharding(s).fp32_shards; }};
inline constexpr Feature kHybrid = {"strategy.sharding", "hsdp", [](S s) { return is::sharding(s).hybrid; }};
inline constexpr Feature kNotHybrid = {"strategy.sharding", "a sharding other than hsdp",
                                       [](S s) { return !is::sharding(s).hybrid; }};
inline constexpr Feature kShardGroup = {"strategy.shard_group", "shard_group",
                                        [](S s) { return s.strategy.shard_group != 0; }};
inline constexpr Feature kMaster = {"strategy.sharding", "data-parallel", [](S s) { return is::sharding(s).master; }};
inline constexpr Feature kNodes = {"gpus", "several nodes", [](S s) { return s.gpus > s.cluster.gpus_per_node; }};
inline constexpr Feature kServers = {"strategy.sharding", "parameter-server",
                                     [](S s) { return is::sharding(s).servers; }};
inline constexpr Feature kNoServers = {"strategy.sharding", "a sharding other than parameter-server",
                                       [](S s) { return !is::sharding(s).servers; }};
inline constexpr Feature kServerKeys = {"strategy.parameter_server", "parameter_server",
                                        [](S s) { return s.strategy.parameter_server.has_value(); }};
inline constexpr Feature kApart = {"strategy.sharding", "data-parallel or parameter-server",
                                   [](S s) { return is::sharding(s).master || is::sharding(s).servers; }};
inline constexpr Feature kOwnPace = {"strategy.parameter_server.mode", "mode: async or ssp",
                                     [](S s) { return asynchronous_workers(s.strategy); }};
inline constexpr Feature kChains = {
    "strategy.parameter_server.replicas", "several replicas of servers",
    [](S s) { return kServers.asked(s) && s.strategy.parameter_server && s.strategy.parameter_server->replicas > 1; }};
inline constexpr Feature kSnapshots = {"strategy.parameter_server.snapshot_every", "snapshots of servers", [](S s) {
                                         return kServers.asked(s) && s.strategy.parameter_server &&
                                                s.strategy.parameter_server->snapshot_every > 0;
                                       }};
inline constexpr Feature kStaleness = {
    "strategy.parameter_server.staleness", "staleness",
    [](S s) { return s.strategy.parameter_server && s.strategy.parameter_server->staleness > 0; }};
inline constexpr Feature kNotBounded = {"strategy.parameter_server.mode", "a mode other than ssp", [](S s) {
                                          return s.strategy.parameter_server && !bounded_staleness(s.strategy);
                                        }};
inline constexpr Feature kGatherInUpdate = {"strategy.overlap.parameter_gather", "overlap.parameter_gather: update",
                                            [](S s) { return s.strategy.overlap.gather_in_update; }};
inline constexpr Feature kLateGather = {"strategy.overlap.parameter_gather", "overlap.parameter_gather: false",
                                        [](S s) { return !s.strategy.overlap.parameter_gather; }};
inline constexpr Feature kEarlyReduce = {"strategy.overlap.gradient_reduce", "overlap.gradient_reduce",
                                         [](S s) { return s.strategy.overlap.gradient_reduce; }};
inline constexpr Feature kFusedBuffers = {"strategy.fused_buffers", "fused_buffers",
                                          [](S s) { return s.strategy.fused_buffers; }};
inline constexpr Feature kCopiedGradients = {"software.gradient_average", "a stack that copies gradients into buckets",
                                             is::copied_gradients};
inline constexpr Feature kClip = {"strategy.clip", "clip above 0", [](S s) { return s.strategy.clip > 0; }};

// Each of these features says whether a spec uses an option that sets when gradients are reduced, which weights are
// gathered and reduced together, or the number of bits in which they are transferred.
inline constexpr Feature kGivenSync = {"strategy.no_sync", "no_sync",
                                       [](S s) { return s.strategy.no_sync.has_value(); }};
inline constexpr Feature kReducedEachTime = {"strategy.no_sync", "whole gradients reduced with every micro-batch",
                                             [](S s) { return reduces_each_time(s, is::sharding(s)); }};
inline constexpr Feature kWholeSums = {
    "strategy.no_sync", "whole gradients beside shards (no_sync with zero3 or fsdp)",
    [](S s) { return unit_gradients(s, is::sharding(s)) && !fresh_gradients(s, is::sharding(s)); }};
inline constexpr Feature kJoinedUnits = {"strategy.units", "units other than layers",
                                         [](S s) { return !s.strategy.units.by_layer(); }};
inline constexpr Feature kNarrowed = {"strategy.zero_quantize", "zero_quantize",
                                      [](S s) { return s.strategy.zero_quantize.any(); }};
inline constexpr Feature kUnevenNodes = {"strategy.zero_quantize",
                                         "zero_quantize on nodes with unlike numbers of data ranks", is::uneven_nodes};
inline constexpr Feature kNotZero3 = {"strategy.sharding", "a sharding other than zero3", [](S s) {
                                        return !is::sharding(s).shards_parameters || is::sharding(s).fp32_shards;
                                      }};

// Each of these features says whether a spec has frozen weights or packed samples.
inline constexpr Feature kFrozenWeights = {"model", "weights that do not train (lora, frozen)",
                                           [](S s) { return has_frozen(s.model) && !s.generation; }};
inline constexpr Feature kOrderOfTraining = {"strategy.schedule", "a schedule made for backward passes",
                                             is::order_of_training};
// Options of the stack's kernels.
inline constexpr Feature kClampApart = {
    "software.fused_clamp", "clamps of activations by operations of their own",
    [](S s) { return s.model.activation_clamp > 0 && !s.software.kernels.fused_clamp; }};
inline constexpr Feature kGraphedParts = {"software.cuda_graph_scope", "CUDA graphs of parts of a step", [](S s) {
                                            return s.software.kernels.cuda_graphs && !graphs_step(s.software);
                                          }};

inline constexpr Feature kGenerates = {"workload", "text that is generated (workload: generate)",
                                       [](S s) { return s.generation.has_value(); }};
inline constexpr Feature kSpeculates = {"generate.drafts", "speculative decoding (generate.drafts)",
                                        [](S s) { return s.generation && s.generation->drafts > 0; }};
inline constexpr Feature kNarrowLatentCache = {
    "generate.kv_precision", "keys and values of 8 bits or fewer of latent attention",
    [](S s) { return s.generation && is_eight_bit(s.generation->kv_precision) && s.model.mla; }};
inline constexpr Feature kOutliers = {
    "strategy.quantise", "weights with outliers or quantised scales",
    [](S s) { return s.generation && (s.strategy.weights.outliers > 0 || s.strategy.weights.scale_group > 0); }};
inline constexpr Feature kRounds = {"strategy.quantise", "training that rounds weights and inputs (quantise)",
                                    [](S s) { return !s.generation && s.strategy.weights.narrow(); }};
inline constexpr Feature kServedBiases = {"model", "biases of experts where text is generated",
                                          [](S s) { return s.generation && s.model.moe && has_mlp_bias(s.model); }};
inline constexpr Feature kCompressedBiases = {"model", "biases of latent attention where text is generated",
                                              [](S s) { return s.generation && s.model.mla && s.model.bias; }};
inline constexpr Feature kDocuments = {"sequence.documents", "samples packed from documents",
                                       [](S s) { return s.documents.has_value(); }};

// Features of precision, optimizer and loss; combinations.cpp lists the options with which each does not work.
inline constexpr Feature kEightBitStates = {"strategy.optimizer.states", "states of 8 bits",
                                            [](S s) { return s.strategy.optimizer.eight_bit; }};
inline constexpr Feature kWithoutMoments = {"strategy.optimizer", "sgd or adafactor",
                                            [](S s) { return s.strategy.optimizer.moments() == 0; }};
inline constexpr Feature kWholeMatrices = {"strategy.optimizer", "muon or adafactor", [](S s) {
                                             const OptimizerKind k = s.strategy.optimizer.kind;
                                             return k == OptimizerKind::muon || k == OptimizerKind::adafactor;
                                           }};
inline constexpr Feature kMuon = {"strategy.optimizer", "muon",
                                  [](S s) { return s.strategy.optimizer.kind == OptimizerKind::muon; }};
inline constexpr Feature kLion = {"strategy.optimizer", "lion",
                                  [](S s) { return s.strategy.optimizer.kind == OptimizerKind::lion; }};
inline constexpr Feature kEightBit = {"strategy.precision", "eight-bit products",
                                      [](S s) { return is_eight_bit(s.strategy.precision); }};
inline constexpr Feature kCheckpoints = {"strategy.checkpoint", "checkpoint",
                                         [](S s) { return s.strategy.checkpoint.has_value(); }};
inline constexpr Feature kHalf = {"strategy.precision", "fp16",
                                  [](S s) { return s.strategy.precision == Precision::fp16; }};
inline constexpr Feature kUnexecuted = {"strategy.precision", "a precision other than fp32, bf16 and fp16", [](S s) {
                                          const Precision p = s.strategy.precision;
                                          return p != Precision::fp32 && p != Precision::bf16 && p != Precision::fp16;
                                        }};
inline constexpr Feature kOtherGradients = {
    "strategy.gradient_precision", "gradients of a format other than fp32 and the precision", [](S s) {
      const Precision g = s.strategy.gradient_precision, p = s.strategy.precision;
      return g != Precision::fp32 && g != p && !(g == Precision::bf16 && p == Precision::fp32);
    }};
inline constexpr Feature kNarrowStates = {"strategy.optimizer", "states narrower than fp32", [](S s) {
                                            const Optimizer& o = s.strategy.optimizer;
                                            return (o.moment_bytes != 4 && !o.eight_bit) || o.master_bytes != 4;
                                          }};
inline constexpr Feature kLossMetrics = {"software.loss_metrics", "loss_metrics",
                                         [](S s) { return s.software.kernels.loss_metrics > 0; }};
inline constexpr Feature kLossInPlace = {
    "software.fused_loss_on", "a fused loss of the logits themselves",
    [](S s) { return s.software.kernels.fused_cross_entropy && s.software.kernels.fused_loss_on != LossTensor::copy; }};

// Each of these features says whether a spec uses an option of recomputation; combinations.cpp lists the options with
// which it does not work.
inline constexpr Feature kNotWhole = {"strategy.recompute", "recompute other than full",
                                      [](S s) { return !s.strategy.recompute.layer; }};
inline constexpr Feature kRecomputedExperts = {"strategy.recompute", "recompute of moe or moe_activation", [](S s) {
                                                 return s.strategy.recompute.moe || s.strategy.recompute.moe_activation;
                                               }};
inline constexpr Feature kRecomputedLatent = {"strategy.recompute", "recompute of mla_up_proj",
                                              [](S s) { return s.strategy.recompute.mla_up_proj; }};
inline constexpr Feature kPartitioned = {"strategy.partition_activations", "partition_activations",
                                         [](S s) { return s.strategy.partition_activations; }};
inline constexpr Feature kContiguous = {"strategy.contiguous_activations", "contiguous_activations",
                                        [](S s) { return s.strategy.contiguous_activations; }};
inline constexpr Feature kExpertOverlap = {"strategy.overlap.expert", "overlap.expert",
                                           [](S s) { return s.strategy.overlap.expert; }};

// Each of these features says whether a spec uses an option of expert parallelism; combinations.cpp lists the options
// with which it does not work.
inline constexpr Feature kExpertRanks = {"strategy.expert", "expert above 1",
                                         [](S s) { return s.strategy.expert > 1; }};
inline constexpr Feature kExpertTensor = {"strategy.expert_tensor", "expert_tensor above 1",
                                          [](S s) { return s.strategy.expert_tensor > 1; }};

// Each of these features says whether a spec uses an option of offload; combinations.cpp lists the options with which
// it does not work.
inline constexpr Feature kOffload = {"strategy.offload", "offload", [](S s) { return s.strategy.offload.any(); }};
inline constexpr Feature kTiling = {"strategy.offload.tiling", "offload.tiling above 1",
                                    [](S s) { return s.strategy.offload.tiling > 1; }};
inline constexpr Feature kHostUpdate = {"strategy.offload.optimizer", "offload.optimizer",
                                        [](S s) { return s.strategy.offload.optimizer != MemoryTier::device; }};
inline constexpr Feature kDeviceUpdate = {"strategy.offload.optimizer", "offload.optimizer: none",
                                          [](S s) { return s.strategy.offload.optimizer == MemoryTier::device; }};
inline constexpr Feature kHostWeights = {"strategy.offload.parameters", "offload.parameters",
                                         [](S s) { return s.strategy.offload.parameters != MemoryTier::device; }};
inline constexpr Feature kHostGradients = {"strategy.offload.gradients", "offload.gradients",
                                           [](S s) { return s.strategy.offload.gradients != MemoryTier::device; }};
inline constexpr Feature kDiskStates = {"strategy.offload", "states on disks (nvme)", is::state_on_disk};
inline constexpr Feature kDelayed = {"strategy.offload.optimizer.delayed_update", "delayed_update",
                                     [](S s) { return s.strategy.offload.delayed_update; }};
inline constexpr Feature kHostActivations = {"strategy.offload.activations", "offload.activations",
                                             [](S s) { return s.strategy.offload.activations != MemoryTier::device; }};
inline constexpr Feature kDeviceActivations = {"strategy.offload.activations", "offload.activations: none", [](S s) {
                                                 return s.strategy.offload.activations == MemoryTier::device;
                                               }};
inline constexpr Feature kActivationLayers = {"strategy.offload.activations.layers", "offload.activations.layers",
                                              [](S s) { return s.strategy.offload.activation_layers.has_value(); }};

}  // namespace orrery::feature
