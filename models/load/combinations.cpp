#include "models/load/combinations.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/features.h"
#include "models/load/open_spec.h"

namespace orrery {
namespace feature {
namespace {

constexpr std::string_view kNotYet = "not built yet", kOut = "leave it out";
constexpr const Feature* kAlone = nullptr;

// The table of combinations of options that are rejected. Rows are checked from first to last: keys without the key
// that they need, then options that are not implemented together.
constexpr Pair kPairs[] = {
    // These rows have keys that mean nothing without another key, or together with another key.
    {&kDepth, &kNoDepth, "it is the depth of a 2.5d grid", "set tensor_kind: 2.5d", Limit::spec},
    {&kRecomputedExperts, &kNoExperts, "there are no experts to run again", "leave moe and moe_activation out",
     Limit::spec},
    {&kRecomputedLatent, &kNoLatent, "there is no such product", "leave mla_up_proj out", Limit::spec},
    {&kExpertOverlap, &kNoSharedExperts, "there are no shared experts to compute meanwhile", kOut, Limit::spec},
    {&kWoven, &kNotWoven, "there is no order to weave", kOut, Limit::spec},
    {&kStaleness, &kNotBounded, "that mode has no bound", "choose mode: ssp", Limit::spec},
    {&kActivationLayers, &kDeviceActivations, "they go nowhere", "give a device: cpu", Limit::spec},
    {&kExpertRanks, &kNoExperts, "there are no experts to share out", kOut, Limit::spec},
    {&kExpertTensor, &kNoExperts, "there are no experts to cut", kOut, Limit::spec},
    {&kShardGroup, &kNotHybrid, "only hsdp has groups", kOut, Limit::spec},
    {&kServerKeys, &kNoServers, "there are no servers", "choose sharding: parameter-server", Limit::spec},
    {&kTurns, &kNoTurns, "it is an option of interleaved", kOut, Limit::spec},
    {&kWarmUp, &kNoTurns, "it is an option of interleaved", kOut, Limit::spec},
    {&kVerticalSync, &kOneVersion, "it is an option of pipedream", kOut, Limit::spec},
    {&kHostGradients, &kDeviceUpdate, "only the host's update reads them there", "set offload.optimizer: cpu or nvme",
     Limit::spec},
    {&kHostWeights, &kDeviceUpdate, "only the host's update writes them there", "set offload.optimizer: cpu or nvme",
     Limit::spec},
    {&kHostWeights, &kNotGathered, "nothing gathers them before use", "choose zero3 or fsdp", Limit::spec},
    {&kDelayed, &kDeviceUpdate, "it is an option of the host's update", "set optimizer: cpu", Limit::spec},
    {&kDelayed, &kDiskStates, "it needs the states in the host's memory", "choose cpu", Limit::spec},
    {&kDelayed, &kHostWeights, "it needs the weights on the device", "leave offload.parameters out", Limit::spec},
    {&kPartitioned, &kNotWhole, "it cuts the inputs of recomputed layers", "set recompute: full", Limit::spec},
    {&kPartitioned, &kNoTensor, "there are no tensor ranks to cut them over", kOut, Limit::spec},
    {&kPartitioned, &kSequence, "sequence_parallel cuts them already", kOut, Limit::spec},
    {&kContiguous, &kNotWhole, "it places the inputs of recomputed layers", "set recompute: full", Limit::spec},
    {&kContiguous, &kHostActivations, "it places inputs that stay on the device", "set offload.activations: none",
     Limit::spec},
    {&kGrid, &kSequence, "a grid cuts activations itself", "leave sequence_parallel out", Limit::spec},
    {&kMaster, &kNodes, "it is one process on one node", "choose none", Limit::spec},
    {&kDiskStates, &kWideShards, "it leaves the device for the host alone", "choose zero3", Limit::spec},
    {&kHostUpdate, &kWholeStates, "every rank would update everything", "choose zero2", Limit::spec},
    {&kJoinedUnits, &kNotGathered, "nothing gathers them before use", "choose zero3 or fsdp", Limit::spec},
    {&kNarrowed, &kNotZero3, "it narrows the transfers of zero3", "choose zero3", Limit::spec},
    {&kValidates, &kShards, "it is built for states that are whole", "choose none", Limit::spec},

    // These rows have options that exclude each other.
    {&kClip, &kOwnPace, "there is no sum of gradients whose norm could be taken", "set clip: 0"},
    {&kClip, &kChains, kNotYet, "set clip: 0"},
    {&kClip, &kAsynchronousStages, "a norm over all stages would wait for each of them", "set clip: 0"},
    {&kHalf, &kAsynchronous, "a loss scale over all stages would wait for each of them", "choose bf16"},
    {&kUnitGradients, &kCopiesApart, "they would reduce in orders that differ",
     "choose dualpipe, or zero1 or none and gradients on the device"},
    {&kEarlyReduce, &kCopies, "the copies reduce in one order, after the last backward", kOut},
    {&kLossMetrics, &kVocabulary, "no stage has all logits", "set loss_metrics: 0"},
    {&kLossInPlace, &kVocabulary, "a stage's part of the loss is of an fp32 copy", "choose copy"},
    {&kEvicted, &kExperts, "not built yet: the other stage does not know their sizes", "choose 1f1b"},
    {&kContiguous, &kEvicted, "they cannot lie in one buffer", kOut},
    {&kGathered, &kWovenEnds, "not built yet: one pass gives up weights that the other reads", "choose zero2 or less"},
    {&kGathered, &kWovenChunk, "not built yet: one pass gives up weights that the other reads",
     "choose zero2 or less, or leave overlap.micro_batches out"},
    {&kUnitGradients, &kUnlikeEnds, "not built yet: unlike numbers of ranks would reduce a table unit by unit",
     "choose none or zero1 and gradients on the device, or as many ranks for the last stage as for the first"},

    // These rows have properties of the model that do not work with other options.
    {&kBias, &kGatedExperts, kNotYet, "choose another model"},
    {&kParallelBlock, &kExperts, kNotYet, "choose another model"},
    {&kParallelBlock, &kRecurrence, kNotYet, "choose another model"},
    {&kNotRope, &kLatent, kNotYet, "choose rope"},
    {&kPredictions, &kTied, kNotYet, "set mtp_layers: 0"},
    {&kPredictions, &kEmbeddingNorm, kNotYet, "set mtp_layers: 0"},
    {&kCompressed, &kContext, "not built yet: a compressed key may be of tokens on two ranks", "choose context: 1"},
    {&kSinks, &kLatent, kNotYet, "leave one of the two out"},
    {&kNormOfAllHeads, &kLatent, kNotYet, "leave one of the two out"},
    {&kSinks, &kContext, kNotYet, "choose context: 1"},
    {&kSinks, &kGrid, kNotYet, "choose 1d"},
    {&kNormOfAllHeads, &kGrid, kNotYet, "choose 1d"},
    {&kEmbeddingNorm, &kVocabulary, kNotYet, "choose another schedule"},
    {&kPredictions, &kLearned, kNotYet, "set mtp_layers: 0"},
    {&kPostNorms, &kParallelBlock, kNotYet, "choose another model"},
    {&kNoSequence, &kExperts, kNotYet, "set sequence_parallel: true"},
    {&kAttentionGate, &kLatent, kNotYet, "leave one of the two out"},
    {&kAttentionGate, &kGrid, kNotYet, "choose 1d"},
    {&kRecurrence, &kGrid, kNotYet, "choose 1d"},
    {&kRecurrence, &kContext, "not built yet: states would have to pass from rank to rank", "choose context: 1"},
    {&kIndexer, &kContext, kNotYet, "choose context: 1"},
    {&kIndexer, &kNoSequence, kNotYet, "set sequence_parallel: true"},
    {&kCompressed, &kOtherAttention, "they do not apply to it", "leave one of the two out"},
    {&kCompressed, &kNoSequence, kNotYet, "set sequence_parallel: true"},
    {&kCompressed, &kGrid, kNotYet, "choose 1d"},
    {&kCompressed, &kParallelBlock, kNotYet, "choose another model"},
    {&kCompressed, &kUnfused, kNotYet, "choose flash"},
    {&kStreams, &kParallelBlock, kNotYet, "choose another model"},
    {&kStreams, &kGrid, kNotYet, "choose 1d"},
    {&kStreams, &kVocabulary, kNotYet, "choose another schedule"},
    {&kUnfused, &kLatent, kNotYet, "choose flash"},
    {&kUnfused, &kRing, kNotYet, "choose flash, or context_kind: ulysses and micro_batch: 1"},

    // These rows have options of tensor parallelism that do not work with other options.
    {&kGrid, &kExperts, kNotYet, "choose 1d"},
    {&kGrid, &kLatent, kNotYet, "choose 1d"},
    {&kGrid, &kPredictions, kNotYet, "choose 1d"},
    {&kGrid, &kContext, kNotYet, "choose 1d"},
    {&kGrid, &kEightBit, kNotYet, "choose 1d"},
    {&kGrid, &kOffload, kNotYet, "choose 1d"},
    {&kGrid, &kTiling, kNotYet, "choose 1d"},
    {&kGrid, &kPartitioned, kNotYet, "choose 1d"},
    {&kGrid, &kTensorOverlap, kNotYet, "choose 1d"},
    {&kGrid, &kHybrid, kNotYet, "choose 1d"},
    {&kGrid, &kCopies, kNotYet, "choose 1d"},
    {&kGrid, &kVocabulary, kNotYet, "choose 1d"},
    {&kGrid, &kReplicas, kNotYet, "choose 1d"},
    {&kTensorOverlap, &kNoSequence, kNotYet, "set sequence_parallel: true"},

    // These rows have options of data parallelism, parameter servers and offload that do not work with other options.
    {&kFusedBuffers, &kUnitGradients, kNotYet, kOut},
    {&kFusedBuffers, &kCopiedGradients, kNotYet, kOut},
    {&kFusedBuffers, &kApart, kNotYet, kOut},
    {&kTiling, &kEightBit, kNotYet, kOut},
    {&kTiling, &kTensorOverlap, kNotYet, kOut},
    {&kTiling, &kOwnRows, kNotYet, kOut},
    {&kHostUpdate, &kCopiedGradients, kNotYet, kOut},
    {&kChains, &kOwnPace, kNotYet, "choose mode: sync"},
    {&kSnapshots, &kChains, kNotYet, kOut},
    {&kSnapshots, &kOwnPace, kNotYet, kOut},
    {&kSnapshots, &kLateGather, kNotYet, kOut},
    {&kTensor, &kApart, kNotYet, "choose 1"},
    {&kPipeline, &kApart, kNotYet, "choose 1"},
    {&kContext, &kApart, kNotYet, "choose 1"},
    {&kExperts, &kApart, kNotYet, "choose another model"},
    {&kPredictions, &kApart, kNotYet, "set mtp_layers: 0"},
    {&kOffload, &kApart, kNotYet, kOut},
    {&kHalf, &kApart, kNotYet, "choose bf16"},
    {&kEightBit, &kApart, kNotYet, "choose bf16"},

    // These rows have options that say when gradients are reduced, which weights form a unit, which weights train and
    // on which samples.
    {&kReducedEachTime, &kCopies, kNotYet, kOut},
    {&kReducedEachTime, &kAsynchronous, kNotYet, kOut},
    {&kReducedEachTime, &kApart, kNotYet, kOut},
    {&kReducedEachTime, &kReplicas, kNotYet, kOut},
    {&kReducedEachTime, &kExperts, kNotYet, kOut},
    {&kReducedEachTime, &kHostUpdate, kNotYet, kOut},
    {&kReducedEachTime, &kFusedBuffers, kNotYet, kOut},
    {&kWholeSums, &kOffload, kNotYet, kOut},
    {&kWholeSums, &kTiling, kNotYet, kOut},
    {&kWholeSums, &kPredictions, kNotYet, kOut},
    {&kWholeSums, &kCopies, kNotYet, kOut},
    {&kWholeSums, &kReplicas, kNotYet, kOut},
    {&kJoinedUnits, &kOffload, kNotYet, kOut},
    {&kJoinedUnits, &kTiling, kNotYet, kOut},
    {&kJoinedUnits, &kPredictions, kNotYet, kOut},
    {&kJoinedUnits, &kVocabulary, kNotYet, kOut},
    {&kJoinedUnits, &kCopies, kNotYet, kOut},
    {&kJoinedUnits, &kUnitEnds, kNotYet, kOut},
    {&kJoinedUnits, &kNarrowed, kNotYet, kOut},
    {&kNarrowed, &kWholeSums, kNotYet, kOut},
    {&kNarrowed, &kFrozenWeights, kNotYet, kOut},
    {&kNarrowed, &kExperts, kNotYet, kOut},
    {&kNarrowed, &kOffload, kNotYet, kOut},
    {&kNarrowed, &kTiling, kNotYet, kOut},
    {&kNarrowed, &kPredictions, kNotYet, kOut},
    {&kNarrowed, &kVocabulary, kNotYet, kOut},
    {&kNarrowed, &kCopies, kNotYet, kOut},
    {&kNarrowed, &kReplicas, kNotYet, kOut},
    {&kNarrowed, &kTied, kNotYet, kOut},
    {&kNarrowed, &kEightBit, kNotYet, kOut},
    {&kNarrowed, &kGrid, kNotYet, kOut},
    {&kFrozenWeights, &kExperts, kNotYet, kOut},
    {&kFrozenWeights, &kLatent, kNotYet, kOut},
    {&kFrozenWeights, &kCompressed, kNotYet, kOut},
    {&kFrozenWeights, &kStreams, kNotYet, kOut},
    {&kFrozenWeights, &kPredictions, kNotYet, kOut},
    {&kFrozenWeights, &kGrid, kNotYet, kOut},
    {&kFrozenWeights, &kEightBit, kNotYet, kOut},
    {&kFrozenWeights, &kOffload, kNotYet, kOut},
    {&kFrozenWeights, &kTiling, kNotYet, kOut},
    {&kFrozenWeights, &kVocabulary, kNotYet, kOut},
    {&kFrozenWeights, &kApart, kNotYet, kOut},
    {&kFrozenWeights, &kReplicas, kNotYet, kOut},
    {&kFrozenWeights, &kCopies, kNotYet, kOut},
    {&kFrozenWeights, &kAsynchronous, kNotYet, kOut},
    {&kFrozenWeights, &kEvicted, kNotYet, kOut},
    {&kFrozenWeights, &kTensorOverlap, kNotYet, kOut},
    {&kFrozenWeights, &kOwnRows, kNotYet, kOut},
    {&kFrozenWeights, &kValidates, kNotYet, kOut},
    {&kFrozenWeights, &kNormOfAllHeads, kNotYet, kOut},
    {&kFrozenWeights, &kSinks, kNotYet, kOut},
    {&kDocuments, &kContext, kNotYet, kOut},
    {&kDocuments, &kUnfused, kNotYet, kOut},
    {&kDocuments, &kLatent, kNotYet, kOut},
    {&kDocuments, &kCompressed, kNotYet, kOut},
    {&kDocuments, &kPredictions, kNotYet, kOut},
    {&kDocuments, &kGrid, kNotYet, kOut},
    {&kDocuments, &kApart, kNotYet, kOut},
    {&kDocuments, &kSinks, kNotYet, kOut},
    {&kWholeMatrices, &kTensor, kNotYet, kOut},
    {&kWholeMatrices, &kExperts, kNotYet, kOut},
    {&kWholeMatrices, &kOffload, kNotYet, kOut},
    {&kWholeMatrices, &kApart, kNotYet, kOut},
    {&kWholeMatrices, &kFrozenWeights, kNotYet, kOut},
    {&kWholeMatrices, &kValidates, kNotYet, kOut},
    {&kWholeMatrices, &kAsynchronous, kNotYet, kOut},
    {&kWholeMatrices, &kHybrid, kNotYet, kOut},
    {&kWholeMatrices, &kCopiedGradients, kNotYet, kOut},
    {&kWholeMatrices, &kCopies, kNotYet, kOut},
    {&kWholeMatrices, &kReplicas, kNotYet, kOut},
    {&kWholeMatrices, &kVocabulary, kNotYet, kOut},
    {&kWholeMatrices, &kPredictions, kNotYet, kOut},
    {&kEightBitStates, &kOffload, kNotYet, kOut},
    {&kEightBitStates, &kApart, kNotYet, kOut},
    {&kLion, &kValidates, kNotYet, kOut},

    // These rows have options of pipelines that do not work with other options.
    {&kEightBit, &kAsynchronous, kNotYet, "choose bf16"},
    {&kShards, &kAsynchronous, kNotYet, "choose none"},
    {&kOffload, &kAsynchronous, kNotYet, kOut},
    {&kAsynchronousStages, &kTied, kNotYet, "choose another schedule, or an untied model"},
    {&kAsynchronousStages, &kPredictions, kNotYet, "choose another schedule, or mtp_layers: 0"},
    {&kVocabulary, &kPredictions, kNotYet, "choose another schedule, or mtp_layers: 0"},
    {&kVocabulary, &kCappedLogits, kNotYet, "choose another schedule"},
    {&kOffload, &kEvicted, kNotYet, kOut},
    {&kUnitEnds, &kPredictions, kNotYet, "choose zero1 or none, and gradients on the device"},
    {&kLater, &kExperts, kNotYet, kOut},
    {&kLater, &kOffload, kNotYet, kOut},
    {&kLater, &kReplicas, kNotYet, kOut},
    {&kLater, &kCopies, kNotYet, kOut},
    {&kCopies, &kReplicas, kNotYet, "choose a schedule with one copy of the model"},
    {&kAsynchronous, &kReplicas, kNotYet, "choose a schedule with one update a step"},
    {&kEvicted, &kReplicas, kNotYet, "choose 1f1b"},
    {&kVocabulary, &kReplicas, kNotYet, "choose 1f1b"},
    {&kContext, &kReplicas, kNotYet, "choose 1"},
    {&kExperts, &kReplicas, kNotYet, "choose another model"},
    {&kPredictions, &kReplicas, kNotYet, "set mtp_layers: 0"},
    {&kHybrid, &kReplicas, kNotYet, "choose none, zero1, zero2, zero3 or fsdp"},
    {&kApart, &kReplicas, kNotYet, "choose none, zero1, zero2, zero3 or fsdp"},
    {&kOffload, &kReplicas, kNotYet, kOut},

    // These rows have properties of the cluster that do not work with other options.
    {&kStragglers, &kReplicas, kNotYet, kOut},
    {&kStragglers, &kHybrid, kNotYet, kOut},
    {&kStragglers, &kExperts, kNotYet, kOut},
    {&kStragglers, &kCopies, kNotYet, kOut},
    {&kFailures, kAlone, "not built yet: a simulated step has none", kOut},

    // These rows have options that a run by CPU or GPU ranks does not support.
    {&kUnexecuted, kAlone, "no ranks execute it", "choose fp32 or bf16", Limit::ranks},
    {&kHalfGradients, kAlone, "no ranks execute them", "choose fp32 or bf16", Limit::ranks},
    {&kNarrowStates, kAlone, "no ranks keep them", "choose fp32", Limit::ranks},
    {&kAlibi, kAlone, "no ranks execute it", "choose rope, learned or none", Limit::ranks},
    {&kCaps, kAlone, "no ranks execute them", "choose another model", Limit::ranks},
    {&kSinks, kAlone, "no ranks execute them", "choose another model", Limit::ranks},
    {&kNormOfAllHeads, kAlone, "no ranks execute them", "choose another model", Limit::ranks},
    {&kBareNorms, kAlone, "no ranks execute them", "choose another model", Limit::ranks},
    {&kIndexer, kAlone, "no ranks execute it", "choose another model", Limit::ranks},
    {&kCompressed, kAlone, "no ranks execute it", "choose another model", Limit::ranks},
    {&kStreams, kAlone, "no ranks execute them", "choose another model", Limit::ranks},
    {&kHashed, kAlone, "no ranks have such a table", "set hash_layers: 0", Limit::ranks},
    {&kRecurrence, kAlone, "GPU ranks do not execute them", "choose another model", Limit::gpu_ranks},
    {&kAttentionGate, kAlone, "GPU ranks do not execute it", "choose another model", Limit::gpu_ranks},
    {&kEightBitStates, kAlone, "no ranks keep them", "choose wide", Limit::ranks},
    {&kWholeMatrices, kAlone, "no ranks execute them", "choose adamw or lion", Limit::ranks},
    {&kNf4, kAlone, "no ranks execute them", "choose weights: precision", Limit::ranks},
    {&kNarrowed, kAlone, "no ranks execute it", kOut, Limit::ranks},
    {&kFrozenWeights, kAlone, "GPU ranks do not execute them", kOut, Limit::gpu_ranks},
    {&kDocuments, kAlone, "GPU ranks do not execute them", kOut, Limit::gpu_ranks},
    {&kLion, kAlone, "GPU ranks do not execute it", "choose adamw", Limit::gpu_ranks},
    {&kReducedEachTime, kAlone, "GPU ranks do not execute it", "set no_sync: true", Limit::gpu_ranks},
    {&kWholeSums, kAlone, "GPU ranks do not execute it", "set no_sync: false", Limit::gpu_ranks},
    {&kJoinedUnits, kAlone, "GPU ranks do not execute them", "choose layer", Limit::gpu_ranks},
    {&kExperts, kAlone, "GPU ranks do not execute them", "choose another model", Limit::gpu_ranks},
    {&kLatent, kAlone, "GPU ranks do not execute it", "choose another model", Limit::gpu_ranks},
    {&kPredictions, kAlone, "GPU ranks do not execute it", "set mtp_layers: 0", Limit::gpu_ranks},
    {&kGrid, kAlone, "GPU ranks do not execute it", "choose 1d", Limit::gpu_ranks},
    {&kPieces, kAlone, "GPU ranks do not execute them", kOut, Limit::gpu_ranks},
    {&kOwnRows, kAlone, "GPU ranks do not execute them", kOut, Limit::gpu_ranks},
    {&kRing, kAlone, "GPU ranks exchange whole heads of one sequence", "choose ulysses and micro_batch: 1",
     Limit::gpu_ranks},
    {&kContext, &kUnfused, "GPU ranks exchange heads for flash attention", "choose flash", Limit::gpu_ranks},
    {&kFewHeads, kAlone, "GPU ranks exchange whole heads", "choose fewer context ranks", Limit::gpu_ranks},
    {&kAsynchronous, kAlone, "GPU ranks do not execute them", "choose 1f1b", Limit::gpu_ranks},
    {&kValidates, kAlone, "GPU ranks do not roll updates back", kOut, Limit::gpu_ranks},
    {&kLossInPlace, kAlone, "GPU ranks work on a copy", "choose copy", Limit::gpu_ranks},
    {&kMaster, kAlone, "GPU ranks do not execute it", "choose none", Limit::gpu_ranks},
    {&kServers, kAlone, "GPU ranks do not execute it", "choose none", Limit::gpu_ranks},

    // These rows have options for which the search has no bounds.
    {&kGridKind, kAlone, "search has no bounds for it yet", kOut, Limit::search},
    {&kWoven, kAlone, "search has no bounds for it yet", kOut, Limit::search},
    {&kReplicas, kAlone, "search has no bounds for it yet", kOut, Limit::search},
    {&kValidates, kAlone, "search has no bounds for it yet", kOut, Limit::search},
    {&kGivenSync, kAlone, "search has no bounds for it yet", kOut, Limit::search},
    {&kJoinedUnits, kAlone, "search has no bounds for them yet", kOut, Limit::search},
    {&kNarrowed, kAlone, "search has no bounds for it yet", kOut, Limit::search},
    {&kFrozenWeights, kAlone, "search has no bounds for them yet", kOut, Limit::search},
    {&kDocuments, kAlone, "search has no bounds for them yet", kOut, Limit::search},
    {&kEightBitStates, kAlone, "search has no bounds for them yet", "choose wide", Limit::search},
    {&kWholeMatrices, kAlone, "search has no bounds for them yet", "choose adamw or lion", Limit::search},
    {&kOrderFile, kAlone, "search has no bounds for it yet", "leave the key out or name a schedule", Limit::search},
    {&kAsynchronous, kAlone, "search has no bounds for them yet", "leave the key out or name another", Limit::search},
    {&kBalanced, kAlone, "search has no bounds for them yet", "leave the key out or name another", Limit::search},
    {&kSharedTable, kAlone, "search has no bounds for it yet", "leave the key out or name another", Limit::search},
    {&kManyCopies, kAlone, "search has no bounds for them yet", "leave the key out or name another", Limit::search},
    {&kApart, kAlone, "search has no bounds for ranks that do unlike work", "leave the key out or name another",
     Limit::search},
};

}  // namespace
}  // namespace feature

namespace {

// Returns the origin of a key that the spec gives, or of a key inside it: "strategy.offload.optimizer.device" for
// "strategy.offload". Null if the spec gives none of these.
const Origin* given(const Spec& spec, std::string_view key) {
  for (const Origin& o : spec.origins) {
    const bool inside = o.key.starts_with(key) && (o.key.size() == key.size() || o.key[key.size()] == '.');
    if (inside && is_given(o)) return &o;
  }
  return nullptr;
}

// Returns the name of the spec's file, taken from the origins of its values; "" if all values are given by --set.
std::string file_of(const Spec& spec) {
  const auto in_file = [](const Origin& o) { return is_given(o) && o.from != "--set"; };
  const auto found = std::ranges::find_if(spec.origins, in_file);
  return found == spec.origins.end() ? "" : found->from.substr(0, found->from.rfind(':'));
}

// The option to name first in a message, and the origin of its key: the option whose key the spec gives; if the spec
// gives neither, a property of the model, because a spec that names a model thereby asks for its properties.
struct Blame {
  std::string_view key;
  const Origin* at = nullptr;
};
Blame blame(const Spec& spec, const Pair& pair) {
  for (const Feature* f : {pair.a, pair.b}) {
    if (f == nullptr) continue;
    if (const Origin* at = given(spec, f->key); at != nullptr) return {f->key, at};
  }
  for (const Feature* f : {pair.a, pair.b}) {
    if (f != nullptr && f->key.starts_with("model")) return {f->key, given(spec, "model")};
  }
  return {pair.a->key, nullptr};
}

bool holds_for(Limit row, Limit asked) {
  const bool planned = row == Limit::spec && asked == Limit::plan;
  return row == asked || planned || (row == Limit::ranks && asked == Limit::gpu_ranks);
}

}  // namespace

std::string_view name_of(Limit limit) {
  constexpr std::string_view kNames[] = {"the spec", "the plan", "CPU and GPU ranks", "GPU ranks", "search"};
  return kNames[static_cast<std::size_t>(limit)];
}

std::span<const Pair> combinations() { return feature::kPairs; }

const Pair* first_limit(const Spec& spec, Limit which) {
  const auto broken = [&](const Pair& p) {
    return holds_for(p.which, which) && (p.b == nullptr || p.b->asked(spec)) && p.a->asked(spec);
  };
  const auto found = std::ranges::find_if(combinations(), broken);
  return found == combinations().end() ? nullptr : &*found;
}

std::string refused_key(const Spec& spec, const Pair& pair) {
  const Origin* at = blame(spec, pair).at;
  return at == nullptr ? "" : at->key;
}

std::string refusal(const Spec& spec, const Pair& pair) {
  const std::string with = pair.b == nullptr ? "" : fmt::format(" with {}", pair.b->text);
  return fmt::format("{}: {}{}: {}; {}", blame(spec, pair).key, pair.a->text, with, pair.why, pair.advice);
}

void refuse_combinations(const Spec& spec, Limit which) {
  const Pair* pair = first_limit(spec, which);
  if (pair == nullptr) return;
  const Origin* at = blame(spec, *pair).at;
  const std::string place = at == nullptr ? file_of(spec) : at->from;
  throw Error((place.empty() ? "" : place + ": ") + refusal(spec, *pair));
}

}  // namespace orrery
