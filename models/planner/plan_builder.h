#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "models/layout/buckets.h"
#include "models/layout/replicas.h"
#include "models/layout/unit_frames.h"
#include "models/layout/versions.h"
#include "models/planner/matches.h"
#include "models/planner/post_validation.h"
#include "models/planner/step_part.h"

namespace orrery {

// State that the passes of make_plan() share while a plan grows: the plan itself and, for the slot being emitted, the
// last writer of each buffer. One object serves one call; no pass keeps it.
class PlanBuilder : private StepPart {
 public:
  PlanBuilder(Draft& draft, TaskWriter& writer);
  Plan build();

 private:
  // post_validation.cpp: updates that are validated in the next step.
  // A number tells whether an update was right: as this stage knows it at the update (partial), or over all stages.
  std::uint16_t partial_norm() const { return spec_.strategy.clip > 0 ? kSquaredNorm : kFoundInfinity; }
  std::uint16_t whole_norm() const { return draft_.at_last_stage() ? partial_norm() : std::uint16_t{kWholeNorm}; }
  void plan_validation();
  TaskId pass_number(const char* name, std::uint16_t number, bool send, bool forward);
  void receive_partial_norm();
  std::vector<TaskId> pass_partial_norm(const std::vector<TaskId>& summed);
  void validate_update();

  // asynchronous.cpp: updates between a micro-batch's forward and its backward.
  bool ends_update(const Action& action) const;
  std::uint32_t update_frame(const Chunk& chunk, std::uint32_t from, std::uint32_t to);
  void copy_weights(const Chunk& chunk, std::uint32_t frame);
  std::uint32_t begin_update(const Chunk& chunk, bool in_place);
  void finish_update();
  void settle();

  // An addition of gradients that is issued only at the end of its action.
  struct Late {
    std::uint32_t op, frame;
    std::size_t entry;
  };

  // State of an action whose ops are being issued.
  struct Pass {
    Action action;
    std::vector<std::size_t> entries;  // entries of the action's chunk, in the order of the action
    std::size_t at = 0, op = 0;        // entry and op that come next
    bool begun = false;                // whether entry `at` has begun
    std::vector<Late> late;

    bool done() const { return at == entries.size(); }
  };

  // activation_moves.cpp: activations that another stage keeps between forward and backward (eviction, BPipe).
  // Parcel: one buffer that leaves or comes back in one message, and the frame that it belongs to.
  struct Parcel {
    std::uint32_t frame = kNone;
    std::uint16_t slot = 0;
    Bytes bytes = 0;
  };
  std::vector<Parcel> parcels_of(const ActivationMove& move) const;
  std::uint32_t guest_frame(const std::vector<Parcel>& parcels, std::int32_t micro_batch);
  void emit_move(const Crossing& crossing);
  void note_alive(const Op& op, std::uint32_t frame);

  // emit.cpp: tasks in issue order with their dependencies.
  void emit_stage(std::int64_t stage);
  void emit_worker(std::int64_t stage);
  void emit_turn(std::size_t turn);
  void emit_any(const Crossing& crossing);
  void emit_crossing(const Crossing& crossing);
  void emit_exchange(const Crossing& crossing);
  void emit_waits(const Action& action);
  void emit_actions(std::span<const Action> woven, bool steady);
  void cast_weights(const Chunk& chunk, const Entry& entry);
  Pass begin(const Action& action) const;
  bool issue_next(Pass& pass);  // issues one op; true if the op is a transfer
  void fetch_activations(const Pass& pass);
  void release_activations();
  void issued(const Op& op, std::uint32_t frame, TaskId task) override;

  // data_parallel.cpp: what the sharding row gathers, reduces and updates, and when.
  void gather_for(const Action& action, std::size_t position, const std::vector<std::size_t>& order);
  bool runs_back_with(const Entry& entry) const;
  void gather_unit(std::uint32_t unit, std::uint32_t state, Phase phase);
  void gather_tiles(std::uint32_t frame, std::span<const std::uint32_t> ops, Phase phase);
  void copy_out(std::uint32_t unit, Phase phase);
  Op gather_op(const Region& region, const Regions& all, Phase phase) const;
  void after_backward_op(Chunk& chunk, std::size_t entry, const Op& op, TaskId task);
  void reduce_bucket(Chunk& chunk, const Bucket& bucket, TaskId after);
  void fuse_bucket(const Chunk& chunk, const Bucket& bucket, TaskId after);
  TaskId unfuse_bucket(const Chunk& chunk, const Bucket& bucket);
  bool reduces_apart(const Entry& entry) const;
  std::int64_t reductions_of(const Chunk& chunk, std::uint32_t unit) const;  // counted over all micro-batches
  void reduce_unit(const Chunk& chunk, std::uint32_t unit);
  void reduce_tiles(const Chunk& chunk, std::uint32_t frame, std::uint32_t op);
  void gather_bucket(const Chunk& chunk, const Bucket& bucket, const std::vector<TaskId>& after);
  void gather_buckets();
  void gather_ahead(std::uint32_t unit);
  void begin_step() override;
  void end_step() override;
  void reduce_replicas(std::uint32_t unit, const Operand& gradients);
  void average(std::uint32_t frame, const Operand& gradients, std::int64_t first, std::int64_t elements);
  void copy_buckets_back();
  void clip_and_update();
  std::vector<TaskId> sum_over_model(const char* name, std::uint16_t number, bool maximum);
  void unscale(const std::vector<TaskId>& after);
  std::vector<TaskId> gradient_norm(const std::vector<TaskId>& after);
  std::vector<TaskId> device_norm(std::uint16_t number, const std::vector<TaskId>& after);
  void zero_gradients(const Chunk& chunk, const std::vector<TaskId>& after);
  void update(const Chunk& chunk, const std::vector<TaskId>& after);
  Operand optimizer_gradients(Access access) const;

  // shared_gradients.cpp: gradients that ranks of one replica of the model sum.
  bool shares_table() const;
  bool sums_over_model() const;
  void reduce_what_is_shared();
  void sum_unit_over_model(const Chunk& chunk, std::uint32_t unit);
  void finish_unit(const Chunk& chunk, std::uint32_t unit, LaneKind lane);
  void finish_late_unit();
  void lower_buckets();

  // servers.cpp: weights that ranks of their own hold, or one rank alone updates.
  void hand_out_weights();
  void give_gradients(const Chunk& chunk, const Bucket& bucket, TaskId after);
  void emit_server();
  void pull_buckets();
  std::vector<TaskId> server_norm(const std::vector<TaskId>& after);
  void update_server(const std::vector<TaskId>& after);

  // offload.cpp: states that lie on the host or on disks, and their way there and back.
  std::uint16_t arriving_gradients() const;
  std::uint16_t due_gradients() const;
  void stage_unit(std::uint32_t unit, std::uint32_t state, Phase phase);
  void raise_unit(std::uint32_t unit, std::uint32_t state, Phase phase, const std::vector<TaskId>& after);
  bool copied_alone(std::uint32_t unit) const;
  void raise_gradients(std::uint32_t unit);
  TaskId norm_of_unit(std::uint32_t unit, LaneKind lane);
  void lower_gradients(std::uint32_t unit, TaskId after);
  void lower_bucket(const Chunk& chunk, const Bucket& bucket, const std::vector<TaskId>& after);
  std::vector<TaskId> host_clip(std::vector<TaskId> after);
  std::vector<TaskId> host_unscale(const std::vector<TaskId>& after);
  void update_loss_scale(const std::vector<TaskId>& after);
  void update_on_host(const std::vector<TaskId>& after);
  void update_tiles(const Chunk& chunk, const std::vector<TaskId>& after);
  void fetch_tile(std::uint32_t frame, std::int64_t first, std::int64_t n, const std::vector<TaskId>& after);
  void update_tile(std::uint32_t frame, std::int64_t first, std::int64_t n, const std::vector<TaskId>& after);
  void store_tile(std::uint32_t frame, std::int64_t first, std::int64_t n);
  void raise_tile(std::uint32_t frame, std::int64_t first, std::int64_t n);
  void finish_delayed();

  // Whether a bucket is reduced as soon as backward has finished it. Copies of the model finish their buckets in other
  // orders; a master takes buckets when all are complete.
  bool reduces_early() const { return spec_.strategy.overlap.gradient_reduce && schedule_.copies == 1 && !row_.master; }
  // Tensors in the call for a bucket: one, unless the stack gives all its parameters to one coalesced call.
  std::int64_t tensors_in(const Bucket& bucket) const {
    return spec_.software.sharded_in_one_bucket && row_.shards_optimizer ? bucket.tensors : 1;
  }
  std::vector<TurnPlace> validation_places_;  // by stage, if updates are validated in the next step

  // State while one slot is being emitted.
  std::int64_t updates_ = 0;  // updates emitted so far
  // Buckets to gather after an update, in forward's order
  std::vector<std::pair<const Chunk*, const Bucket*>> to_gather_;
  std::size_t gathering_ = 0;                      // how many of to_gather_ are issued
  std::map<std::uint32_t, bool> gathered_;         // whether the unit is gathered, by unit frame
  std::map<std::uint32_t, std::int64_t> reduced_;  // micro-batches reduced so far, by unit frame
  std::set<std::uint32_t> arrived_;                // unit frames gathered, not yet copied out
  std::set<std::uint32_t> staged_;                 // unit frames on their way from disks
  std::set<std::uint32_t> fetched_;                // frames whose activations are on their way back from the host
  std::uint32_t late_unit_ = kNone;                // unit whose gradients wait for the other end of the pipeline
  std::uint32_t leaving_ = kNone;                  // a frame whose activations are on their way to the host
  bool norm_begun_ = false;                        // whether the step's norm already has a unit's squares
  std::vector<std::int64_t> pushed_;               // first elements of buckets, in the order in which workers push them
  std::deque<TaskId> released_;                    // tasks after which a gathered unit was given up, not yet waited for
  std::vector<char> alive_;                        // by buffer id: allocated and not freed, where activations move
  std::map<std::int32_t, std::uint32_t> guests_;   // frames of activations kept for another stage, by move
  std::map<std::pair<std::int32_t, int>, std::vector<Parcel>> parcels_;  // parcels, by move and rank class
  TransferEnds ends_;
};

}  // namespace orrery
