#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "exec/transport/transport.h"
#include "models/collectives/algorithms.h"

// Declarations that the source files of the MPI transport share; no other file includes this header.
namespace orrery::mpi {

// The communicator of one group of ranks on one lane (queue of tasks), and this rank's index in the group.
struct Channel {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  std::vector<std::int32_t> members;  // global numbers of the group's ranks
  // Number of collectives that this communicator has started so far, which is equal on all members.
  std::uint32_t calls = 0;
};

// MPI operations for sums and maxima of bf16 and fp16, types that MPI does not have.
struct Operations {
  MPI_Op bf16_sum = MPI_OP_NULL;
  MPI_Op bf16_maximum = MPI_OP_NULL;
  MPI_Op fp16_sum = MPI_OP_NULL;
  MPI_Op fp16_maximum = MPI_OP_NULL;
};

inline constexpr int kMessageTag = 0;

// Messages of two transfers on one communicator must not be confused. Each transfer has a tag, 1 to 32767 (the largest
// that every MPI allows, MPI 3.1, section 8.1.2); there are never so many transfers in progress that two have the same
// tag.
inline constexpr std::uint32_t kTags = 32767;
inline int next_tag(Channel& channel) { return 1 + static_cast<int>(channel.calls++ % kTags); }

// Creates the communicator of this rank's group by MPI_Comm_split, with the number of the group as the colour; all
// ranks must call this at the same time.
Channel make_channel(MPI_Comm world, int rank, const GroupTable& table);

// Returns the number of elements in all pieces before piece `piece`; if `piece` is the number of pieces, in all pieces
// together.
inline std::int64_t before_piece(const std::vector<std::int64_t>& counts, int piece) {
  return std::accumulate(counts.begin(), counts.begin() + piece, std::int64_t{0});
}

// send() and receive() start the MPI calls of one message, which is split if it is longer than an MPI count allows.
void send(const Channel& channel, int peer, int tag, const std::byte* data, Bytes bytes,
          std::vector<MPI_Request>& requests);
void receive(const Channel& channel, int peer, int tag, std::byte* data, Bytes bytes,
             std::vector<MPI_Request>& requests);
// Removes the MPI requests that are done; returns whether none remains.
bool all_done(std::vector<MPI_Request>& requests);

// The members of a group of ranks, sorted by the node on which they run. A message between two nodes is relayed by the
// member that has the sender's position on the other node.
class NodePlaces {
 public:
  using Member = std::size_t;

  NodePlaces(const std::vector<std::int64_t>& nodes, int rank);
  std::int64_t home() const { return nodes_[me_]; }
  std::int64_t node_of(Member m) const { return nodes_[m]; }
  const std::map<std::int64_t, std::vector<Member>>& all() const { return on_; }
  const std::vector<Member>& on(std::int64_t node) const { return on_.at(node); }
  const std::vector<Member>& neighbours() const { return on(home()); }
  // Returns the member on `node` that relays messages between `node` and the member `other` of another node.
  Member relay(Member other, std::int64_t node) const;
  // Returns the members of other nodes whose messages to and from this node this rank relays.
  std::vector<Member> served() const;

 private:
  std::size_t place(Member m) const;

  std::vector<std::int64_t> nodes_;
  Member me_;
  std::map<std::int64_t, std::vector<Member>> on_;
};

// A hierarchical all-to-all between and inside nodes, in three stages; a stage begins when all messages of the previous
// stage have been sent and received.
class ByNodes : public Pending {
 public:
  bool done() final;

 protected:
  using Member = NodePlaces::Member;

  ByNodes(Channel& channel, const CollectiveCall& call);
  // Begins stage 1, 2 or 3 of the hierarchical all-to-all. Stage 3 sends nothing: when it begins, all messages have
  // arrived.
  virtual void begin_stage(int stage) = 0;

  Member me() const { return static_cast<Member>(channel_.rank); }
  Bytes bytes(std::int64_t elements) const { return elements * width_; }
  int tag(int kind) const { return tags_[kind]; }  // kind: 0 to 3; a call has a tag for each kind of message
  template <class T>
  void move(std::vector<T>& what, Member peer, int kind, bool sends) {
    auto* data = reinterpret_cast<std::byte*>(what.data());
    const auto size = static_cast<Bytes>(what.size() * sizeof(T));
    sends ? send(channel_, static_cast<int>(peer), tag(kind), data, size, requests_)
          : receive(channel_, static_cast<int>(peer), tag(kind), data, size, requests_);
  }

  Channel& channel_;
  CollectiveCall call_;
  NodePlaces places_;

 private:
  std::int64_t width_;
  int tags_[4] = {};
  int stage_ = 0;
  std::vector<MPI_Request> requests_;
};

// The tokens of some rows, numbered in order of first appearance. of_row: for every row the number of its token.
struct TokenNumbers {
  std::vector<std::int32_t> of_row;
  std::vector<std::size_t> first_rows;  // for each token, the index of its first row
};
TokenNumbers number_tokens(const std::vector<std::int32_t>& tokens, const std::vector<std::size_t>& rows);

// The start_ functions start a collective; they ignore call.add, which their caller handles. `in` and `out` may overlap
// only as exec/transport/transport.h allows for gathers.
std::unique_ptr<Pending> start_library(Channel& channel, const Operations& operations, const CollectiveCall& call);
std::unique_ptr<Pending> start_two_stages(Channel& channel, const CollectiveCall& call);
std::unique_ptr<Pending> start_token_sums(Channel& channel, const CollectiveCall& call);
std::unique_ptr<Pending> start_moves(Channel& channel, const CollectiveCall& call, const Moves& moves);

}  // namespace orrery::mpi
