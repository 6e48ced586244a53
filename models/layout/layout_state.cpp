#include "models/layout/layout_state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "models/layout/host_buffers.h"
#include "models/layout/whole_layers.h"

namespace orrery {

// Adds the buffers that a training framework allocates but does not need: other ranks' master weights, shards cast to a
// larger data type, dummy gradients.
static void add_held(const Draft& draft, Block& block, const Chunk& chunk) {
  const Spec& spec = draft.facts.spec;
  const Optimizer& o = spec.strategy.optimizer;
  // Frameworks with whole_master keep all master weights on each rank if optimizer states are sharded; parameter
  // servers keep only the master weights of their own ranges.
  const bool whole = block.buffers[kMaster].bytes > 0 && draft.facts.row.shards_optimizer &&
                     spec.software.communication.whole_master == spec.strategy.precision;
  block.buffers[kOthersMaster] = {"others' master weights",
                                  whole ? (chunk.weights.all - chunk.weights.own) * o.master_bytes : 0,
                                  Category::optimizer};
  const bool widens =
      spec.software.communication.widens_gradient_shards && draft.facts.unit_gradients && draft.facts.row.fp32_shards;
  const Bytes wider = std::max<Bytes>(0, o.master_bytes - draft.facts.gradient_width);
  block.buffers[kWidenedShard] = {"widened gradient shard", widens ? chunk.weights.own * wider : 0,
                                  Category::gradients};
  // All chunks of a rank share one dummy gradient of each weight shape, so shapes of chunks that were laid out before
  // are not counted again.
  std::set<std::pair<std::int64_t, std::int64_t>> known;
  const auto bytes_of_new_shapes = [&](const Chunk& of) {
    Bytes sum = 0;
    for (const Entry& e : of.entries) {
      if (draft.plan.blocks[e.block].role != BlockRole::layer) continue;
      for (const LocalParameter& p : draft.plan.blocks[e.block].parameters) {
        const std::pair shape = {p.out / std::max<std::int64_t>(1, p.experts), p.in};
        if (p.in > 1 && known.insert(shape).second) sum += shape.first * shape.second * draft.context.width;
      }
    }
    return sum;
  };
  for (const Chunk& other : draft.layout.chunks) {
    if (&other != &chunk) bytes_of_new_shapes(other);
  }
  const bool keeps = spec.software.communication.dummy_gradients && !draft.facts.unit_gradients;
  block.buffers[kDummyGradients] = {"dummy gradients", keeps ? bytes_of_new_shapes(chunk) : 0, Category::buffers};
}

namespace {

struct MomentBytes {
  Bytes first = 0, second = 0;
};

}  // namespace

// Returns the bytes of the optimizer moments of a rank's own weights. Muon keeps a second moment only for the weights
// that it leaves to AdamW; Adafactor keeps the sums of squares of each row and column of a matrix, and the square of
// every element of a vector.
static MomentBytes moment_bytes(const Optimizer& o, const WeightCounts& weights) {
  const auto bytes = [&](std::int64_t n) {
    return n * o.moment_bytes + (o.eight_bit ? 4 * ceil_div(n, kMomentBlock) : 0);
  };
  if (o.kind == OptimizerKind::adafactor) return {0, 4 * weights.sums};
  const std::int64_t second = o.kind == OptimizerKind::muon ? weights.own_vectors : weights.own;
  return {o.moments() > 0 ? bytes(weights.own) : 0,
          o.moments() > 1 || o.kind == OptimizerKind::muon ? bytes(second) : 0};
}

// Returns the bytes that a rank keeps for its sequences in a chunk's layers; of_sequence: those of one sequence in one
// layer.
template <class OfSequence>
static Bytes bytes_of_sequences(const Spec& spec, const Chunk& chunk, const OfSequence& of_sequence) {
  if (!spec.generation) return 0;
  Bytes sum = 0;
  for (const Entry& e : chunk.entries) {
    if (e.layer >= 0 && e.layer < spec.model.layers && !e.transfer) sum += of_sequence(e.layer);
  }
  return sum * spec.generation->batch / spec.strategy.data;
}

// Adds the buffers that generation keeps from pass to pass: the cache of keys and values as it is after the last token
// was generated, and the states of recurrences.
static void add_kept_for_generation(const Spec& spec, const Chunk& chunk, Block& block) {
  const auto cache = [&](std::int64_t layer) {
    return sequence_cache_bytes(spec, layer, spec.generation->input + spec.generation->output);
  };
  const auto states = [&](std::int64_t layer) { return recurrent_bytes(spec, layer).sum(); };
  block.buffers[kKeysValues] = {"cached keys and values", bytes_of_sequences(spec, chunk, cache), Category::buffers};
  block.buffers[kRecurrentStates] = {"recurrent states", bytes_of_sequences(spec, chunk, states), Category::buffers};
}

// Returns the number of elements of a chunk's weights that are kept in 8 bits beside or in place of wider ones. In text
// generation, 8-bit weights replace the 16-bit weights (kFrozen), so none are counted here.
static std::int64_t eight_bit_of(const Draft& draft, const Chunk& chunk) {
  std::int64_t sum = 0;
  for (const Entry& e : chunk.entries)
    sum += draft.facts.spec.generation ? 0 : eight_bit_elements(draft.facts.spec, draft.plan.blocks[e.block]);
  return sum;
}

// Adds the buffers of a chunk's weights. cut: each rank keeps a shard of every weight.
static void add_weights(const Draft& draft, const Chunk& chunk, bool cut, Block& block) {
  const Spec& spec = draft.facts.spec;
  const ShardingRow& row = draft.facts.row;
  const WeightCounts& w = chunk.weights;
  const Bytes width = draft.context.width, shard_width = row.fp32_shards ? spec.strategy.optimizer.master_bytes : width;
  const std::int64_t eight_bit = eight_bit_of(draft, chunk);
  const std::int64_t copies = transposes_eight_bit(spec) ? 2 : 1;
  // Frameworks that gather 8-bit matrices keep these matrices (and transposed copies) as their only parameters, without
  // copies in 16 bits.
  const bool alone = spec.software.communication.gathers_eight_bit;
  const Bytes whole = (alone ? w.all - eight_bit : w.all) * width;
  const bool secondary = spec.strategy.zero_quantize.secondary_shards;
  block.buffers[kParameters] = {"parameters", cut ? 0 : whole, Category::parameters};
  block.buffers[kParameterShard] = {"parameter shard", cut ? w.own * shard_width : 0, Category::parameters};
  block.buffers[kFrozen] = {"frozen parameters", cut ? 0 : w.frozen, Category::parameters};
  block.buffers[kFrozenShard] = {"frozen parameter shard", cut ? w.frozen_own : 0, Category::parameters};
  block.buffers[kSecondaryShard] = {"secondary shard", secondary ? w.secondary * width : 0, Category::parameters};
  block.buffers[kEightBit] = {"fp8 weights", row.shards_parameters ? 0 : copies * eight_bit,
                              alone ? Category::parameters : Category::buffers};
}

// Adds the buffers of a chunk's gradients and of its optimizer. serves: the rank is a parameter server.
static void add_gradients_and_states(const Draft& draft, const Chunk& chunk, bool serves, Block& block) {
  const Strategy& strategy = draft.facts.spec.strategy;
  const Optimizer& o = strategy.optimizer;
  const std::int64_t whole = chunk.weights.all, own = chunk.weights.own;
  const Bytes width = draft.facts.gradient_width;
  const bool cut = draft.facts.unit_gradients || serves;
  const bool kept_whole = !cut || (!serves && !draft.facts.fresh_gradients);
  const bool master = masters_lie_apart(strategy, draft.facts.row) && draft.updates();
  const MomentBytes moments = draft.updates() ? moment_bytes(o, chunk.weights) : MomentBytes{};
  block.buffers[kGradients] = {"gradients", kept_whole ? whole * width : 0, Category::gradients};
  const Bytes fresh = strategy.keep_16bit_gradients ? whole * draft.context.width : 0;
  block.buffers[kFreshGradients] = {"16-bit gradients", fresh, Category::gradients};
  block.buffers[kGradientShard] = {"gradient shard", cut ? own * width : 0, Category::gradients};
  block.buffers[kMaster] = {"master weights", master ? own * o.master_bytes : 0, Category::optimizer};
  block.buffers[kMoment1] = {"first moments", moments.first, Category::optimizer, true};
  block.buffers[kMoment2] = {"second moments", moments.second, Category::optimizer, true};
}

// Returns the bytes that an optimizer works on beside its states: with Muon layers, and with Adafactor two norms in
// fp32 for each tensor, that of its update and that of its weights.
static Bytes optimizer_bytes(const Draft& draft, const Chunk& chunk) {
  if (!draft.updates()) return 0;
  switch (draft.facts.spec.strategy.optimizer.kind) {
    case OptimizerKind::muon:
      return whole_layer_elements(draft, chunk) * draft.context.width;
    case OptimizerKind::adafactor:
      return 4 * tensor_norms(draft, chunk);
    default:
      return 0;
  }
}

// Returns the bytes of the buffer kBuckets of a chunk: the copies of all gradients that data ranks reduce, if the
// framework makes such copies, and the bytes that the optimizer works on.
static Bytes bucket_bytes(const Draft& draft, const Chunk& chunk) {
  const Spec& spec = draft.facts.spec;
  const ShardingRow& row = draft.facts.row;
  const Bytes width = draft.context.width, gradient_width = draft.facts.gradient_width;
  const bool beside = spec.software.communication.gradient_buckets_beside && gradient_width != width &&
                      !draft.facts.unit_gradients && draft.group_size(Dimension::data) > 1 && !row.shards_optimizer &&
                      !row.master && !row.servers;
  if (draft.facts.averaging == Averaging::copy) return chunk.weights.all * gradient_width;
  return (beside ? chunk.weights.all * width : 0) + optimizer_bytes(draft, chunk);
}

Block state_block(const Draft& draft, const Chunk& chunk) {
  const std::int64_t own = chunk.weights.own;
  const bool serves = draft.context.duty == Duty::server;
  Block block;
  block.name = "state";
  block.role = BlockRole::state;
  block.buffers.resize(kStateSlots);
  add_weights(draft, chunk, draft.facts.row.shards_parameters || serves, block);
  add_gradients_and_states(draft, chunk, serves, block);
  add_kept_for_generation(draft.facts.spec, chunk, block);
  place_on_host(draft, block, own);
  block.buffers[kBuckets] = {"gradient buckets", bucket_bytes(draft, chunk), Category::buffers};
  add_held(draft, block, chunk);
  if (!serves) return block;
  // An asynchronous parameter server processes the gradients of each worker by themselves, and the pushes of all
  // workers may arrive at the same time, so it has a buffer for each worker.
  const std::int64_t pushes = draft.plan.asynchronous_workers ? draft.plan.workers() : 0;
  block.buffers[kBuckets] = {"pushed gradients", pushes * own * draft.facts.gradient_width, Category::buffers};
  for (BlockBuffer& slot : block.buffers) slot.home = MemoryTier::host;
  return block;
}

}  // namespace orrery
