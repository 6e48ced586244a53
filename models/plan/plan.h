#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/plan/group_list.h"
#include "models/plan/op.h"

namespace orrery {

// The plan: what every rank does in one step, in which order, on which buffers. It holds no times, no pointers and no
// device types; the simulator and the executor read the same one. make_plan() builds it folded: one slot per class
// of ranks that do the same work; unfold() gives every rank its own slot.
//
//   slot (rank class) --owns--> tasks in the order its host issues them
//   task --refers--> op (what, shapes, operands) and frame (which instance of the operands' buffers)
//   frame = (slot, block, micro-batch): buffer id = frame.first_buffer + operand.slot

using TaskId = std::uint32_t;
inline constexpr std::uint32_t kNone = 0xffffffffU;

// The part of a step that an op belongs to: forward (F) and backward (B) of a micro-batch; backward split into input
// gradients (I) and weight gradients (W); or work done once a step.
enum class Phase : std::uint8_t { forward, backward, input_gradient, weight_gradient, step };

// In-order queues of a rank: CUDA streams, one per direction and group (a single one would let an early receive block
// a later send). Lane id = slot * kLanes + kind.
enum class LaneKind : std::uint8_t {
  compute,
  tensor,
  context,
  expert,
  data_reduce,
  data_gather,
  replicate,
  send_next,
  receive_previous,
  send_previous,
  receive_next,
  send_partner,  // activations that another stage keeps until backward (BPipe)
  receive_partner,
  embedding,
  model,
  d2h,  // from the device's memory to the host's
  h2d,  // from the host's memory to the device's
  cpu,  // work of the host's processors
  nvme_read,
  nvme_write,
  // With a vocabulary that all stages share: lanes for token embeddings and their gradients, hidden states, the sums of
  // the loss, and the gradients of the hidden states.
  token_embeddings,
  hidden_states,
  vocabulary_sums,
  hidden_gradients,
  expert_reduce  // gradient buckets of experts, whose ranks have a communicator of their own, beside data_reduce
};
inline constexpr std::uint32_t kLanes = 25;

// Whether a lane reduces gradients over data ranks, of experts or of other weights.
inline bool reduces_gradients(LaneKind l) { return l == LaneKind::data_reduce || l == LaneKind::expert_reduce; }

// The line of the memory report in which a buffer's bytes count.
enum class Category : std::uint8_t { parameters, gradients, optimizer, activations, buffers, workspace };
inline constexpr int kCategories = 6;

// A buffer of a block, described once; every frame of that block has its own instance.
struct BlockBuffer {
  std::string name;
  Bytes bytes = 0;
  Category category = Category::activations;
  bool lazy = false;               // state that is allocated at the first update (optimizer moments), and stays
  std::int32_t runtime_size = -1;  // index into Block::runtime_sizes; `bytes` is for the predicted number of rows
  MemoryTier home = MemoryTier::device;
  bool contiguous = false;  // lies in the rank's arena (BlockRole::arena), side by side with other such buffers
};

// Scope says in which frame (the buffers of one block) an operand lies, relative to the task's own frame.
enum class Scope : std::uint8_t {
  own,       // frame of this block and micro-batch
  next,      // the following block of the chunk, same micro-batch: forward writes its output there
  previous,  // the preceding block: backward writes the gradient of its input there
  unit,      // this block's weights while gathered, and their gradients before reduction
  state,     // this chunk's parameters, gradients and optimizer states, one flat buffer each
  rank       // numbers that a rank has once: norm, found infinity, loss scale
};

enum class Access : std::uint8_t { read, write, read_write };

// The weights of a chunk's flat buffer that an operand without a parameter covers, in the order of the buffer. A shard
// holds its rank's piece of each.
enum class Part : std::uint8_t {
  all,
  partial,  // weights with LocalParameter::partial
  kv,       // the last LocalParameter::kv_rows rows of every weight
  // The embedding table: in a chunk's own states the table that the first and the last stage both hold; if the stage
  // has the table in another chunk, or gathers it, the table there (Frame::previous)
  tied
};

// A buffer, or part of it, that a task uses; `slot` is the buffer's index in its block. For weights: `parameter` is the
// index in the block's parameter list, and the part begins at the block's base plus that parameter's offset. Else
// parameter is -1: the operand is the whole buffer, or `part` of it, or if the op is a collective with `first` the
// range that this spans. The operand lies in the frame that `scope` names, except tiles (`tile` units further), a
// version of the weights (Frame::weights) and Part::tied (plan.cpp: frame_of).
struct Operand {
  Scope scope = Scope::own;
  Access access = Access::read;
  std::uint16_t slot = 0;
  std::int32_t parameter = -1;
  Part part = Part::all;
  std::uint16_t tile = 0;  // Scope::unit: the number of a tile of the unit (LocalParameter::tile), or 0

  friend bool operator==(const Operand&, const Operand&) = default;
};

// A kind of task. Many tasks share one: it repeats for every micro-batch and every layer of the same shape.
struct Op {
  std::string name;  // name of the op: "qkv", "qkv input gradient"
  Work work;
  Phase phase = Phase::forward;
  LaneKind lane = LaneKind::compute;
  Precision precision = Precision::bf16;
  bool weight_gradient = false;    // belongs to the weight-gradient pass when a schedule splits backward
  bool recompute = false;          // a forward op run again in backward
  bool optimizer = false;          // norm kernels, update, casts of parameters
  bool host_waits = false;         // the issuing thread waits here until the dependencies are done
  std::int32_t runtime_size = -1;  // index into its block's runtime_sizes that scales the work, or -1
  std::vector<Operand> operands;
  std::vector<Operand> waits_for;  // buffers that this op does not read, but whose last writer must end first
  std::vector<Operand> allocates;  // buffers allocated when the op is issued
  // Buffers freed when the op is issued (compute lane) or has completed (other lanes)
  std::vector<Operand> frees;
};

// Whether an op moves bytes between ranks.
inline bool moves(const Op& op) {
  return std::holds_alternative<Collective>(op.work) || std::holds_alternative<Transfer>(op.work);
}

// Number of launches that a device queues before the next launch blocks: the host runs ahead of the device by at most
// so many. (CUDA's per-context channel ring has 1,024 entries.)
inline constexpr TaskId kLaunchQueue = 1024;

// How a weight (out, in) is cut over a group: not at all, by rows, by columns, or by rows of each of the matrices that
// it packs: queries, keys and values by heads; gate and up projections by halves.
enum class Cut : std::uint8_t { none, rows, columns, heads, halves };

// A weight of a block as one rank holds it.
struct LocalParameter {
  std::string name;
  std::int64_t out = 0, in = 0;  // sizes after cutting over the tensor group
  std::int64_t offset = 0;       // elements from the block's base
  Cut cut = Cut::none;
  bool partial = false;      // ranks of the tensor group hold the same weight, each with a part of its gradient
  std::int64_t experts = 0;  // > 0: matrices of so many experts behind each other (`out` rows in all), cut over the
                             // ranks of `expert_tensor`, and reduced over those of `expert_data`
  // Last rows of `out`: key/value heads that several ranks (the group `kv`) hold, each with a part of the gradient
  std::int64_t kv_rows = 0;
  // > 0: this is a tile, a run of a weight's rows that is gathered and reduced by itself where units are
  // (ZeRO-Infinity, 2104.07857, section 5.1.3: memory-centric tiling), numbered within the block. tile_first, tile_of:
  // how many of the weight's rows come before the tile, and how many it has in all.
  std::uint16_t tile = 0;
  std::int64_t tile_first = 0, tile_of = 0;
  // On a grid of tensor ranks, `over` is the group whose members the cut is over; a matrix cut by rows is cut by
  // columns over another group too, and in a cube the rows of a member once more over tensor_depth.
  Dimension over = Dimension::tensor;
  std::optional<Dimension> columns_over = std::nullopt;
  bool cut_in_depth = false;
  // The weight does not train: it has no gradient and no states, and lies in a buffer of frozen weights; `offset`
  // counts in that buffer. nf4: it is kept in NF4 there.
  bool frozen = false, nf4 = false;

  // Whether ranks of a group hold the same weight, each with a part of its gradient.
  bool summed_over(Dimension group) const { return partial && (cut == Cut::none || over != group); }
};

// A size known only at run time (tokens an expert gets in one layer and micro-batch): what the simulator
// takes it to be, and the most it can be. Every frame of a block has its own.
struct RuntimeSize {
  std::string name;
  std::int64_t predicted = 0, bound = 0;
};

// The kind of a block. tile: buffers on the host that pieces of the states pass through (offload). arena: memory
// allocated before the first step and cut into cells of one size, for buffers that lie contiguous. version: older
// weights, which micro-batches in flight still need (asynchronous schedules). update: the buffers of one update, in
// plans with several. evicted: activations that a stage keeps for another. exchange: tensors that all stages of a
// pipeline sum or receive together.
enum class BlockRole : std::uint8_t {
  embedding,
  layer,
  final_norm,
  output,
  receive,
  send,
  state,
  unit,
  rank,
  tile,
  arena,
  version,
  update,
  evicted,
  exchange
};

// Whether a block's buffers live from before the first step on.
inline bool outlives_steps(BlockRole role) {
  return role == BlockRole::state || role == BlockRole::rank || role == BlockRole::tile || role == BlockRole::arena ||
         role == BlockRole::version;
}

// The ops of an embedding, layer, head or stage's end for one micro-batch: a list of forward and one of backward ops,
// and their buffers. Buffers 0 and 1 are always the input and the gradient of the output.
struct Block {
  std::string name;
  BlockRole role = BlockRole::layer;
  std::vector<BlockBuffer> buffers;
  std::vector<std::uint32_t> forward, backward;  // op ids in issue order
  std::uint32_t input_gradients = 0;             // number of backward ops before those that only weight gradients need
  // Number of leading backward ops (uploads) that may be issued one block early
  std::uint32_t fetches = 0;
  // Ids of forward ops that are issued one block late (they free offloaded activations)
  std::vector<std::uint32_t> release;
  std::vector<std::uint32_t> exchange;  // forward ops that are issued once all stages have got this far
  std::vector<LocalParameter> parameters;
  std::int64_t parameter_elements = 0;  // sum over those `parameters` that train
  std::int64_t frozen_elements = 0;     // sum over the frozen ones
  std::vector<RuntimeSize> runtime_sizes;
};
inline constexpr std::uint16_t kInput = 0;
inline constexpr std::uint16_t kOutputGradient = 1;

// An instance of a block's buffers. In a frame of a micro-batch, `next` and `previous` are the neighbouring blocks of
// the chunk, whose buffers activations and gradients are written to. In a unit's frame `next` is the frame of its first
// tile, and so on from tile to tile. In the frame of a unit or a state, `previous` is the frame of the embedding table,
// for blocks that read a table which another block owns (Part::tied: multi-token prediction).
struct Frame {
  std::uint32_t block = kNone;
  std::uint32_t first_buffer = 0;
  std::uint32_t next = kNone, previous = kNone, unit = kNone, state = kNone;  // ids of other frames
  std::uint32_t weights = kNone;  // frame of the weight version that the micro-batch uses; kNone: `state`'s
  std::uint32_t slot = 0;         // index of the rank class that the frame belongs to
  std::int32_t layer = -1;        // layer of the model; -1 embedding, layers() head
  std::int32_t micro_batch = -1;  // -1: not of one micro-batch; for an update the last one before it
  std::int32_t chunk = 0;
  std::int64_t base = 0;         // elements before this block's weights in the chunk's flat buffers
  std::int64_t frozen_base = 0;  // the same for frozen weights, in the chunk's buffer of those
};

// BlockBuffer of the weights in a chunk's state frame, and in a frame of BlockRole::version.
inline constexpr std::uint16_t kWeights = 0;

// Flags of a task. kJoinsPrevious: the task is in the same batch (NCCL group) as the task issued before it. kStepEnd:
// the last task of a step.
inline constexpr std::uint8_t kJoinsPrevious = 1;
inline constexpr std::uint8_t kStepEnd = 2;

// One execution of an op by one rank class, at one place of the schedule. 24 bytes.
struct Task {
  std::uint32_t op = 0;
  std::uint32_t frame = 0;
  std::uint32_t lane = 0;
  std::uint32_t first_dependency = 0;  // index into Plan::dependencies, up to the next task's
  std::uint32_t match = kNone;         // transfers with more than one end in this plan: index into Plan::matches
  std::uint8_t flags = 0;
};

// A class of ranks that do the same work (called a slot elsewhere), or a single rank when unfolded.
struct RankClass {
  std::string name;  // name of the slot: "stage 0"
  std::int64_t stage = 0;
  std::int64_t representative = 0;  // a global rank
  std::int64_t multiplicity = 1;
  TaskId begin = 0, end = 0;    // the slot's tasks, in issue order
  std::uint32_t frame = kNone;  // frame of Scope::rank
  // versions: how many versions of the weights are kept at a time. staleness: the most updates that come between a
  // gradient's weights and the weights that it changes.
  std::int64_t versions = 1, staleness = 0;
  bool server = false;  // parameter servers: processes on hosts, no GPU
  // An update may be validated in the next step (post_validation.h): the tasks from `validation` on receive the norm
  // over all stages, and in task `validated` the host waits for it. A wrong update is rolled back there, and the tasks
  // before it in the step run again. kNone: the update itself waits for the norm.
  TaskId validation = kNone, validated = kNone;
};

// The ends of one collective or send/receive pair that lie in this plan.
struct Match {
  std::uint32_t first = 0, count = 0;  // range in Plan::match_members
};

// All groups of one dimension over all ranks: groups[i] lists global ranks; member_of[rank] is the index of the rank's
// group.
struct GroupTable {
  GroupList groups;
  std::vector<std::int32_t> member_of;
};

struct Plan {
  std::int64_t ranks = 0;    // ranks of the whole job
  std::int64_t servers = 0;  // parameter servers: the last ones of the ranks
  // How many servers hold the same range of every bucket, and form a chain: server i holds range i % ranges(), and
  // follows server i - ranges() in its chain. Workers push to a chain's head and pull from its tail.
  std::int64_t copies = 1;
  // For each server the number of the worker at whose position in the cluster it runs, or would run.
  std::vector<std::int64_t> server_seats;
  bool servers_beside = false;  // servers run on the workers' machines
  // Workers do not wait for each other: a server updates with what each worker pushes as it arrives.
  bool asynchronous_workers = false;
  // A step of an asynchronous schedule begins before the previous one has ended: the plan holds several steps, from the
  // filling of the pipeline to its draining, and a report covers one step between them.
  std::int64_t steps = 1, reported = 0;
  std::int64_t micro_batches = 0;      // micro-batches of all steps
  std::int64_t update_every = 1;       // micro-batches between updates
  Bytes element_bytes = 2;             // bytes of an activation element
  bool one_queue = false;              // a rank's kernels begin in the order of their launches, whatever their lanes
  bool steps_overlap = false;          // no stage waits for the others between steps: updates are validated later
  bool shards_optimizer = false;       // data ranks hold a part of the optimizer states each
  bool shards_gradients = false;       // a unit's gradient lives only until it is reduced, to a part on each data rank
  std::vector<GroupTable> dimensions;  // groups, by Dimension
  std::vector<std::uint16_t>
      kind_of_rank;  // kind of each rank, a class on each stage; empty: stages have one class each
  // Dimensions whose groups have ranks of several classes of a stage; groups of other dimensions lie within one class
  std::vector<Dimension> meeting;
  std::vector<RankClass> classes;
  std::vector<Block> blocks;
  std::vector<Op> ops;
  std::vector<Frame> frames;
  std::uint32_t buffers = 0;         // buffer ids given out
  std::vector<Task> tasks;           // tasks by slot, then in issue order; one sentinel at the end
  std::vector<TaskId> dependencies;  // dependencies beyond the order of a task's own lane
  std::vector<Match> matches;
  std::vector<TaskId> match_members;

  std::int64_t workers() const { return ranks - servers; }
  std::int64_t ranges() const { return servers / copies; }
  std::int64_t seat_of(std::int64_t rank) const { return rank < workers() ? rank : server_seats[rank - workers()]; }
  int kind_of(std::int64_t rank) const { return kind_of_rank.empty() ? 0 : kind_of_rank[rank]; }
  bool meet(Dimension d) const { return std::find(meeting.begin(), meeting.end(), d) != meeting.end(); }
  std::int64_t step_micro_batches() const { return micro_batches / steps; }
  TaskId task_count() const { return static_cast<TaskId>(tasks.size()) - 1; }
  std::span<const TaskId> dependencies_of(TaskId t) const {
    return {dependencies.data() + tasks[t].first_dependency, dependencies.data() + tasks[t + 1].first_dependency};
  }
  std::span<const TaskId> members_of(std::uint32_t match) const {
    return {match_members.data() + matches[match].first, matches[match].count};
  }
  const Op& op_of(TaskId t) const { return ops[tasks[t].op]; }
  std::uint32_t slot_of(TaskId t) const { return tasks[t].lane / kLanes; }
};

std::string_view letter_of(Phase p);  // "F", "B", "I", "W", "step"
std::string_view name_of(Dimension d);
std::string_view name_of(LaneKind l);
std::string_view name_of(Category c);
std::string_view name_of(MemoryTier p);

// The slot (rank class) whose tasks each rank of the job runs: one of its own, or that of its class in its stage.
std::vector<std::uint32_t> slots_of_ranks(const Plan& plan);

// The frame in which an operand of a task of frame f lies.
std::uint32_t frame_of(const Plan& plan, std::uint32_t frame, const Operand& operand);
std::uint32_t frame_of(const Plan& plan, std::uint32_t frame, Scope scope);  // for an operand that is no tile

// The place of a task in the step: "B micro-batch 0 layer 79, mlp up input gradient"; "start" for kNone.
std::string place_of(const Plan& plan, TaskId t);

}  // namespace orrery
