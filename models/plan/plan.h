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
#include "models/plan/operand.h"

namespace orrery {

// A plan says what every rank does in one step, in which order, on which buffers. It holds no times, no pointers and no
// device types; the simulator and the executor read the same plan. make_plan() builds it folded: one slot per class of
// ranks that do the same work; unfold() gives every rank its own slot.
//
//   slot (rank class) --owns--> tasks in the order its host issues them
//   task --refers--> op (what, shapes, operands) and frame (which instance of the operands' buffers)
//   frame = (slot, block, micro-batch): buffer id = frame.first_buffer + operand.slot

using TaskId = std::uint32_t;
inline constexpr std::uint32_t kNone = 0xffffffffU;

// The part of a step that an op belongs to: forward (F) and backward (B) of a micro-batch; backward split into input
// gradients (I) and weight gradients (W); or work done once a step.
enum class Phase : std::uint8_t { forward, backward, input_gradient, weight_gradient, step };

// The lanes of a rank: queues whose tasks run one after another in the order of issue, as on a CUDA stream. Transfers
// have one lane per direction and group (in a single lane an early receive would block a later send). The id of a lane
// in a plan is slot * kLanes + its LaneKind.
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
  send_partner,  // BPipe: sends of activations to the partner stage, which keeps them until backward, and back
  receive_partner,
  embedding,
  model,
  d2h,  // copies from the device's memory to the host's
  h2d,  // copies from the host's memory to the device's
  cpu,  // work that the host's processors do
  nvme_read,
  nvme_write,
  // Four lanes for a vocabulary that all pipeline stages share: token embeddings and their gradients, hidden states,
  // the sums of the loss, and the gradients of the hidden states.
  token_embeddings,
  hidden_states,
  vocabulary_sums,
  hidden_gradients,
  expert_reduce,  // gradient buckets of experts, which other groups of ranks reduce than those of data_reduce
  hand_over       // the output of a frozen model on ranks of its own, to those of the model that trains
};
inline constexpr std::uint32_t kLanes = 26;

// Returns whether gradients are reduced over data ranks on a lane, be it those of experts or those of other weights.
inline bool reduces_gradients(LaneKind l) { return l == LaneKind::data_reduce || l == LaneKind::expert_reduce; }

// The line of the memory report that a buffer's bytes are added to.
enum class Category : std::uint8_t { parameters, gradients, optimizer, activations, buffers, workspace };
inline constexpr int kCategories = 6;

// The description of one buffer of a block; every micro-batch has its own instance of the buffer (Frame).
struct BlockBuffer {
  std::string name;
  Bytes bytes = 0;
  Category category = Category::activations;
  // whether the buffer is a state that is allocated at the first update and never freed (optimizer moments)
  bool lazy = false;
  // index in Block::runtime_sizes of the buffer's number of rows, if that is known only at run time (`bytes` is then a
  // prediction); else -1
  std::int32_t runtime_size = -1;
  MemoryTier home = MemoryTier::device;
  // whether the buffer lies in the arena, memory that the rank allocates before the first step (BlockRole::arena); all
  // such buffers lie there one after another, without gaps
  bool contiguous = false;
};

// An op: the description of work that many tasks share, such as the tasks of all micro-batches and of all layers of the
// same shape.
struct Op {
  std::string name;  // name of the op: "qkv", "qkv input gradient"
  Work work;
  Phase phase = Phase::forward;
  LaneKind lane = LaneKind::compute;
  Precision precision = Precision::bf16;
  bool weight_gradient = false;  // whether the op belongs to the weight-gradient pass when a schedule splits backward
  bool recompute = false;        // whether the op is a forward op that runs again in backward
  bool optimizer = false;        // whether the op belongs to the update: norm kernels, optimizer, casts of parameters
  bool host_waits = false;       // whether the issuing thread waits at this op until the op's dependencies are done
  bool within = false;  // whether the kernels of another op do this op's work, so that it takes no time and no launch
  // whether the call that launches the op before launches this one too, so that it takes no time of the host: both are
  // in one CUDA graph; or of generated text an all-reduce and the norm after it, or a cast and its product
  bool same_call = false;
  // index in the block's runtime_sizes of the number of rows that the op's work is proportional to; -1: all sizes are
  // known when planning
  std::int32_t runtime_size = -1;
  std::vector<Operand> operands;
  std::vector<Operand> waits_for;  // buffers that this op does not read, but whose last writer must end first
  std::vector<Operand> allocates;  // buffers allocated when the op is issued
  // buffers freed when the op is issued (ops of the compute lane) or has completed (other lanes)
  std::vector<Operand> frees;
};

// Whether an op moves bytes between ranks.
inline bool moves(const Op& op) {
  return std::holds_alternative<Collective>(op.work) || std::holds_alternative<Transfer>(op.work);
}

// Number of launches that a device queues before the next launch blocks: the host runs ahead of the device by at most
// this number. (CUDA's per-context channel ring has 1,024 entries.)
inline constexpr TaskId kLaunchQueue = 1024;

// Cut says how a weight (out, in) is cut over the ranks of a group. rows, columns: each rank gets a part of them.
// heads, halves, sections: the weight packs several matrices, and each rank gets a part of the rows of each of them: by
// heads if they are queries, keys and values; of both halves if they are gate and up projection; of each section
// otherwise.
enum class Cut : std::uint8_t { none, rows, columns, heads, halves, sections };

// A weight of a block (layer, embedding or output) as one rank holds it.
struct LocalParameter {
  std::string name;
  std::int64_t out = 0, in = 0;  // numbers of rows and columns that one rank of the tensor parallel group holds
  std::int64_t offset = 0;       // number of elements between the block's first weight and this weight
  Cut cut = Cut::none;
  // whether the ranks of the tensor group hold the same weight, each with a part of its gradient
  bool partial = false;
  // > 0: number of experts whose matrices lie one after another (`out` rows in all). They are cut over the ranks of the
  // group `expert_tensor`, and their gradients are reduced over the ranks of `expert_data`
  std::int64_t experts = 0;
  // Number of rows at the end of `out` that are key/value heads which every rank of the group `kv` holds; each of these
  // ranks computes a part of their gradient.
  std::int64_t kv_rows = 0;
  // > 0: the weight is a tile, a contiguous range of a larger weight's rows that is gathered and reduced by itself if
  // weights are sharded (ZeRO-Infinity, 2104.07857, section 5.1.3: memory-centric tiling); this is its number within
  // the block. tile_first, tile_of: number of the larger weight's rows before the tile, and in all.
  std::uint16_t tile = 0;
  std::int64_t tile_first = 0, tile_of = 0;
  std::vector<std::int64_t> sections = {};  // Cut::sections: rows of each section on this rank, which sum to `out`
  // On a grid of tensor ranks (2D or 3D tensor parallelism), `over` is the group whose members the weight is cut over.
  // A matrix cut by rows is then also cut by columns over the group `columns_over`, and on a cube (`cut_in_depth`) each
  // member's rows are cut once more over the group tensor_depth.
  Dimension over = Dimension::tensor;
  std::optional<Dimension> columns_over = std::nullopt;
  bool cut_in_depth = false;
  // frozen: the weight does not train; it has no gradient and no optimizer states, and lies in a buffer of frozen
  // weights, where it begins at `offset`. nf4: the weight is kept there in the 4-bit type NF4. stored: number of units
  // of Plan::frozen_width bytes that the weight takes there.
  bool frozen = false, nf4 = false;
  std::int64_t stored = 0;
  WeightFormat format = {};  // the format in which a weight is stored for text generation

  // Returns whether the ranks of a group hold the same weight, each with a part of its gradient.
  bool summed_over(Dimension group) const { return partial && (cut == Cut::none || over != group); }
};

// A size that is known only at run time, such as the number of tokens that an expert gets in one layer and micro-batch:
// the value that the planner and the simulator assume, and the upper bound. Every micro-batch has its own value.
struct RuntimeSize {
  std::string name;
  std::int64_t predicted = 0, bound = 0;
};

// The purpose of a block. receive, send: transfers at the boundaries of a pipeline stage. state: parameters, gradients
// and optimizer states of a chunk. unit: gathered weights, and their gradients before reduction, of a unit (the layers
// that are gathered together if weights are sharded). rank: single numbers of the rank, such as the gradient norm.
// tile: buffers on the host that pieces of the states pass through (offload). arena: memory allocated before the first
// step and cut into cells of one size, for buffers that lie one after another. version: older weights, which
// micro-batches in flight still need (asynchronous schedules). update: the buffers of one update, in plans with several
// updates. evicted: activations that a stage keeps for another stage. exchange: tensors that all stages of a pipeline
// sum or receive together. vision: a part of the vision encoder, before the embedding.
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
  exchange,
  vision
};

// Whether a block's buffers exist from before the first step to the end of the run.
inline bool outlives_steps(BlockRole role) {
  return role == BlockRole::state || role == BlockRole::rank || role == BlockRole::tile || role == BlockRole::arena ||
         role == BlockRole::version;
}

// A block holds the ops of an embedding, a layer, the output or a stage's boundary for one micro-batch, as a list of
// forward and one of backward ops, and describes their buffers. Buffers 0 and 1 are always the input and the gradient
// of the output.
struct Block {
  std::string name;
  BlockRole role = BlockRole::layer;
  std::vector<BlockBuffer> buffers;
  std::vector<std::uint32_t> forward, backward;  // ids of ops in the order of issue
  // number of backward ops, from the first, that input gradients need; only weight gradients need the ops after them
  std::uint32_t input_gradients = 0;
  // The first `fetches` backward ops upload offloaded activations from the host. They may be issued one block early,
  // before the backward of the block that comes just before this one, so that they run ahead of their use
  std::uint32_t fetches = 0;
  // Ids of forward ops that wait until activations are offloaded and free them on the device; they are issued only
  // after the forward ops of the next block, which run during the offload
  std::vector<std::uint32_t> release;
  // ids of forward ops that are issued later than the block's other ones, when every pipeline stage has the inputs of
  // these ops (sums of the loss over a vocabulary that all stages share)
  std::vector<std::uint32_t> exchange;
  std::vector<LocalParameter> parameters;
  std::int64_t parameter_elements = 0;  // number of elements of the block's weights that train
  std::int64_t frozen_units = 0;        // number of units (Plan::frozen_width) of the block's frozen weights
  std::vector<RuntimeSize> runtime_sizes;
  bool second = false;  // whether the block is part of the frozen model beside the one that trains (SecondModel)
};
inline constexpr std::uint16_t kInput = 0;
inline constexpr std::uint16_t kOutputGradient = 1;

// A frame: an instance of a block's buffers, such as for one micro-batch. In a micro-batch's frame `next` and
// `previous` are the frames of the chunk's neighbouring blocks: activations are written to the next one, gradients to
// the previous one. In the frame of a unit (weights gathered together) `next` is the frame of its first tile, and a
// tile's `next` is the next tile. Blocks may read an embedding table that another block owns (Part::tied: multi-token
// prediction); then `previous` in the frame of their unit or state is the table's frame.
struct Frame {
  std::uint32_t block = kNone;
  std::uint32_t first_buffer = 0;
  // ids of other frames (instances of buffers): neighbouring blocks of the chunk (next, previous), the second model's
  // block whose input this block reads (beside), the unit of weights that are gathered together, and the chunk's states
  std::uint32_t next = kNone, previous = kNone, beside = kNone, unit = kNone, state = kNone;
  // id of the frame (instance of buffers) that holds the version of the weights which the micro-batch uses; kNone: the
  // micro-batch uses the weights in frame `state`
  std::uint32_t weights = kNone;
  std::uint32_t slot = 0;  // index of the rank class that the frame belongs to
  // index in the model of the layer whose block the frame is an instance of; -1 for the embedding, the number of layers
  // for the output
  std::int32_t layer = -1;
  // index of the frame's micro-batch; -1 if the frame belongs to no single micro-batch; in the frame of an update, the
  // last micro-batch before it
  std::int32_t micro_batch = -1;
  std::int32_t chunk = 0;
  std::int64_t base = 0;  // number of elements before this block's weights in the chunk's flat buffers
  // number of units (Plan::frozen_width) before this block in the chunk's buffer of frozen weights
  std::int64_t frozen_base = 0;
};

// Index of the buffer of weights among the buffers of its block; the block is a chunk's states (BlockRole::state) or
// older weights (BlockRole::version).
inline constexpr std::uint16_t kWeights = 0;

// Flags of a task, to be combined by "or". kJoinsPrevious: the task is in the same batch (NCCL group) as the task
// issued before it. kStepEnd: the task is the last one of a step.
inline constexpr std::uint8_t kJoinsPrevious = 1;
inline constexpr std::uint8_t kStepEnd = 2;

// A task is one execution of an op by one class of ranks, for one micro-batch or once a step. It takes 24 bytes.
struct Task {
  std::uint32_t op = 0;
  std::uint32_t frame = 0;
  std::uint32_t lane = 0;
  // index in Plan::dependencies of the task's first dependency; its dependencies end where those of the next task begin
  std::uint32_t first_dependency = 0;
  // index in Plan::matches (tasks that meet in one transfer or collective) of the match that the task is a member of;
  // kNone if no other task of this plan takes part
  std::uint32_t match = kNone;
  std::uint8_t flags = 0;
};

// A class of ranks that do the same work, or a single rank in an unfolded plan. Its index in Plan::classes is its slot.
struct RankClass {
  std::string name;  // name of the class: "stage 0"
  std::int64_t stage = 0;
  std::int64_t representative = 0;  // global number of the rank that represents the class
  std::int64_t multiplicity = 1;
  TaskId begin = 0, end = 0;  // first task of the class and the task after its last; the tasks lie in issue order
  // id of the frame (buffers) with the rank's scalars, such as the gradient norm (Scope::rank)
  std::uint32_t frame = kNone;
  // versions: number of versions of the weights that are kept at a time. staleness: largest number of updates made
  // between the forward of a micro-batch and the update that uses its gradient.
  std::int64_t versions = 1, staleness = 0;
  bool server = false;  // whether the ranks are parameter servers: processes on hosts, without a GPU
  // An update may be validated in the next step (post_validation.h): the tasks from `validation` on receive the norm
  // over all stages, and in task `validated` the host waits for it. A wrong update is rolled back at that task, and the
  // tasks before it in the step run again. kNone: the update waits for the norm.
  TaskId validation = kNone, validated = kNone;
  bool second = false;  // whether the ranks hold a frozen model alone (SecondModel), whose stages are the last ones
};

// A match joins the tasks of this plan that are members of one collective, or the sender and the receiver of one
// transfer.
struct Match {
  // index in Plan::match_members of the match's first member, and number of members
  std::uint32_t first = 0, count = 0;
};

struct Plan {
  std::int64_t ranks = 0;    // number of ranks of the job
  std::int64_t servers = 0;  // number of parameter servers, which are the last ranks
  // Number of parameter servers that hold the same range of every gradient bucket and form a chain. Server i holds
  // range i % ranges(), and follows server i - ranges() in its chain. Workers push to a chain's head and pull from its
  // tail.
  std::int64_t copies = 1;
  // For each parameter server, its position in the cluster, in the numbering of the workers (node by node): the
  // position of a worker if servers run beside workers, else the first position on a node behind the workers' nodes.
  std::vector<std::int64_t> server_seats;
  bool servers_beside = false;  // whether parameter servers run on the workers' machines
  // whether workers do not wait for each other: a parameter server updates its weights with the gradients of each
  // worker when they arrive
  bool asynchronous_workers = false;
  // A step of an asynchronous schedule begins before the previous one has ended: the plan holds `steps` steps, from the
  // filling of the pipeline to its draining, and a report covers step number `reported`.
  std::int64_t steps = 1, reported = 0;
  std::int64_t micro_batches = 0;  // number of micro-batches in all steps of the plan together
  std::int64_t update_every = 1;   // number of micro-batches between two updates
  Bytes element_bytes = 2;         // number of bytes of an activation element
  // Number of bytes of the units in which places in buffers of frozen weights are counted: of an element, or 1 where
  // some weights are kept in NF4
  Bytes frozen_width = 2;
  // whether a rank's kernels begin in the order in which they were launched, also on different lanes
  bool one_queue = false;
  // whether no pipeline stage waits for other stages between steps, because updates are validated in the next step
  bool steps_overlap = false;
  bool shards_optimizer = false;  // whether each data rank holds only a part of the optimizer states
  bool shards_gradients = false;  // whether a unit's gradient is freed once it is reduced to a shard on each data rank
  std::vector<GroupTable> dimensions;  // for each dimension of parallelism (Dimension), its process groups
  // kind of each rank (index: global rank), a number that tells ranks of one stage with different work apart; the ranks
  // of one kind on one pipeline stage form a class. Empty: all ranks of a stage form one class
  std::vector<std::uint16_t> kind_of_rank;
  // dimensions of parallelism whose process groups contain ranks of several kinds (kind_of_rank); a group of any other
  // dimension has ranks of one kind
  std::vector<Dimension> meeting;
  std::vector<RankClass> classes;
  std::vector<Block> blocks;
  std::vector<Op> ops;
  std::vector<Frame> frames;
  std::uint32_t buffers = 0;  // number of buffers in all frames (instances of blocks); ids of buffers are smaller
  // tasks of each class of ranks (slot) in issue order, one class after another; a last, additional entry only marks
  // where the dependencies of the last task end
  std::vector<Task> tasks;
  std::vector<TaskId> dependencies;  // tasks that a task waits for, except earlier tasks of its own lane
  std::vector<Match> matches;
  std::vector<TaskId> match_members;

  std::int64_t workers() const { return ranks - servers; }
  std::int64_t ranges() const { return servers / copies; }
  // Returns the number of the last pipeline stage of the model that a class of ranks holds.
  std::int64_t last_stage(const RankClass& of) const;
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

std::string_view letter_of(Phase p);  // the letter that stands for a phase: "F", "B", "I", "W"; or "step"
std::string_view name_of(Dimension d);
std::string_view name_of(LaneKind l);
std::string_view name_of(Category c);
std::string_view name_of(MemoryTier p);

// Returns for each rank of the job the slot (index of a class of ranks) whose tasks it runs: its own in an unfolded
// plan, else that of its class.
std::vector<std::uint32_t> slots_of_ranks(const Plan& plan);

// Returns the id of the frame (instance of a block's buffers) in which an operand of a task lies; `frame`: the task's
// own frame.
std::uint32_t frame_of(const Plan& plan, std::uint32_t frame, const Operand& operand);
// Returns the id of the frame (instance of a block's buffers) that a scope names for a task whose own frame is `frame`,
// without regard to tiles and to older versions of the weights.
std::uint32_t frame_of(const Plan& plan, std::uint32_t frame, Scope scope);

// Returns the position of a task in the step, for messages: "B micro-batch 0 layer 79, mlp up input gradient"; "start"
// for kNone.
std::string describe_task(const Plan& plan, TaskId t);

}  // namespace orrery
