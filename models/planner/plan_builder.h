#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "models/layers/blocks.h"
#include "models/plan/plan.h"
#include "models/planner/post_validation.h"
#include "models/schedule/schedules.h"
#include "models/schedule/transfer_order.h"
#include "models/schedule/weight_versions.h"
#include "models/spec/sharding.h"
#include "models/spec/spec.h"

namespace orrery {

// Operands that stand for a whole slot.
inline Operand state(std::uint16_t slot, Access access) { return {Scope::state, access, slot, -1}; }
inline Operand unit(std::uint16_t slot, Access access) { return {Scope::unit, access, slot, -1}; }
inline Operand own(std::uint16_t slot, Access access) { return {Scope::own, access, slot, -1}; }
inline Operand number(std::uint16_t slot, Access access) { return {Scope::rank, access, slot, -1}; }

// One block of a chunk.
struct Entry {
  std::uint32_t block = 0;
  std::int32_t layer = -1;
  std::uint32_t unit = kNone;  // unit frame; a tied output on the embedding's stage shares the embedding's
  std::int64_t base = 0;       // elements before this block's weights in the chunk's flat buffers
  bool owns = true;            // false: weights belong to another entry
  bool transfer = false;       // the block sends or receives at a stage's end
};

// A contiguous piece of a chunk's flat buffers that is reduced or gathered by one collective.
struct Bucket {
  std::int64_t first = 0, elements = 0;
  Dimension group = Dimension::data;
  std::int64_t tensors = 0;          // number of parameters in the bucket
  std::int64_t missing = 0;          // gradients of all micro-batches that are still to be added
  std::vector<std::uint32_t> units;  // unit frames that the bucket covers
};

// A contiguous piece of a unit's weights that is cut over the ranks by itself: each rank owns an n-th of the piece.
struct Region {
  std::int64_t first = 0, elements = 0;  // `first` counts from the unit's base
  Dimension group = Dimension::data;
};

// The part of a model that one stage runs as one virtual stage.
struct Chunk {
  std::int32_t number = 0;  // index of the chunk on its stage, as Action::chunk names it
  // Virtual stage, counted on over the copies of the model; -1 or behind the last: a chunk of a shared vocabulary.
  std::int32_t place = 0;
  std::int32_t first_micro_batch = 0;                  // first micro-batch to run forward through the chunk
  std::int32_t last_micro_batch = 0;                   // last micro-batch to run back through the chunk
  std::int64_t micro_batches = 0;                      // micro-batches that pass through the chunk before an update
  std::vector<Entry> entries;                          // blocks in forward order
  std::int64_t elements = 0;                           // weights that the chunk owns
  std::int64_t own = 0;                                // weights whose optimizer states one rank keeps
  std::map<Dimension, std::int64_t> partial_elements;  // weights whose gradients such a group sums
  std::int64_t kv_elements = 0;  // weights whose gradients are summed over the ranks of the same key/value heads
  std::uint32_t state = kNone;
  std::vector<std::uint32_t> versions;               // frames of weights, one for each version that is kept
  std::vector<std::uint32_t> frames;                 // frame ids, [micro-batch * entries + entry]
  std::vector<std::uint32_t> tiles;                  // frames of the host's buffers that an update goes through
  std::vector<Bucket> buckets;                       // buckets in the order in which backward finishes them
  std::vector<std::vector<std::int32_t>> bucket_of;  // index of the bucket, [entry][parameter]
};

// State that the passes of make_plan() share while a plan grows: the plan itself and, for the slot being emitted, the
// last writer of each buffer. One object serves one call; no pass keeps it.
class PlanBuilder {
 public:
  explicit PlanBuilder(const Spec& spec);
  Plan build();

 private:
  void choose_schedule();
  void place_ends();
  void refuse_odd_copies() const;
  void refuse_with(std::string_view key, std::string_view what, std::string_view why) const;
  void tell_classes_apart();
  void tell_ranks_apart(const std::vector<double>& slow, bool master);
  void meet_everywhere();

  // replicas.cpp: stages of several ranks, which share each micro-batch.
  void enter(std::int64_t stage, std::int64_t replica);
  std::vector<Slice> slices_over(std::size_t boundary, bool upstream) const;
  std::int64_t row_part() const { return spec_.strategy.row_parts() > 1 ? class_ : 0; }
  bool shares_table_unlike() const;

  // post_validation.cpp: updates that are validated in the next step.
  bool validates() const;
  bool at_last_stage() const { return stage_ + 1 == spec_.strategy.pipeline; }
  // A number tells whether an update was right: as this stage knows it at the update (partial), or over all stages.
  std::uint16_t partial_norm() const { return spec_.strategy.clip > 0 ? kSquaredNorm : kFoundInfinity; }
  std::uint16_t whole_norm() const { return at_last_stage() ? partial_norm() : std::uint16_t{kWholeNorm}; }
  void plan_validation();
  TaskId pass_number(const char* name, std::uint16_t number, bool send, bool forward);
  void receive_partial_norm();
  std::vector<TaskId> pass_partial_norm(const std::vector<TaskId>& summed);
  void validate_update();

  // asynchronous.cpp: updates between a micro-batch's forward and its backward.
  bool asynchronous() const { return plan_.steps > 1; }
  bool updates_by_step() const;
  void take_steps(Updates updates);
  void refuse_short_steps() const;
  void add_versions(Chunk& chunk);
  std::uint32_t version(const Chunk& chunk, std::int64_t updates) const;
  std::uint32_t weights_of(const Chunk& chunk, std::int32_t micro_batch) const;
  bool ends_update(const Action& action) const;
  std::uint32_t update_frame(const Chunk& chunk, std::uint32_t from, std::uint32_t to);
  void copy_weights(const Chunk& chunk, std::uint32_t frame);
  std::uint32_t begin_update(const Chunk& chunk, bool in_place);
  void finish_update();
  void settle();

  // layout.cpp: which blocks each stage has, and the frames of their buffers.
  void lay_out();
  void find_ranks(RankSlot& slot) const;
  void lay_out_chunk(std::int32_t number, std::int64_t place);
  std::vector<Entry> entries_of(std::int64_t place);
  std::vector<Entry> vocabulary_entries(bool input);
  const Chunk& table_chunk() const;
  std::vector<PhaseTimes> phase_times();
  void find_micro_batches(Chunk& chunk) const;
  std::vector<Chunk*> in_model_order();
  void place_weights(Chunk& chunk);
  bool lends_table(const Entry& entry) const;
  std::uint32_t add_unit(std::int64_t elements, const std::vector<Region>& regions);
  void add_tile_units(const Entry& entry);
  void make_frames(Chunk& chunk);
  std::uint32_t handed_over(const Chunk& chunk, std::int32_t micro_batch) const;
  std::uint32_t add_frame(std::uint32_t block);
  std::uint32_t add_rank_frame();
  void add_arena();  // arena.cpp
  void size_arena();
  Bytes fused_bytes() const;
  Block state_block(const Chunk& chunk) const;
  void add_held(Block& block, const Chunk& chunk) const;
  bool cut_alike(const Block& block) const;
  std::vector<Region> regions_of(const Block& block) const;
  std::int64_t shard(const std::vector<Region>& regions) const;
  Dimension copies_of(const LocalParameter& p) const;
  void make_buckets(Chunk& chunk);
  void count_gradients();
  bool is_bound(const Entry& entry, std::int64_t at) const;
  std::int64_t own_elements(const Chunk& chunk) const;
  std::uint32_t shared_block(const std::string& key, Block (*make)(const BlockContext&, std::vector<Op>&));
  std::uint32_t layer_kind(std::int64_t layer, std::int64_t index_in_stage);

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
  TaskId emit(std::uint32_t op, std::uint32_t frame, const std::vector<TaskId>& after = {}, std::uint8_t flags = 0);
  void note_writes(const Op& op, std::uint32_t frame, TaskId task);
  TaskId* writer(std::uint32_t frame, const Operand& operand);
  TaskId last_of(LaneKind lane) const;
  std::vector<Dimension> dimensions_over_slots() const;
  void link_matches();

  // data_parallel.cpp: what the sharding row gathers, reduces and updates, and when.
  void gather_for(const Action& action, std::size_t position, const std::vector<std::size_t>& order);
  bool runs_back_with(const Entry& entry) const;
  void gather_unit(std::uint32_t unit, std::uint32_t state, Phase phase);
  void gather_tiles(std::uint32_t frame, std::span<const std::uint32_t> ops, Phase phase);
  bool copies_out(const std::vector<Region>& regions) const;
  bool joins_gradients(const std::vector<Region>& regions) const;
  void copy_out(std::uint32_t unit, Phase phase);
  Op gather_op(const Region& region, const std::vector<Region>& all, Phase phase) const;
  struct Place {
    Chunk* chunk = nullptr;
    Bucket* bucket = nullptr;
  };
  Place bucket_of(Chunk& chunk, std::size_t entry, const Operand& operand);
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
  void begin_step();
  void end_step();
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
  std::uint32_t op_id(const Op& op);  // one id for equal ops (name, size, place, use of operands)

  // shared_gradients.cpp: gradients that ranks of one replica of the model sum.
  bool shares_table() const;
  bool sums_over_model() const;
  void reduce_what_is_shared();
  void sum_unit_over_model(const Chunk& chunk, std::uint32_t unit);
  void finish_unit(const Chunk& chunk, std::uint32_t unit, LaneKind lane);
  void finish_late_unit();
  void lower_buckets();

  // servers.cpp: weights that ranks of their own hold, or one rank alone updates.
  void add_servers();
  bool updates() const;
  void hand_out_weights();
  void give_gradients(const Chunk& chunk, const Bucket& bucket, TaskId after);
  void emit_server();
  void pull_buckets();
  std::vector<TaskId> server_norm(const std::vector<TaskId>& after);
  void update_server(const std::vector<TaskId>& after);

  // offload.cpp: states that lie on the host or on disks, and their way there and back.
  bool host_parameters() const { return spec_.strategy.offload.parameters != Device::none; }
  bool host_gradients() const { return spec_.strategy.offload.gradients != Device::none; }
  bool host_update() const { return spec_.strategy.offload.optimizer != Device::none; }
  bool delayed() const { return host_update() && spec_.strategy.offload.delayed_update; }
  bool half() const { return spec_.strategy.precision == Precision::fp16; }
  // fp16: whether the norm, which is infinite where a gradient is, tells of infinities: it is taken before a scale must
  // be known, or nothing else passes over the gradients. A delayed update's scale must be known before the next step
  // begins.
  bool norm_tells_infinity() const {
    const bool fused = spec_.strategy.clip > 0 && spec_.software.fused_clip;
    return host_update() && (delayed() || spec_.strategy.offload.gradients == Device::nvme || fused);
  }
  bool takes_norm() const { return spec_.strategy.clip > 0 || (half() && norm_tells_infinity()); }
  // Bytes of an element of the shard that a gather begins from.
  Bytes shard_width() const { return row_.fp32_shards ? spec_.strategy.optimizer.master_bytes : context_.width; }
  void add_staging(Block& unit, std::int64_t shard) const;
  void place_on_host(Block& state, std::int64_t own) const;
  void add_tiles(Chunk& chunk);
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

  bool ring_is_alike() const;
  // Whether a bucket is reduced as soon as backward has finished it. Copies of the model finish their buckets in other
  // orders; a master takes buckets when all are complete.
  bool reduces_early() const { return spec_.strategy.overlap.gradient_reduce && schedule_.copies == 1 && !row_.master; }
  std::int64_t group_size(Dimension d) const;  // size of the group of the rank that is being laid out
  // Tensors in the call for a bucket: one, unless the stack gives all its parameters to one coalesced call.
  std::int64_t tensors_in(const Bucket& bucket) const {
    return spec_.software.sharded_in_one_bucket && row_.shards_optimizer ? bucket.tensors : 1;
  }
  // The number of ranks that optimizer states are cut over.
  std::int64_t shards(Dimension d) const {
    return row_.servers ? plan_.ranges() : row_.shards_optimizer ? group_size(d) : 1;
  }
  std::int64_t shard(std::int64_t elements, Dimension d) const { return ceil_div(elements, shards(d)); }

  const Spec& spec_;
  const ShardingRow& row_;
  BlockContext context_;
  Schedule schedule_;
  Turns turns_;
  std::vector<TurnPlace> validation_places_;  // by stage, if updates are validated in the next step
  std::vector<std::int64_t> layers_of_;       // layers per virtual stage
  std::vector<std::int64_t> first_layer_;
  Bytes gradient_width_ = 4;
  bool unit_gradients_ = false;
  Averaging averaging_ = Averaging::none;
  bool one_queue_ = false;  // Software::one_queue, on these GPUs
  Plan plan_;
  std::map<std::string, std::uint32_t> blocks_;
  std::map<std::string, std::uint32_t> step_ops_;
  std::map<std::uint32_t, std::vector<Region>> regions_;  // regions, by unit frame

  // Ranks of a stage that do the same work.
  struct RankClass {
    std::string name = "";
    ExpertLoad load = ExpertLoad::busiest;
    std::int64_t ring_block = 0;
    Duty duty = Duty::worker;
  };
  std::vector<RankClass> classes_;

  // State while one slot is being emitted.
  std::uint32_t slot_ = 0;
  int class_ = 0;
  std::int64_t stage_ = 0;
  std::int64_t replica_ = 0;     // index of the replica among those of its stage
  std::int64_t first_rank_ = 0;  // first rank of this replica; 0 without strategy.stage_replicas
  WeightVersions versions_;      // versions of the weights in an asynchronous schedule
  std::int64_t updates_ = 0;     // updates emitted so far
  std::vector<Chunk> chunks_;
  std::vector<TaskId> writers_;        // last writer, by buffer id
  std::vector<TaskId> computed_with_;  // last user on the compute lane, by buffer id
  // Users on other lanes: moved_with_ has, by buffer id, the place of the last one in moved_uses_, where each names the
  // one before it.
  struct MovedUse {
    TaskId task = kNone;
    std::uint32_t before = kNone;
  };
  std::vector<std::uint32_t> moved_with_;
  std::vector<MovedUse> moved_uses_;
  // Buckets to gather after an update, in forward's order
  std::vector<std::pair<const Chunk*, const Bucket*>> to_gather_;
  std::size_t gathering_ = 0;                                   // how many of to_gather_ are issued
  std::vector<std::array<TaskId, kStateSlots>> state_writers_;  // last writers, by unit frame, then state slot
  std::vector<TaskId> last_in_lane_;
  // Sends of the last turn, for stacks whose next action waits for them
  std::vector<TaskId> sends_;
  std::vector<TaskId> barrier_;                    // collectives that do not overlap: the next block op waits for them
  std::map<std::uint32_t, bool> gathered_;         // whether the unit is gathered, by unit frame
  std::map<std::uint32_t, std::int64_t> reduced_;  // micro-batches reduced so far, by unit frame
  std::set<std::uint32_t> arrived_;                // unit frames gathered, not yet copied out
  std::set<std::uint32_t> staged_;                 // unit frames on their way from disks
  std::set<std::uint32_t> fetched_;                // frames whose activations are on their way back from the host
  std::uint32_t arena_ = kNone;                    // frame of the arena of contiguous activations
  std::uint32_t late_unit_ = kNone;                // unit whose gradients wait for the other end of the pipeline
  std::uint32_t leaving_ = kNone;                  // a frame whose activations are on their way to the host
  bool norm_begun_ = false;                        // whether the step's norm already has a unit's squares
  std::vector<std::int64_t> pushed_;               // first elements of buckets, in the order in which workers push them
  std::deque<TaskId> released_;                    // tasks after which a gathered unit was given up, not yet waited for
  std::vector<char> alive_;                        // by buffer id: allocated and not freed, where activations move
  std::map<std::int32_t, std::uint32_t> guests_;   // frames of activations kept for another stage, by move
  std::map<std::pair<std::int32_t, int>, std::vector<Parcel>> parcels_;  // parcels, by move and rank class
  // Transfer ends of moved activations, by move, whether away, index of the parcel, rank class.
  std::map<std::tuple<std::int32_t, bool, std::size_t, int>, std::vector<TaskId>> parcel_ends_;
  // Ends of each transfer, by boundary, micro-batch, whether forward, rank class, byte of the micro-batch at its begin.
  std::map<std::tuple<std::int32_t, std::int32_t, bool, int, Bytes>, std::vector<TaskId>> crossings_;
};

}  // namespace orrery
