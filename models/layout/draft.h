#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/layers/vision.h"
#include "models/layout/chunk.h"
#include "models/layout/second_model.h"
#include "models/partition/rank_groups.h"
#include "models/plan/plan.h"
#include "models/schedule/schedules.h"
#include "models/schedule/transfer_order.h"
#include "models/schedule/weight_versions.h"
#include "models/spec/sharding.h"
#include "models/spec/spec.h"

namespace orrery {

// The values derived from a spec that many passes of the planner need. They never change.
struct PlanFacts {
  explicit PlanFacts(const Spec& s);

  const Spec& spec;
  const ShardingRow& row;
  Bytes gradient_width = 4;
  // These values say how gradients are kept and reduced. Each is the result, for this spec, of the function of the same
  // name in gradients.h.
  bool unit_gradients = false, fresh_gradients = false, reduces_each_time = false;
  Averaging averaging = Averaging::none;
  bool half = false;       // whether the model computes in fp16, with a loss scale
  bool validates = false;  // whether updates are checked, and wrong ones rolled back, in the next step

  bool host_parameters() const { return spec.strategy.offload.parameters != MemoryTier::device; }
  // Returns whether the host holds the weights that do not train.
  bool host_frozen() const { return host_parameters() || (spec.second && spec.second->offload); }
  // Returns whether the plan has forward passes alone.
  bool forward_only() const { return spec.generation || (spec.second && spec.second->alone); }
  bool host_gradients() const { return spec.strategy.offload.gradients != MemoryTier::device; }
  bool host_update() const { return spec.strategy.offload.optimizer != MemoryTier::device; }
  bool delayed() const { return host_update() && spec.strategy.offload.delayed_update; }
  // Returns whether, in fp16 training, infinite gradients are detected by the gradient norm, which is infinite if any
  // gradient is. This is so if no other op reads all gradients, or if the update is delayed, because the loss scale
  // must be known before the next step begins.
  bool norm_tells_infinity() const;
  // Returns whether the optimizer's update on the host itself multiplies gradients by the clip coefficient and, in fp16
  // training, unscales them, so that no pass over the gradients comes before it.
  bool update_multiplies() const;
  // Returns whether weights are sharded in units other than single layers (a unit's weights are gathered and reduced
  // together).
  bool joins_units() const { return row.shards_parameters && !spec.strategy.units.by_layer(); }
  bool takes_norm() const { return spec.strategy.clip > 0 || (half && norm_tells_infinity()); }
  // Returns whether the embedding table is used in two parts of the model: by the embedding, and by a tied output or by
  // multi-token prediction.
  bool table_has_two_uses() const { return spec.model.tied_embeddings || spec.model.mtp_layers > 0; }
};

// A kind of ranks. The ranks of a pipeline stage are of several kinds if they do different work: because of expert
// load, part of the sequence, or role (Duty).
struct RankKind {
  std::string name = "";
  ExpertLoad load = ExpertLoad::busiest;
  std::int64_t ring_block = 0;
  Duty duty = Duty::worker;
};

// The position in the plan of the class of ranks whose blocks and buffers are being made: one kind of ranks of one
// replica of a pipeline stage. slot: index of the class in Plan::classes.
struct SlotPlace {
  std::uint32_t slot = 0;
  int rank_kind = 0;
  std::int64_t stage = 0;
  std::int64_t replica = 0;     // index of this replica among the replicas of its stage
  std::int64_t first_rank = 0;  // global number of this replica's first rank; 0 without strategy.stage_replicas
};

// The blocks, weights and buffers of one class of ranks (ranks that do the same work).
struct Layout {
  std::vector<Chunk> chunks;
  // separately sharded parts of the trained weights of each sharding unit, by the id of the unit's buffers (frame)
  std::map<std::uint32_t, Regions> regions;
  // the same parts of the frozen weights of each sharding unit, in units of Plan::frozen_width bytes
  std::map<std::uint32_t, Regions> frozen;
  WeightVersions versions;      // versions of the weights that an asynchronous schedule keeps
  std::uint32_t arena = kNone;  // id of the frame (buffer) of the arena of contiguous activations
};

// A plan under construction, and the values that the planner's passes have computed so far. Every pass is a function
// that reads some of the values and adds new values; no pass keeps a reference to the draft.
struct Draft {
  explicit Draft(const Spec& spec);

  PlanFacts facts;
  BlockContext context;
  std::unique_ptr<const VisionContext> vision;  // the sizes of the vision encoder; null if samples have no images
  std::unique_ptr<SecondContext> second;        // the frozen model beside the one that trains; null if there is none
  Schedule schedule;
  TransferOrder transfer_order;
  // number of layers of each virtual stage, and number of its first layer
  std::vector<std::int64_t> layers_of, first_layer;
  Plan plan;
  // ids of the blocks made so far, which equal layers and micro-batches share; the key is a text that lists all
  // properties in which blocks differ
  std::map<std::string, std::uint32_t> blocks;
  std::vector<RankKind> kinds;
  SlotPlace at;
  std::vector<Coordinates> coordinates;  // every worker's index in each dimension of parallelism
  Layout layout;

  bool asynchronous() const { return plan.steps > 1; }
  bool at_last_stage() const { return at.stage + 1 == facts.spec.strategy.pipeline; }
  // Returns the index of the rank being laid out among the tensor ranks of its stage, if each of these has other rows
  // of a micro-batch (Strategy::row_parts); 0 if all have the same rows.
  std::int64_t row_part() const { return facts.spec.strategy.row_parts() > 1 ? at.rank_kind : 0; }
  bool updates() const;  // whether the ranks that are being laid out update the weights

  // Returns the number of ranks in the group of dimension d to which the rank being laid out belongs.
  std::int64_t group_size(Dimension d) const;
  // Returns the number of shards of the optimizer states of weights that a group of dimension d shares; 1 if none are
  // sharded.
  std::int64_t shards(Dimension d) const;
  std::int64_t shard(std::int64_t elements, Dimension d) const { return ceil_div(elements, shards(d)); }
  std::int64_t shard(const Regions& regions) const;
  // Returns the bytes of an element of the parameter shard that is gathered, before any cast.
  Bytes shard_width() const {
    return facts.row.fp32_shards ? facts.spec.strategy.optimizer.master_bytes : context.width;
  }

  // Returns the chunk whose embedding table other chunks of the stage may use. (In a bidirectional schedule the last
  // stage of one copy of the model is the first stage of the other.)
  const Chunk& table_chunk() const;
  // Returns the index, among the blocks of table_chunk(), of the block that has the embedding table of the model that
  // trains, or of the second model.
  std::size_t table_entry(bool of_second = false) const;
  // Returns the chunks of the stage in the order of the model's layers. The ranks of all copies of a virtual stage
  // reduce its gradients in one collective, so all ranks must visit their chunks in this order.
  std::vector<Chunk*> in_model_order();

  std::uint32_t add_frame(std::uint32_t block);
  // Returns the id of the block with a given key, a text that lists all properties in which blocks differ. If there is
  // no such block yet, make() builds it.
  template <class Make>
  std::uint32_t block(const std::string& key, Make make) {
    const auto [it, fresh] = blocks.try_emplace(key, static_cast<std::uint32_t>(plan.blocks.size()));
    if (fresh) plan.blocks.push_back(make());
    return it->second;
  }
};

}  // namespace orrery
