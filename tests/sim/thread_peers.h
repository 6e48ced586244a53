#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "models/run/peers.h"

namespace orrery::test {

// Peers that are threads of one process.
struct ThreadPeersRoom {
  explicit ThreadPeersRoom(int size) : said(static_cast<std::size_t>(size)), meet(size) {}
  std::vector<std::string> said;
  std::barrier<> meet;
};

class ThreadPeers : public Peers {
 public:
  ThreadPeers(ThreadPeersRoom& room, int rank) : room_(room), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(room_.said.size()); }
  std::vector<std::string> gather(const std::string& mine) override {
    room_.said[static_cast<std::size_t>(rank_)] = mine;
    room_.meet.arrive_and_wait();
    std::vector<std::string> all = room_.said;
    room_.meet.arrive_and_wait();
    return all;
  }
  void abort(int status) override { std::exit(status); }

 private:
  ThreadPeersRoom& room_;
  int rank_;
};

// Runs f in each of `size` peers at the same time.
inline void with_peers(int size, const std::function<void(Peers&)>& f) {
  ThreadPeersRoom room(size);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadPeers peers(room, rank);
      f(peers);
    });
  }
}

}  // namespace orrery::test
