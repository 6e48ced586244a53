#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// Records a block's forward ops like an autograd tape and derives backward from it: every function that emits forward
// ops also records a function that emits their gradient ops, and finish() calls the recorded functions from the last to
// the first. Lifetimes of buffers follow from the ops that use them; ops in a recompute region free their outputs after
// forward and run again in backward.
class BlockBuilder {
 public:
  using Id = std::uint16_t;  // index of a buffer in the block

  BlockBuilder(std::string name, BlockRole role, Precision precision, Scope weights, Id weight_slot, Scope gradients,
               Id gradient_slot);

  Id slot(const std::string& name, Bytes bytes, Category category = Category::activations);
  Id input(Bytes bytes);            // adds the block's input, buffer 0, which the preceding block writes
  Id output_gradient(Bytes bytes);  // adds buffer 1, which the following block writes in backward
  // Adds a buffer that a block of another model writes in forward (SecondModel), as it would write the next block's
  // input.
  Id input_beside(const std::string& name, Bytes bytes);

  // Adds a weight of this block with its size on this rank; returns its index. partial: each tensor rank computes the
  // weight's gradient from its own rows or heads only, so that the gradients must be summed over the group. kv_rows:
  // number of the weight's last rows that are key/value heads which several tensor ranks hold.
  std::int32_t parameter(const std::string& name, std::int64_t out, std::int64_t in, Cut cut, bool partial = false,
                         std::int64_t kv_rows = 0, std::int64_t experts = 0);
  std::int32_t parameter(LocalParameter p);  // adds a weight as given, behind the block's other weights
  std::int32_t parameter_named(const std::string& name) const;  // index of a weight that was added before
  bool is_nf4_weight(std::int32_t parameter) const { return block_.parameters[parameter].nf4; }
  const WeightFormat& format_of_weight(std::int32_t parameter) const { return block_.parameters[parameter].format; }
  // Adds a weight as `tiles` tiles, equal ranges of its rows, and returns their indices. Each tile is a parameter that
  // is gathered and freed by itself.
  std::vector<std::int32_t> tiled_parameter(const std::string& name, std::int64_t out, std::int64_t in, Cut cut,
                                            std::int64_t tiles);

  // runtime_size() adds a number of rows that is known only at run time (tokens that a router sends to experts), and
  // returns its index. slot_of_rows() adds a buffer with that number of rows; `bytes` is the buffer's size for the
  // predicted number of rows.
  std::int32_t runtime_size(RuntimeSize size);
  Id slot_of_rows(const std::string& name, Bytes bytes, std::int32_t runtime_size);

  // Ops emitted between begin_region() and end_region() form one region. If `recompute`, the region's results are freed
  // after forward and the region runs again in backward; otherwise its results are kept until backward.
  void begin_region(bool recompute);
  void end_region();
  // Forward ops emitted after this call belong to Block::exchange: they are issued only when every pipeline stage has
  // the inputs of these ops (sums of the loss over a vocabulary that all stages share).
  void begin_exchange() { exchange_ = forward_.size(); }

  // Keeps one result of a recompute region until backward, although the region runs again there; the second run writes
  // that result to a scratch buffer.
  void keep(Id slot) { kept_.insert(slot); }
  // Whether gathered weights are freed after forward, and after backward. Weights that no backward op reads are always
  // freed after forward. lends_weights: a later block uses this block's gathered weights; in forward the later block
  // frees them, in backward this block does.
  bool releases_weights_after_forward = false;
  bool releases_weights_after_backward = true;
  bool lends_weights = false;
  // Whether the block's ops free gathered weights; false where the weights of several blocks are gathered together.
  bool frees_gathered = true;
  // Whether backward runs in two parts: the first computes the input's gradient, for which other stages wait, and the
  // second the ops on which only weight gradients depend (zero-bubble schedules).
  bool splits_backward = false;
  // offloads: whether activations that backward reads are offloaded from the device between forward and backward.
  // input_parts: number of ranks of the tensor group that hold the same input and keep one part of it each (ZeRO-R,
  // Rajbhandari et al. 2020, section 6.1: Pa); 1: each keeps the complete input.
  bool offloads = false;
  // memory tier that activations are offloaded to: the host, or disks through the host
  MemoryTier offload_tier = MemoryTier::host;
  std::int64_t input_parts = 1;
  // Whether the part of the block's input that is kept for backward lies in one arena, memory allocated before the
  // first step, with the kept inputs of other blocks (ZeRO-R, section 6.3: MD).
  bool contiguous = false;
  // Weights that do not train lie in a buffer of their own (frozen_slot), in the same frame as the trained weights, and
  // have no gradients; backward ops whose results nothing needs are left out. is_frozen tells by a weight's name
  // whether it is frozen, is_nf4 by its name and number of columns whether it is stored in NF4. input_trains: whether
  // the block before needs the gradient of this block's input.
  std::function<bool(const std::string&)> is_frozen;
  std::function<bool(const std::string&, std::int64_t)> is_nf4;
  // If set, format_of tells by a weight's name and number of columns the format in which it is stored where text is
  // generated, or to which training rounds it.
  std::function<WeightFormat(const std::string&, std::int64_t)> format_of;
  Id frozen_slot = 0;
  // Number of units (Plan::frozen_width) that an element of a frozen weight takes which is not in NF4
  Bytes units_of_a_wide_weight = 1;
  // If set, a weight's gradient of one micro-batch lies in this buffer of the chunk's states, at the weight's offset,
  // not in a buffer of the block, until an op adds it to the sums; the next micro-batch overwrites it.
  std::optional<Id> fresh_gradients;
  // The precision of the ops that are recorded from now on.
  void set_precision(Precision precision) { precision_ = precision; }
  Precision precision() const { return precision_; }
  bool forward_only = false;  // whether there is no backward, as where text is generated
  bool input_trains = true;
  // Whether the block's input stays in its buffer behind the last op that reads it, for a block of the other model
  // (Frame::beside), which frees it; and whether this block is such a reader, so that it frees that input.
  bool leaves_input = false, reads_beside = false;
  bool second = false;    // whether the block is one of the frozen second model (Block::second)
  Id handed_to = kInput;  // index of the next block's buffer that the block's output is written to
  // Prefix of weights' names, which tells apart the weights of several layers in one block.
  std::string prefix;

  // The buffers and weights that an op uses, for emit(), which appends the op to the pass being recorded (forward until
  // finish(), then backward).
  struct Uses {
    std::vector<Id> reads, writes, updates;
    std::vector<std::int32_t> weights, weight_gradients;
    std::vector<Id> numbers;              // scalars of the rank (buffers of Scope::rank) that the op reads
    std::vector<Operand> elsewhere = {};  // operands in buffers of other blocks
    bool host_waits = false;
    bool within = false;     // whether the op is part of another op's kernel (Op::within)
    bool same_call = false;  // Op::same_call
    // Buffers that are freed only after this op, which waits for a transfer that reads them. Without `holds` a buffer
    // is freed after its last use in issue order, although a transfer issued earlier may still read it.
    std::vector<Id> holds;
  };
  void emit(const std::string& name, const Work& work, const Uses& uses, LaneKind lane = LaneKind::compute);

  // Ops emitted between begin_graph() and end_graph() are captured in one CUDA graph, and so is their backward: one
  // call of the framework replays those that follow each other in a pass (Op::same_call).
  void begin_graph() { graph_ = ++graphs_; }
  void end_graph() { graph_ = 0; }

  // Adds a function that emits the backward ops of the forward ops emitted last.
  void on_backward(std::function<void()> f) {
    if (!forward_only) tape_.push_back({std::move(f), graph_});
  }

  // contribute() sets the gradient of buffer `of`; if several ops contribute to one buffer, an Add op sums their
  // gradients. gradient() returns that gradient's buffer.
  void contribute(Id of, Id gradient);
  Id gradient(Id of) const;
  bool has_gradient(Id of) const { return gradient_of_.count(of) > 0; }
  // Returns the op recorded last that writes a buffer; nullptr if none of the block's ops does.
  const Op* writer_of(Id slot) const;

  // Declares a buffer the block's output, which is written into the next block's input buffer, appends the block's ops
  // to `ops`, and returns the finished block. Equal ops of different blocks are not merged here, because callers use
  // one block for all equal layers.
  Block finish(Id output, std::vector<Op>& ops);
  // Finishes the last block of the model, which has no output.
  Block finish(std::vector<Op>& ops);

 private:
  struct Recorded {
    Op op;
    int region = 0;  // number of the recompute region that the op is in; 0: its results are kept
    std::vector<Id> holds = {};
    int graph = 0;  // number of the CUDA graph that has the op; 0: none
  };
  // A function that emits backward ops, and the graph of the forward ops that they are of.
  struct Backward {
    std::function<void()> emit;
    int graph = 0;
  };
  static void join_graphs(std::vector<Recorded>& ops);

  void run_backward();
  void leave_out_unneeded();  // leaves out backward ops that nothing needs (block_frozen.cpp)
  bool is_needed(const Op& op, const std::set<Id>& later) const;
  void insert_recomputation();
  std::vector<Operand> gradients_read(const Op& op, const std::vector<Recorded>& backward) const;
  void finish_backward();
  // The functions below are defined in block_store.cpp.
  void store_activations();
  Id cut_input();
  void offload_stored();
  void offload_slot(Id slot, Op& release);
  void copy_back(const char* name, LaneKind lane, MemoryTier from, Id source, MemoryTier to, Id target);
  void keep_fresh_gradients();
  bool is_stored(Id slot) const;
  void insert_after_use(Id slot, Op op);
  void insert_before_backward(std::size_t at, Op op);
  void put_weight_gradients_last();
  void hand_gradient_on();
  void keep_early_gradients(std::vector<bool>& waits);
  // How a buffer is used by the backward ops that come after the op in question, if backward runs in two parts. late:
  // an op that was moved to the second part uses it. now, written_now: an op of the first part uses it, or writes it.
  struct LaterUse {
    bool late = false, now = false, written_now = false;
  };
  using LaterUses = std::map<std::pair<Scope, Id>, LaterUse>;
  bool may_wait(std::size_t op, const LaterUses& later) const;
  void replace(Scope scope, Id slot, Scope with, Id with_slot, std::vector<Recorded>& pass);
  void set_lifetimes();
  struct Use {
    Op *first = nullptr, *last = nullptr;
  };
  std::vector<Use> uses_of_own(std::vector<Recorded>& pass) const;
  void own_lifetime(Id slot, const Use& forward, const Use& backward);
  void unit_lifetimes();
  void tile_lifetimes(std::vector<Recorded>& pass);
  Operand weight_operand(std::int32_t parameter, bool gradient) const;
  void place_parameters();
  Recorded run_again(Recorded r, std::map<Id, Id>& scratch);
  void boundary_lifetimes();
  static bool free_beside(std::vector<Recorded>& pass);  // defined in block_store.cpp
  Block hand_over(std::vector<Op>& ops);

  Block block_;
  Precision precision_;
  Scope weights_, gradients_;
  Id weight_slot_, gradient_slot_;
  std::vector<Recorded> forward_, backward_;
  bool in_backward_ = false;
  bool releases_ = false;  // whether the last forward op frees offloaded buffers
  int region_ = 0, regions_ = 0, graph_ = 0, graphs_ = 0;
  // index of the first forward op that waits until all pipeline stages have their inputs (Block::exchange)
  std::size_t exchange_ = static_cast<std::size_t>(-1);
  std::vector<Backward> tape_;
  std::uint16_t tiles_ = 0;  // number of tiles (parts of large weights that are gathered one by one) added so far
  std::map<Id, Id> gradient_of_;
  std::set<Id> kept_;
  std::set<Id> beside_;  // buffers that blocks of another model allocate and write (input_beside)
  // for each buffer that holds a weight's gradient until the second part of backward, the index of the weight
  std::map<Id, std::int32_t> early_;
};

}  // namespace orrery
