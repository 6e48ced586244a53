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

// Pushes to chains of parameter servers and pulls from them (models/collectives/algorithms.h). They continue when a
// server is lost, as long as another server of the same chain is left: the next one takes the lost server's place.
//
// Calls are numbered. A push is done, for workers and for servers, when the last server of the chain says that it has
// the sum: then every server of the chain has it. Until then a worker sends the gradients that it pushed to any server
// that becomes the first of the chain, and a server hands its sum on to any server that becomes the next. A pull is
// done for a server when all workers say that they have the weights that it holds: until then any server that becomes
// the last of the chain sends them to the workers that have not said so. So no rank changes data that another may still
// have to be sent. Messages that come a second time are never received. A transfer under way with a lost rank never
// ends, so a process that knows of a lost rank must end without destroying this object.
class Chains {
 public:
  // All ranks of `world` call this at once. lost: asked which ranks were lost while calls go on.
  Chains(MPI_Comm world, const Plan& plan, LostRanks& lost);
  ~Chains();
  Chains(const Chains&) = delete;
  Chains& operator=(const Chains&) = delete;

  std::unique_ptr<Pending> start(const CollectiveCall& call);
  // Returns when all ranks that are not lost have called this: until then a rank may have to take the place of another.
  void finish();

  // The functions below are for the calls (chains_calls.cpp).
  void poll();  // receives notes of other ranks and learns which ranks were lost
  bool serves() const { return me_ >= workers_; }
  int workers() const { return workers_; }
  int piece() const { return (me_ - workers_) % pieces_; }
  int first_of(int piece) const;
  int last_of(int piece) const;
  int before_me() const;  // the server before this one in the chain; -1: this is the first
  int after_me() const;   // the server after this one in the chain; -1: this is the last
  bool any_lost() const { return lost_.any(); }
  bool pushed(int piece, std::int64_t number) const;  // whether the whole chain has the push
  bool pulled(int worker, std::int64_t number) const;
  void tell_pushed(std::int64_t number);             // this server has the sum
  void tell_pulled(int piece, std::int64_t number);  // this worker has the weights
  int tag(std::int64_t number) const { return 1 + static_cast<int>(number % tags_); }
  const Channel& pushes() const { return pushes_; }
  const Channel& pulls() const { return pulls_; }

  // A received message: the memory stays until the end, because a lost rank's message may still be on its way there.
  struct Landing {
    std::vector<std::byte> bytes;
    std::vector<MPI_Request> requests;
  };
  Landing& land(const Channel& channel, int from, std::int64_t number, Bytes bytes);
  void drop(Landing& landing);  // called when the message has arrived

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
  std::int64_t has_ = 0;                                 // on a server: the last push whose sum it has
  std::vector<std::array<std::int64_t, kNotes>> heard_;  // by rank: the highest number of each note
  std::list<Word> said_;                                 // notes that are being sent
  std::list<Landing> landings_;
};

}  // namespace orrery::mpi
