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

// Pushes to chains of servers and pulls from them (models/collectives/algorithms.h), which go on when a server is lost
// as long as another of its chain is left: whoever comes next takes its place.
//
// Calls are numbered. A push is done, for workers and for servers, when the last of the chain says that it has the sum:
// then every server of the chain has it. Until then a worker sends to whoever becomes the chain's first what it pushed,
// and a server hands on what it has to whoever becomes the next. A pull is done for a server when all workers say that
// they have what it holds: until then whoever becomes the last of the chain sends it to those that have not said so. So
// nobody changes what another may still have to be sent. Messages that come a second time are left where they are. What
// was under way with a lost rank never ends, so a process that knows of one must end without destroying this.
class Chains {
 public:
  // All ranks of `world` call this at once. lost: asked for more as calls go on.
  Chains(MPI_Comm world, const Plan& plan, LostRanks& lost);
  ~Chains();
  Chains(const Chains&) = delete;
  Chains& operator=(const Chains&) = delete;

  std::unique_ptr<Pending> start(const CollectiveCall& call);
  // Returns when all ranks that are left have come here: until then one may have to take another's place.
  void finish();

  // For the calls.
  void poll();  // hears what others say, and who was lost
  bool serves() const { return me_ >= workers_; }
  int workers() const { return workers_; }
  int piece() const { return (me_ - workers_) % pieces_; }
  int first_of(int piece) const;
  int last_of(int piece) const;
  int before_me() const;  // in the chain; -1: this is the first
  int after_me() const;   // -1: this is the last
  bool any_lost() const { return lost_.any(); }
  bool pushed(int piece, std::int64_t number) const;  // whether the chain has it
  bool pulled(int worker, std::int64_t number) const;
  void tell_pushed(std::int64_t number);             // this server has the sum
  void tell_pulled(int piece, std::int64_t number);  // this worker has it
  int tag(std::int64_t number) const { return 1 + static_cast<int>(number % tags_); }
  const Channel& pushes() const { return pushes_; }
  const Channel& pulls() const { return pulls_; }

  // What is received: where it lies stays until the end, for a lost rank's message may still be on its way there.
  struct Landing {
    std::vector<std::byte> bytes;
    std::vector<MPI_Request> requests;
  };
  Landing& land(const Channel& channel, int from, std::int64_t number, Bytes bytes);
  void drop(Landing& landing);  // it has come

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
  std::int64_t has_ = 0;                                 // of a server: the last push that it has the sum of
  std::vector<std::array<std::int64_t, kNotes>> heard_;  // by rank: the highest number of each note
  std::list<Word> said_;                                 // on their way
  std::list<Landing> landings_;
};

}  // namespace orrery::mpi
