#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// The key of the communicator that a call uses. The ends of a message stand on different lanes; both use the sender's
// lane.
using ChannelKey = std::pair<Dimension, LaneKind>;

inline LaneKind message_lane(LaneKind lane) {
  if (lane == LaneKind::receive_previous) return LaneKind::send_next;
  if (lane == LaneKind::receive_next) return LaneKind::send_previous;
  if (lane == LaneKind::receive_partner) return LaneKind::send_partner;
  return lane;
}

// All communicators that a plan needs; ordered, so that all ranks build them in one order.
inline std::set<ChannelKey> channels_of(const Plan& plan) {
  std::set<ChannelKey> keys;
  for (const Op& op : plan.ops) {
    if (const auto* c = std::get_if<Collective>(&op.work)) keys.insert({c->group, op.lane});
    if (std::holds_alternative<Transfer>(op.work)) keys.insert({Dimension::pipeline, message_lane(op.lane)});
  }
  return keys;
}

// How the values of a transfer are stored; sums are formed in float either way.
enum class Element : std::uint8_t { f32, bf16, bytes };

enum class Reduction : std::uint8_t { sum, maximum };

// One collective as this rank takes part in it, with real addresses. in and out are what the kind says:
//   all_reduce      in == out, counts = {elements}
//   all_gather      in: this member's piece, out: the whole; counts: elements of every member's piece, in group order.
//                   in may lie at its own place in out
//   reduce_scatter  in: the whole, out: this member's piece; out may be its own place in in
//   all_to_all      in, out: a piece for, from every member, all of counts[0] elements; or, where counts has one for
//                   every member, of counts[i] elements for member i and received[i] from it
//   shift           in: what goes to the next member, out: what comes from the one before, counts = {elements}
//   gather, scatter  member 0's out, in: all pieces; of every member in, out: its own; counts as all_gather's
//   push, pull  a worker's in, out: the whole; a server's out, in: its piece; counts: elements of every server's piece;
//               copies: servers that have the same one, a chain (models/collectives/algorithms.h)
//   broadcast, reduce  counts = {elements}; in is read on the root or by all, out is written by all or on the root;
//                      they may be one. What a reduce leaves in others' in and out is not told, but it writes no out
//                      beside in
// add: the result is added to what out holds (reduce_scatter of one of many micro-batches).
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Reduction reduction = Reduction::sum;
  Element element = Element::f32;
  Dimension group = Dimension::data;
  std::string algorithm = "library";
  const void* in = nullptr;
  void* out = nullptr;
  std::vector<std::int64_t> counts, received;
  bool add = false;
  int root = 0;
  int copies = 1;
  // For algorithm "hierarchical": the node of each member. Data for another node goes there once, to the member in the
  // sender's place on that node, which passes it on.
  std::vector<std::int64_t> nodes = {};
  // For algorithm "hierarchical" on rows of tokens: number of elements of a row (0: no rows of tokens), and the token
  // of each row that this member sends or, with `sums`, receives. On the way to experts the rows of one token are
  // alike: a node gets one row, and its members get copies. On the way back only the sum counts: the sum of a node
  // comes in the place of the token's first row, zeros in the token's other rows.
  std::int64_t row = 0;
  std::vector<std::int32_t> tokens = {};
  bool sums = false;
};

// One end of a point-to-point transfer; peer is a global rank. A send is rendezvous: it ends only when the receiver
// has come.
struct MessageCall {
  bool send = true;
  std::int32_t peer = 0;
  void* data = nullptr;
  Bytes bytes = 0;
};

// A transfer on its way on one lane. The memory of the call must stay valid until the transfer is done; only a rank
// that is about to end the job may drop it earlier.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual bool done() = 0;  // makes progress, which happens only here; never blocks
};

// Moves bytes between the ranks of a job. A communicator belongs to one (group, lane), so that lanes progress
// independently; every member of a group starts the same calls on a lane in the same order. All calls come from one
// thread. Nothing blocks; a failing library call throws Error that quotes it.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<Pending> start(LaneKind lane, const CollectiveCall& call) = 0;
  virtual std::unique_ptr<Pending> start(LaneKind lane, const MessageCall& call) = 0;
  // Called after the last transfer: returns when no other rank needs this one any more.
  virtual void finish() {}
};

}  // namespace orrery
