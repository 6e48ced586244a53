#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "exec/mpi/transport_parts.h"
#include "models/plan/plan.h"
#include "models/run/lost_ranks.h"

namespace orrery::mpi {

// Pushes of gradients to chains of parameter servers (replicas of the same shard), and pulls of weights from these
// servers (models/collectives/algorithms.h). If a server is lost, the next server of its chain replaces it, so that
// calls continue as long as each chain has at least one server.
//
// Calls are numbered. A push is done when the last server of the chain says that it has the sum: then every server of
// the chain has the sum. Until then, a worker sends its gradients again to any server that becomes the first of the
// chain, and a server sends its sum again to any server that becomes the next one after it. A pull is done for a server
// when all workers say that they have the server's weights: until then, any server that becomes the last of the chain
// sends the weights to the workers that have not said so. So no rank may change data before its call is done, because
// it may have to send the data again. Messages that come a second time are not received. A transfer with a lost rank
// never ends, so a process that knows of a lost rank must exit without destroying this object.
class Chains {
 public:
  // All ranks of `world` construct this object at the same time. lost: the set of lost ranks, which may grow, so that
  // every call reads it again.
  Chains(MPI_Comm world, const Plan& plan, LostRanks& lost);
  ~Chains();
  Chains(const Chains&) = delete;
  Chains& operator=(const Chains&) = delete;

  std::unique_ptr<Pending> start(const CollectiveCall& call);
  // Returns when all ranks that are not lost have called finish(), because until then a rank may have to replace a lost
  // one.
  void finish();

  // The functions below are public only for the code that carries out one push of gradients or one pull of weights
  // (chains_calls.cpp).
  void poll();  // receives notes (short messages) and learns which ranks are lost
  bool serves() const { return me_ >= workers_; }
  int workers() const { return workers_; }
  int piece() const { return (me_ - workers_) % pieces_; }
  int first_of(int piece) const;
  int last_of(int piece) const;
  int before_me() const;  // the server before this one in its chain (replicas of one shard); -1: this is the first
  int after_me() const;   // the server after this one in its chain (replicas of one shard); -1: this is the last
  bool any_lost() const { return lost_.any(); }
  // Returns whether all servers of the chain have the complete gradient sum of push `number`.
  bool pushed(int piece, std::int64_t number) const;
  bool pulled(int worker, std::int64_t number) const;
  // records that this server has the complete gradient sum of push `number`; the last server of the chain then tells
  // the other ranks
  void tell_pushed(std::int64_t number);
  // Tells the servers that this worker has received the weights of a pull.
  void tell_pulled(int piece, std::int64_t number);
  int tag(std::int64_t number) const { return 1 + static_cast<int>(number % tags_); }
  const Channel& pushes() const { return pushes_; }
  const Channel& pulls() const { return pulls_; }

  // The memory of a message that is being received. It is freed only when the message has arrived (drop()), because a
  // message of a lost rank may still arrive after the rank was lost.
  struct Landing {
    std::vector<std::byte> bytes;
    std::vector<MPI_Request> requests;
  };
  Landing& land(const Channel& channel, int from, std::int64_t number, Bytes bytes);
  void drop(Landing& landing);  // frees the memory of a message that has arrived

 private:
  enum Note : std::int64_t { kPushed, kPulled, kDone, kNotes };
  struct Word {
    std::int64_t note = 0, number = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  int server(int piece, int copy) const { return workers_ + copy * pieces_ + piece; }
  int alive(int piece, int from, int step) const;
  void tell(int rank, Note note, std::int64_t number);
  void tell_if_last();

  Channel pushes_, pulls_, notes_;
  int me_ = 0, workers_ = 0, pieces_ = 1, copies_ = 1;
  std::int64_t tags_ = kTags;
  LostRanks& lost_;
  std::int64_t push_calls_ = 0, pull_calls_ = 0;
  std::int64_t has_ = 0;  // number of the last push whose complete sum this server has
  // A note is a short message about a push or a pull, which it names by its number. For each sender and each kind of
  // note, this is the greatest number in the notes received.
  std::vector<std::array<std::int64_t, kNotes>> heard_;
  std::list<Word> said_;  // notes (short messages) that are being sent
  std::list<Landing> landings_;
};

}  // namespace orrery::mpi
