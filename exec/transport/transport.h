#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// The key of the communicator that a call uses: the kind of group, and the lane (queue of tasks). The sender and the
// receiver of a message are on different lanes; both use the sender's lane as the key.
using ChannelKey = std::pair<Dimension, LaneKind>;

inline LaneKind message_lane(LaneKind lane) {
  if (lane == LaneKind::receive_previous) return LaneKind::send_next;
  if (lane == LaneKind::receive_next) return LaneKind::send_previous;
  if (lane == LaneKind::receive_partner) return LaneKind::send_partner;
  return lane;
}

// Returns the keys of all communicators that a plan needs; ordered, so that all ranks create the communicators in the
// same order.
inline std::set<ChannelKey> channels_of(const Plan& plan) {
  std::set<ChannelKey> keys;
  for (const Op& op : plan.ops) {
    if (const auto* c = std::get_if<Collective>(&op.work)) keys.insert({c->group, op.lane});
    if (std::holds_alternative<Transfer>(op.work)) keys.insert({Dimension::pipeline, message_lane(op.lane)});
  }
  return keys;
}

// The type of the elements of a transfer; 16-bit values are summed in float. f64: keys of tokens (token_choice.h).
enum class Element : std::uint8_t { f32, bf16, fp16, f64, bytes };

enum class Reduction : std::uint8_t { sum, maximum };

// The arguments of one collective on this rank. `in` and `out` depend on the kind of collective:
//   all_reduce      in == out, counts = {elements}
//   all_gather      in: this member's piece, out: all pieces; counts: elements of each member's piece, in group order.
//                   in may be this member's piece of out
//   reduce_scatter  in: all pieces, out: this member's piece, which may be that piece of in
//   all_to_all      in: a piece for every member, out: a piece from every member, each of counts[0] elements; or, with
//                   a count for every member, of counts[i] elements for member i and received[i] from it
//   shift           in: data for the next member, out: data from the previous member, counts = {elements}
//   gather, scatter  member 0's out (gather) or in (scatter): all pieces; every member's other buffer: its own piece;
//                    counts as for all_gather
//   push, pull  in and out of a worker: all pieces; of a server: its piece; counts: elements of every server's piece;
//               copies: number of servers with the same piece, a chain (models/collectives/algorithms.h)
//   broadcast, reduce  counts = {elements}; a broadcast reads the root's in and writes every out, a reduce sums every
//                      in into the root's out; in and out may be the same. A reduce may overwrite every member's in,
//                      but no out except the root's
// add: the result is added to the content of out, as for gradients that are reduce-scattered once per micro-batch.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Reduction reduction = Reduction::sum;
  Element element = Element::f32;
  Dimension group = Dimension::data;
  std::string algorithm = "library";
  const void* in = nullptr;
  void* out = nullptr;
  std::vector<std::int64_t> counts, received;
  // For an all_to_all with a count for every member: the elements before the piece for each member in `in`, and before
  // the piece from each member in `out`; empty: the pieces lie one after another.
  std::vector<std::int64_t> places, received_places;
  bool add = false;
  int root = 0;
  int copies = 1;
  // For algorithm "hierarchical": the node of each member. Data for another node are sent in one message to the member
  // of that node with the sender's position, which forwards the data.
  std::vector<std::int64_t> nodes = {};
  // For algorithm "hierarchical" on rows of tokens: number of elements of a row (0: not rows of tokens), and the token
  // of each row that this member sends or, with `sums`, receives. On the way to experts, all rows of one token are
  // equal: a node gets one row, and its members get copies. On the way back, rows of a token are summed per node: the
  // sum takes the place of the token's first row, and the token's other rows are zeros.
  std::int64_t row = 0;
  std::vector<std::int32_t> tokens = {};
  bool sums = false;
};

// The send or the receive of a point-to-point message; peer is a global rank. A send ends only when the receiver has
// started to receive (rendezvous protocol).
struct MessageCall {
  bool send = true;
  std::int32_t peer = 0;
  void* data = nullptr;
  Bytes bytes = 0;
};

// A transfer in progress on one lane (queue of tasks). The memory that the call names must stay valid until the
// transfer is done; only a rank that is about to end the job may destroy this object earlier.
class Pending {
 public:
  virtual ~Pending() = default;
  // Lets the transfer progress (it does so only in this function), and returns whether it is done; never blocks.
  virtual bool done() = 0;
};

// Transfers data between the ranks of a job. There is a communicator for each group of ranks and each lane (queue of
// tasks), so that lanes progress independently; every member of a group starts the same calls on a lane in the same
// order. All calls come from one thread and do not block; if a library call fails, they throw an Error that quotes it.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<Pending> start(LaneKind lane, const CollectiveCall& call) = 0;
  virtual std::unique_ptr<Pending> start(LaneKind lane, const MessageCall& call) = 0;
  // Called after the last transfer; returns when no other rank can need this rank any more, for example in place of a
  // lost rank.
  virtual void finish() {}
};

}  // namespace orrery
