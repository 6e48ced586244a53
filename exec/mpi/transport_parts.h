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

// The members of one group on one lane, and this rank's place among them.
struct Channel {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  std::vector<std::int32_t> members;  // global ranks
  std::uint32_t calls = 0;            // collectives started so far: the same on all members
};

// Sums and maxima of bf16, which MPI does not know.
struct Operations {
  MPI_Op bf16_sum = MPI_OP_NULL;
  MPI_Op bf16_maximum = MPI_OP_NULL;
};

inline constexpr int kMessageTag = 0;

// Moves of two calls on one channel must not be confused: each call has a separate tag, 1 to 32767 (the largest that
// every MPI allows, MPI 3.1, section 8.1.2), and there are never that many calls under way at once.
inline constexpr std::uint32_t kTags = 32767;
inline int next_tag(Channel& channel) { return 1 + static_cast<int>(channel.calls++ % kTags); }

// Every rank takes part in every MPI_Comm_split, with the rank's group as the colour.
Channel make_channel(MPI_Comm world, int rank, const GroupTable& table);

// Number of elements in the pieces before piece `piece`; with the number of pieces, of all pieces.
inline std::int64_t before_piece(const std::vector<std::int64_t>& counts, int piece) {
  return std::accumulate(counts.begin(), counts.begin() + piece, std::int64_t{0});
}

// Start the MPI calls for one message, cut into several where it is longer than an MPI count.
void send(const Channel& channel, int peer, int tag, const std::byte* data, Bytes bytes,
          std::vector<MPI_Request>& requests);
void receive(const Channel& channel, int peer, int tag, std::byte* data, Bytes bytes,
             std::vector<MPI_Request>& requests);
// Removes the requests that are done; returns whether none are left.
bool all_done(std::vector<MPI_Request>& requests);

// The members of a group by node, and the relay of each message between nodes: the member in the same place on the
// other node.
class NodePlaces {
 public:
  using Member = std::size_t;

  NodePlaces(const std::vector<std::int64_t>& nodes, int rank);
  std::int64_t home() const { return nodes_[me_]; }
  std::int64_t node_of(Member m) const { return nodes_[m]; }
  const std::map<std::int64_t, std::vector<Member>>& all() const { return on_; }
  const std::vector<Member>& on(std::int64_t node) const { return on_.at(node); }
  const std::vector<Member>& neighbours() const { return on(home()); }
  // The member on `node` that relays the messages between the member `other` of another node and this node.
  Member relay(Member other, std::int64_t node) const;
  // Members of other nodes for whom this member is the relay.
  std::vector<Member> served() const;

 private:
  std::size_t place(Member m) const;

  std::vector<std::int64_t> nodes_;
  Member me_;
  std::map<std::int64_t, std::vector<Member>> on_;
};

// A transfer that goes by nodes in three stages; each stage begins when all messages of the stage before have been sent
// and received.
class ByNodes : public Pending {
 public:
  bool done() final;

 protected:
  using Member = NodePlaces::Member;

  ByNodes(Channel& channel, const CollectiveCall& call);
  virtual void begin_stage(int stage) = 0;  // stages 1 to 3; in stage 3 no message is on its way any more

  Member me() const { return static_cast<Member>(channel_.rank); }
  Bytes bytes(std::int64_t elements) const { return elements * width_; }
  int tag(int kind) const { return tags_[kind]; }  // kind: one of four kinds of message
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

// Which rows belong to the same token: for every row the number of its token, in order of first appearance in the
// piece.
struct TokenNumbers {
  std::vector<std::int32_t> of_row;
  std::vector<std::size_t> first_rows;  // first row of each token
};
TokenNumbers number_tokens(const std::vector<std::int32_t>& tokens, const std::vector<std::size_t>& rows);

// Start the collective, ignoring call.add; in and out may overlap only as exec/transport/transport.h allows for
// gathers.
std::unique_ptr<Pending> start_library(Channel& channel, const Operations& operations, const CollectiveCall& call);
std::unique_ptr<Pending> start_two_stages(Channel& channel, const CollectiveCall& call);
std::unique_ptr<Pending> start_token_sums(Channel& channel, const CollectiveCall& call);
std::unique_ptr<Pending> start_moves(Channel& channel, const CollectiveCall& call, const Moves& moves);

}  // namespace orrery::mpi
