// This file carries out pushes and pulls of Chains: workers push gradients, servers sum them and pass them on; workers
// pull weights from servers.
#include <cstring>

#include "exec/mpi/chains.h"
#include "exec/transport/combine.h"

namespace orrery::mpi {
namespace {

using Landing = Chains::Landing;

// A message for the server at a certain position (the first, or the next) of a chain of parameter servers with the same
// shard; it is sent again if another server takes that position because a rank was lost.
class Sending {
 public:
  void to(const Channel& channel, int rank, int tag, const void* data, Bytes bytes) {
    if (rank < 0 || rank == rank_) return;
    requests_.clear();  // requests are dropped without waiting, because sends to a lost rank never end
    rank_ = rank;
    send(channel, rank, tag, static_cast<const std::byte*>(data), bytes, requests_);
  }
  // Returns whether this rank need not wait for the send any more: MPI has finished it, or a rank was lost. After a
  // loss the send may never end, since the receiver may have got the same data from the lost rank.
  bool over(const Chains& chains) { return chains.any_lost() || all_done(requests_); }

 private:
  int rank_ = -1;
  std::vector<MPI_Request> requests_;
};

// One push of gradients to parameter servers, or one pull of weights from them, with its number; each server has one
// piece of the call's buffers.
class ChainCall : public Pending {
 public:
  ChainCall(Chains& chains, const CollectiveCall& call, std::int64_t number)
      : chains_(chains), call_(call), number_(number) {}

 protected:
  std::int64_t elements(int piece) const { return call_.counts[static_cast<std::size_t>(piece)]; }
  Bytes bytes(int piece) const { return elements(piece) * width_of(call_.element); }
  Bytes bytes_before(int piece) const { return before_piece(call_.counts, piece) * width_of(call_.element); }

  Chains& chains_;
  CollectiveCall call_;
  std::int64_t number_;
};

class WorkersPush final : public ChainCall {
 public:
  WorkersPush(Chains& chains, const CollectiveCall& call, std::int64_t number)
      : ChainCall(chains, call, number), sendings_(call.counts.size()) {}

  bool done() override {
    chains_.poll();
    bool all = true;
    for (int s = 0; s < std::ssize(sendings_); ++s) {
      Sending& sending = sendings_[static_cast<std::size_t>(s)];
      if (!chains_.pushed(s, number_)) {
        sending.to(chains_.pushes(), chains_.first_of(s), chains_.tag(number_),
                   static_cast<const std::byte*>(call_.in) + bytes_before(s), bytes(s));
        all = false;
      } else if (!sending.over(chains_)) {
        all = false;
      }
    }
    return all;
  }

 private:
  std::vector<Sending> sendings_;
};

class ServersPush final : public ChainCall {
 public:
  using ChainCall::ChainCall;

  bool done() override {
    chains_.poll();
    if (!has_ && !receive()) return false;
    const int next = chains_.after_me();
    sending_.to(chains_.pushes(), next, chains_.tag(number_), call_.out, mine());
    return next < 0 || (chains_.pushed(chains_.piece(), number_) && sending_.over(chains_));
  }

 private:
  Bytes mine() const { return bytes(chains_.piece()); }

  // If this server is the first of its chain (parameter servers with the same shard), receives the gradients of all
  // workers; else receives the sum of the gradients from the server before it.
  bool receive() {
    const int before = chains_.before_me();
    if (landings_.empty() || before != before_) {
      landings_.clear();
      before_ = before;
      for (int from = before < 0 ? 0 : before; from < (before < 0 ? chains_.workers() : before + 1); ++from)
        landings_.push_back(&chains_.land(chains_.pushes(), from, number_, mine()));
    }
    for (Landing* l : landings_) {
      if (!all_done(l->requests)) return false;
    }
    // Gradients are summed in the order of the workers, so that the sum has the same bits in every run.
    for (Landing* l : landings_) {
      if (l == landings_.front() && mine() > 0) std::memcpy(call_.out, l->bytes.data(), l->bytes.size());
      if (l != landings_.front())
        combine(call_.element, Reduction::sum, l->bytes.data(), call_.out, elements(chains_.piece()));
    }
    for (Landing* l : landings_) chains_.drop(*l);
    landings_.clear();
    has_ = true;
    chains_.tell_pushed(number_);
    return true;
  }

  int before_ = -1;
  std::vector<Landing*> landings_;
  bool has_ = false;
  Sending sending_;
};

class WorkersPull final : public ChainCall {
 public:
  WorkersPull(Chains& chains, const CollectiveCall& call, std::int64_t number)
      : ChainCall(chains, call, number), parts_(call.counts.size()) {}

  bool done() override {
    chains_.poll();
    bool all = true;
    for (int s = 0; s < std::ssize(parts_); ++s) all = has(s) && all;
    return all;
  }

 private:
  struct Part {
    int from = -1;
    Landing* landing = nullptr;
    bool has = false;
  };

  bool has(int s) {
    Part& part = parts_[static_cast<std::size_t>(s)];
    if (part.has) return true;
    if (const int last = chains_.last_of(s); last != part.from) {
      part.from = last;
      part.landing = &chains_.land(chains_.pulls(), last, number_, bytes(s));
    }
    if (!all_done(part.landing->requests)) return false;
    std::byte* to = static_cast<std::byte*>(call_.out) + bytes_before(s);
    if (bytes(s) > 0) std::memcpy(to, part.landing->bytes.data(), static_cast<std::size_t>(bytes(s)));
    chains_.drop(*part.landing);
    chains_.tell_pulled(s, number_);
    part.has = true;
    return true;
  }

  std::vector<Part> parts_;
};

class ServersPull final : public ChainCall {
 public:
  ServersPull(Chains& chains, const CollectiveCall& call, std::int64_t number)
      : ChainCall(chains, call, number), sendings_(static_cast<std::size_t>(chains.workers())) {}

  bool done() override {
    chains_.poll();
    const bool last = chains_.after_me() < 0;
    bool all = true;
    for (int w = 0; w < chains_.workers(); ++w) {
      Sending& sending = sendings_[static_cast<std::size_t>(w)];
      const bool has = chains_.pulled(w, number_);
      if (last && !has) sending.to(chains_.pulls(), w, chains_.tag(number_), call_.in, bytes(chains_.piece()));
      all = all && has && sending.over(chains_);
    }
    return all;
  }

 private:
  std::vector<Sending> sendings_;
};

}  // namespace

std::unique_ptr<Pending> Chains::start(const CollectiveCall& call) {
  if (call.kind == CollectiveKind::push) {
    const std::int64_t number = ++push_calls_;
    if (serves()) return std::make_unique<ServersPush>(*this, call, number);
    return std::make_unique<WorkersPush>(*this, call, number);
  }
  const std::int64_t number = ++pull_calls_;
  if (serves()) return std::make_unique<ServersPull>(*this, call, number);
  return std::make_unique<WorkersPull>(*this, call, number);
}

}  // namespace orrery::mpi
