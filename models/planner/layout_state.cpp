// PlanBuilder: the flat buffers of a chunk's states.
#include <algorithm>
#include <set>
#include <utility>

#include "models/planner/plan_builder.h"
#include "models/spec/asynchrony.h"

namespace orrery {

// Flat buffers of a chunk (ZeRO: Rajbhandari et al. 2020, section 3): 16-bit weights, gradients, fp32 master and two
// moments, whole or one shard of each.
Block PlanBuilder::state_block(const Chunk& chunk) const {
  const Optimizer& o = spec_.strategy.optimizer;
  const std::int64_t whole = chunk.elements;
  const std::int64_t own = chunk.own;
  const Bytes width = context_.width;
  const bool serves = context_.duty == Duty::server;
  const bool master = masters_lie_apart(spec_.strategy, row_) && updates();
  const bool cuts_weights = row_.shards_parameters || serves, cuts_gradients = unit_gradients_ || serves;
  Block block;
  block.name = "state";
  block.role = BlockRole::state;
  block.slots.resize(kStateSlots);
  std::int64_t eight_bit = 0;
  for (const Entry& e : chunk.entries) eight_bit += eight_bit_elements(spec_, plan_.blocks[e.block]);
  // Stacks that gather eight-bit matrices keep those alone, by rows and by columns, as their parameters.
  const bool alone = spec_.software.gathers_eight_bit;
  const std::int64_t wide = alone ? whole - eight_bit : whole;
  block.slots[kParameters] = {"parameters", cuts_weights ? 0 : wide * width, Category::parameters};
  block.slots[kParameterShard] = {
      "parameter shard", cuts_weights ? own * (row_.fp32_shards ? o.master_bytes : width) : 0, Category::parameters};
  block.slots[kGradients] = {"gradients", cuts_gradients ? 0 : whole * gradient_width_, Category::gradients};
  block.slots[kGradientShard] = {"gradient shard", cuts_gradients ? own * gradient_width_ : 0, Category::gradients};
  block.slots[kMaster] = {"master weights", master ? own * o.master_bytes : 0, Category::optimizer};
  const Bytes moment = o.kind == OptimizerKind::sgd || !updates() ? 0 : own * o.moment_bytes;
  block.slots[kMoment1] = {"first moments", moment, Category::optimizer, true};
  block.slots[kMoment2] = {"second moments", moment, Category::optimizer, true};
  block.slots[kEightBit] = {"fp8 weights", row_.shards_parameters ? 0 : 2 * eight_bit,
                            alone ? Category::parameters : Category::buffers};
  const bool beside = spec_.software.gradient_buckets_beside && gradient_width_ != width && !unit_gradients_ &&
                      group_size(Dimension::data) > 1 && !row_.shards_optimizer && !row_.master && !row_.servers;
  place_on_host(block, own);
  block.slots[kBuckets] = {"gradient buckets",
                           averaging_ == Averaging::copy ? whole * gradient_width_
                           : beside                      ? whole * width
                                                         : 0,
                           Category::buffers};
  add_held(block, chunk);
  if (!serves) return block;
  // Pushes of several workers may be under way at once, where servers take each push by itself.
  const std::int64_t pushes = own_pace(spec_.strategy) ? plan_.workers() : 0;
  block.slots[kBuckets] = {"pushed gradients", pushes * own * gradient_width_, Category::buffers};
  for (Slot& slot : block.slots) slot.home = Home::host;
  return block;
}

// Adds the buffers that a stack holds without need: others' master weights, widened shards, dummy gradients.
void PlanBuilder::add_held(Block& block, const Chunk& chunk) const {
  const Optimizer& o = spec_.strategy.optimizer;
  const bool whole = block.slots[kMaster].bytes > 0 && spec_.software.whole_master == name_of(spec_.strategy.precision);
  block.slots[kOthersMaster] = {"others' master weights", whole ? (chunk.elements - chunk.own) * o.master_bytes : 0,
                                Category::optimizer};
  const bool widens = spec_.software.widens_gradient_shards && unit_gradients_ && row_.fp32_shards;
  const Bytes wider = std::max<Bytes>(0, o.master_bytes - gradient_width_);
  block.slots[kWidenedShard] = {"widened gradient shard", widens ? chunk.own * wider : 0, Category::gradients};
  // One dummy of each shape serves all chunks of a rank; chunks laid out before have theirs already.
  std::set<std::pair<std::int64_t, std::int64_t>> known;
  Bytes dummies = 0;
  const auto add = [&](const Chunk& of) {
    for (const Entry& e : of.entries) {
      if (plan_.blocks[e.block].role != BlockRole::layer) continue;
      for (const LocalParameter& p : plan_.blocks[e.block].parameters) {
        const std::pair shape = {p.out / std::max<std::int64_t>(1, p.experts), p.in};
        if (p.in > 1 && known.insert(shape).second) dummies += shape.first * shape.second * context_.width;
      }
    }
  };
  for (const Chunk& other : chunks_) {
    if (&other != &chunk) add(other);
  }
  dummies = 0;
  if (spec_.software.dummy_gradients && !unit_gradients_) add(chunk);
  block.slots[kDummyGradients] = {"dummy gradients", dummies, Category::buffers};
}

}  // namespace orrery
