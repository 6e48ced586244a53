#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "models/base/error.h"
#include "models/run/peers.h"
#include "sim/parallel/wire.h"

namespace orrery {

// The workers of a search: threads of this process, and other processes that make the same search in the same steps.
// Work items are distributed to processes by cost, and to threads as these become free. Every process gets all results,
// in the order of the items, so that the outcome depends neither on the number of threads nor of processes. If a
// process is lost, every other process computes each result that it has not received, since the processes need not
// agree on which one is lost.
class SearchWorkers {
 public:
  // peers: nullptr if this process is alone. stop: set when the user stops the search; nullptr: never stopped.
  SearchWorkers(unsigned threads, Peers* peers, const std::atomic<bool>* stop)
      : threads_(std::max(1U, threads)), peers_(peers), stop_(stop) {}

  std::size_t threads() const { return threads_; }
  bool has_peers() const { return peers_ != nullptr; }
  // Whether the user stopped the search. All processes learn of it at the end of the same call of each().
  bool stopped() const { return stopped_; }
  // Whether the user stopped the search, as far as this process knows. Work items may then be left undone.
  bool hurries() const { return stop_ != nullptr && *stop_; }

  // Calls f(thread, i) for every item i below `count`, in some process and thread. cost(i): cost of item i, in any
  // unit; share(wire, i): sends or receives the result of item i. If f threw Error, all processes throw the Error of
  // the lowest such i.
  template <class F, class Cost, class Share>
  void each(std::size_t count, F f, Cost cost, Share share) {
    const std::vector<int> owners = owners_of(count, cost);
    const int rank = peers_ != nullptr ? peers_->rank() : 0;
    std::vector<std::size_t> mine;
    for (std::size_t i = 0; i < count; ++i) {
      if (owners[i] == rank) mine.push_back(i);
    }
    std::vector<std::exception_ptr> errors(count);
    in_threads(mine, f, errors);
    const bool stop = stopped_ || hurries();
    stopped_ = peers_ != nullptr ? exchange(mine, stop, f, errors, share) : stop;
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }

 private:
  // For each work item, the process that computes it: in descending order of cost, each item goes to the process with
  // the lowest load so far.
  template <class Cost>
  std::vector<int> owners_of(std::size_t count, Cost cost) const {
    std::vector<int> owners(count);
    if (peers_ == nullptr) return owners;
    std::vector<std::pair<std::int64_t, std::size_t>> order;
    for (std::size_t i = 0; i < count; ++i) order.emplace_back(-static_cast<std::int64_t>(cost(i)), i);
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> loads(static_cast<std::size_t>(peers_->size()));
    for (const int rank : lost_) loads[static_cast<std::size_t>(rank)] = std::numeric_limits<std::int64_t>::max();
    for (const auto& [negative, i] : order) {
      const auto least = std::min_element(loads.begin(), loads.end());
      owners[i] = static_cast<int>(least - loads.begin());
      *least -= negative;
    }
    return owners;
  }

  template <class F>
  void in_threads(const std::vector<std::size_t>& items, F& f, std::vector<std::exception_ptr>& errors) const {
    std::atomic<std::size_t> next = 0;
    const auto work = [&](std::size_t thread) {
      for (std::size_t n = next++; n < items.size(); n = next++) {
        try {
          f(thread, items[n]);
        } catch (...) {
          errors[items[n]] = std::current_exception();
        }
      }
    };
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < std::min(threads_, items.size()); ++t) others.emplace_back(work, t);
    work(0);
  }

  // Exchanges results with all other processes; returns whether the user stopped any of them. Exceptions other than
  // Error are thrown in this process only.
  template <class F, class Share>
  bool exchange(std::vector<std::size_t> mine, bool stop, F& f, std::vector<std::exception_ptr>& errors, Share& share) {
    std::vector<bool> known(errors.size());
    // Sends or receives the results of work items, each with the index of its item, since other processes may have
    // distributed the items differently among the processes.
    const auto pass = [&](Wire& wire, std::vector<std::size_t>& items) {
      bool its_stop = stop;
      wire.share(its_stop);
      std::size_t count = items.size();
      wire.share(count);
      for (std::size_t n = 0; n < count; ++n) {
        std::size_t i = wire.reads() ? 0 : items[n];
        wire.share(i);
        if (i >= errors.size()) Wire::wrong();
        share_error(wire, errors[i]);
        share(wire, i);
        known[i] = true;
      }
      return its_stop;
    };
    Wire written;
    pass(written, mine);
    const std::vector<std::string> all = peers_->gather(written.take());
    for (int rank = 0; rank < peers_->size(); ++rank) {
      if (rank == peers_->rank()) continue;
      if (all[static_cast<std::size_t>(rank)].empty()) {
        lost_.insert(rank);
        continue;
      }
      Wire wire(all[static_cast<std::size_t>(rank)], names_);
      std::vector<std::size_t> none;
      stop = pass(wire, none) || stop;
      wire.end();
    }
    do_what_is_missing(known, f, errors);
    return stop;
  }

  template <class F>
  void do_what_is_missing(const std::vector<bool>& known, F& f, std::vector<std::exception_ptr>& errors) const {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (!known[i]) missing.push_back(i);
    }
    in_threads(missing, f, errors);
  }

  static void share_error(Wire& wire, std::exception_ptr& error) {
    std::string what;
    int code = 0;
    try {
      if (error && !wire.reads()) std::rethrow_exception(error);
    } catch (const Error& e) {
      what = e.what();
      code = e.exit_code;
    }
    wire.share(what);
    wire.share(code);
    if (wire.reads() && code != 0) error = std::make_exception_ptr(Error(what, code));
  }

  std::size_t threads_;
  Peers* peers_;
  const std::atomic<bool>* stop_;
  bool stopped_ = false;
  std::set<int> lost_;  // numbers (ranks) of the processes that were lost
  WireNames names_;
};

}  // namespace orrery
