#include "exec/mpi/chains.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "exec/mpi/check.h"

namespace orrery::mpi {
namespace {

// Number of integers in a note (a short message between ranks): one for its kind, one for the number of a push or pull.
constexpr int kWords = 2;

Channel duplicate(MPI_Comm world) {
  Channel channel;
  ORRERY_CHECK_MPI(MPI_Comm_dup(world, &channel.comm));
  ORRERY_CHECK_MPI(MPI_Comm_set_errhandler(channel.comm, MPI_ERRORS_RETURN));
  ORRERY_CHECK_MPI(MPI_Comm_rank(world, &channel.rank));
  ORRERY_CHECK_MPI(MPI_Comm_size(world, &channel.size));
  return channel;
}

// Returns the number of MPI tags before they repeat. A tag must not be used again while an earlier message with the
// same tag may still arrive a second time.
std::int64_t tags_of(MPI_Comm comm) {
  int* bound = nullptr;
  int found = 0;
  ORRERY_CHECK_MPI(MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&bound), &found));
  return found != 0 ? *bound : static_cast<std::int64_t>(kTags);
}

}  // namespace

Chains::Chains(MPI_Comm world, const Plan& plan, LostRanks& lost)
    : pushes_(duplicate(world)),
      pulls_(duplicate(world)),
      notes_(duplicate(world)),
      me_(pushes_.rank),
      workers_(static_cast<int>(plan.workers())),
      pieces_(static_cast<int>(plan.ranges())),
      copies_(static_cast<int>(plan.copies)),
      tags_(tags_of(world)),
      lost_(lost),
      heard_(static_cast<std::size_t>(plan.ranks)) {}

Chains::~Chains() {
  for (Channel* c : {&pushes_, &pulls_, &notes_}) MPI_Comm_free(&c->comm);
}

// Returns the first server that is not lost in a chain (parameter servers with the same shard), searching from the
// server at position `from` of the chain in steps of `step` (1 or -1); -1 if all are lost.
int Chains::alive(int piece, int from, int step) const {
  for (int copy = from; copy >= 0 && copy < copies_; copy += step) {
    const int rank = server(piece, copy);
    if (!lost_.has(rank)) return rank;
  }
  return -1;
}

int Chains::first_of(int piece) const { return alive(piece, 0, 1); }
int Chains::last_of(int piece) const { return alive(piece, copies_ - 1, -1); }
int Chains::before_me() const { return alive(piece(), (me_ - workers_) / pieces_ - 1, -1); }
int Chains::after_me() const { return alive(piece(), (me_ - workers_) / pieces_ + 1, 1); }

void Chains::poll() {
  for (int here = 1; here != 0;) {
    MPI_Status status;
    ORRERY_CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, notes_.comm, &here, &status));
    if (here == 0) break;
    std::int64_t word[kWords];
    ORRERY_CHECK_MPI(MPI_Recv(word, kWords, MPI_INT64_T, status.MPI_SOURCE, 0, notes_.comm, MPI_STATUS_IGNORE));
    std::int64_t& heard = heard_[static_cast<std::size_t>(status.MPI_SOURCE)][static_cast<std::size_t>(word[0])];
    heard = std::max(heard, word[1]);
  }
  std::erase_if(said_, [](Word& w) {
    int done = 0;
    ORRERY_CHECK_MPI(MPI_Test(&w.request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
  if (lost_.look() && serves()) tell_if_last();
}

void Chains::tell(int rank, Note note, std::int64_t number) {
  if (rank == me_ || lost_.has(rank)) return;
  Word& word = said_.emplace_back(Word{note, number});
  ORRERY_CHECK_MPI(MPI_Isend(&word, kWords, MPI_INT64_T, rank, 0, notes_.comm, &word.request));
}

// If this server is the last of its chain (parameter servers with the same shard), tells all workers and the chain's
// servers that the push is done, because the last server gets a sum only after all other servers of the chain have it.
void Chains::tell_if_last() {
  if (after_me() >= 0) return;
  for (int w = 0; w < workers_; ++w) tell(w, kPushed, has_);
  for (int copy = 0; copy < copies_; ++copy) tell(server(piece(), copy), kPushed, has_);
}

void Chains::tell_pushed(std::int64_t number) {
  has_ = number;
  tell_if_last();
}

void Chains::tell_pulled(int piece, std::int64_t number) {
  for (int copy = 0; copy < copies_; ++copy) tell(server(piece, copy), kPulled, number);
}

bool Chains::pushed(int piece, std::int64_t number) const {
  for (int copy = 0; copy < copies_; ++copy) {
    if (heard_[static_cast<std::size_t>(server(piece, copy))][kPushed] >= number) return true;
  }
  return false;
}

bool Chains::pulled(int worker, std::int64_t number) const {
  return heard_[static_cast<std::size_t>(worker)][kPulled] >= number;
}

Chains::Landing& Chains::land(const Channel& channel, int from, std::int64_t number, Bytes bytes) {
  Landing& landing = landings_.emplace_back();
  landing.bytes.resize(static_cast<std::size_t>(bytes));
  receive(channel, from, tag(number), landing.bytes.data(), bytes, landing.requests);
  return landing;
}

void Chains::drop(Landing& landing) {
  landings_.remove_if([&](const Landing& l) { return &l == &landing; });
}

void Chains::finish() {
  for (int rank = 0; rank < pushes_.size; ++rank) tell(rank, kDone, 1);
  const auto here = [&](int rank) {
    return rank == me_ || lost_.has(rank) || heard_[static_cast<std::size_t>(rank)][kDone] > 0;
  };
  for (int rank = 0; rank < pushes_.size;) {
    poll();
    here(rank) ? void(++rank) : std::this_thread::yield();
  }
  // This loop waits until all notes (short messages) in said_ are sent, because MPI reads them until then.
  while (!said_.empty() && !lost_.any()) poll();
}

}  // namespace orrery::mpi
