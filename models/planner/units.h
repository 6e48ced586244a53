#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "models/planner/host_units.h"
#include "models/planner/step_part.h"

namespace orrery {

// The planner's class that all-gathers weights unit by unit before they are used, and reduces gradients unit by unit
// (ZeRO-2 and 3, FSDP). A unit is the weights of one block, or of several (joined_units.h).
class Units : public StepPart {
 public:
  // host: the planner's class that offloads parameters or gradients to the host; null if neither is offloaded.
  Units(Draft& draft, TaskWriter& writer, HostUnits* host);

  void begin_slot() override;
  void before_block(const Pass& pass) override;
  void before_op(const Pass& pass, std::span<const std::uint32_t> ops) override;
  void after_backward_op(const Pass& pass, std::size_t entry, std::uint32_t op, TaskId task) override;
  void after_block(const Pass& pass) override;
  void reduce() override;
  void issued(const Op& op, std::uint32_t frame, TaskId task) override;

 private:
  bool tiles() const { return row_.shards_parameters && spec_.strategy.offload.tiling > 1; }
  void gather_for(const Pass& pass);
  bool runs_back_with(const Entry& entry) const;
  void gather_frozen(std::uint32_t unit, Phase phase, const std::vector<TaskId>& after);
  bool ends_unit(const Pass& pass) const;
  void release(const Pass& pass);
  void gather_unit(std::uint32_t unit, std::uint32_t state, Phase phase);
  void gather_tiles(std::uint32_t frame, std::span<const std::uint32_t> ops, Phase phase);
  void copy_out(std::uint32_t unit, Phase phase);
  Op gather_op(const Region& region, const Regions& all, Phase phase, bool frozen = false) const;
  bool reduces_apart(const Entry& entry) const;
  // Returns the number of reductions of a unit over all micro-batches of an update.
  std::int64_t reductions_of(const Chunk& chunk, std::uint32_t unit) const;
  Operand prepare_gradient(std::uint32_t unit, const Regions& regions);
  LaneKind reduce_regions(std::uint32_t unit, const Regions& regions, Operand source, bool begins);
  void reduce_unit(const Chunk& chunk, std::uint32_t unit);
  void reduce_tiles(const Chunk& chunk, std::uint32_t frame, std::uint32_t op);
  void reduce_replicas(std::uint32_t unit, const Operand& gradients);

  HostUnits* host_;
  // for each unit (id of the frame with its buffers), whether its weights are gathered now
  std::map<std::uint32_t, bool> gathered_;
  // for each unit (id of the frame with its buffers), the number of its reductions issued so far
  std::map<std::uint32_t, std::int64_t> reduced_;
  // units (ids of the frames with their buffers) that are gathered but not yet copied out of the gather's buffer
  std::set<std::uint32_t> arrived_;
  // units (ids of the frames with their buffers) whose gradient shards are summed over replicas only after all of
  // backward
  std::vector<std::uint32_t> replicas_later_;
  // for each unit (id of the frame with its buffers), its last gather from the secondary shards of a node (ZeRO++)
  std::map<std::uint32_t, TaskId> read_in_node_;
  std::deque<TaskId> released_;  // tasks that freed gathered units, and for which no gather has waited yet
};

// These functions write ZeRO++ (zero_plus.cpp; Wang et al. 2023, 2306.10209), which transfers quantised weights and
// gradients. In forward, weights are quantised to eight bits and all-gathered over all ranks, and each rank keeps its
// part of a secondary shard, a second copy of the weights that is sharded over the ranks of one node. In backward,
// weights are all-gathered from the secondary shards within the node. Gradients are reduced by an all-to-all of
// quantised gradients within the node, a sum, and an all-to-all of the quantised sums between nodes. gather_narrow,
// gather_in_node: issue the all-gather of forward and of backward, in place of that of ZeRO-3. widen_and_keep: issues,
// as far as the spec asks for them, the dequantisation of gathered weights and the copy to the secondary shard, on the
// compute lane; `read` is the last gather from that shard, for which the copy waits. reduce_narrow: issues the
// reduction, with its conversions, on the lane of reductions.
void gather_narrow(const Draft& draft, TaskWriter& writer, std::uint32_t unit, Phase phase,
                   const std::vector<TaskId>& after);
TaskId gather_in_node(const Draft& draft, TaskWriter& writer, std::uint32_t unit, Phase phase,
                      const std::vector<TaskId>& after);
void widen_and_keep(const Draft& draft, TaskWriter& writer, std::uint32_t unit, Phase phase, TaskId read);
void reduce_narrow(const Draft& draft, TaskWriter& writer, std::uint32_t unit);

}  // namespace orrery
