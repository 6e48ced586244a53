// This file passes messages between the processes of an MPI job. It is a separate plugin, loaded only by programs that
// an MPI launcher has started, so that other runs need no MPI.
#include <sched.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <list>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "exec/mpi/session.h"
#include "models/run/peers.h"
#include "models/run/process_stat.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The time between two checks whether the other processes still exist.
constexpr auto kLook = milliseconds(100);
constexpr auto kStops = milliseconds(3000);  // a process that was suspended for longer than this counts as lost
constexpr auto kPause = std::chrono::microseconds(50);
constexpr int kTries =
    // Number of polls before a waiting process sleeps. It sleeps because an answer takes milliseconds and because other
    // processes may need its core.
    200;

// The host name and process id of a process. Processes on the same machine check by the process id whether it is alive.
struct Place {
  std::int64_t pid = 0;
  std::array<char, HOST_NAME_MAX + 1> host{};
};

// A message from this process to another process, or from another process to this one.
struct Message {
  std::string bytes;
  MPI_Request request = MPI_REQUEST_NULL;
  bool begun = false, done = false;
};

struct Peer {
  Place place;
  bool lost = false;
  Clock::time_point last_ran;  // last time when the process was seen running, not stopped
  Message heard;
};

// Exchanges messages with each process separately, so that a lost process delays no other. A process on the same
// machine is found to be lost by its process id; if a process on another machine is lost, the launcher ends all
// processes.
class MpiPeers : public Peers {
 public:
  MpiPeers() : session_(std::make_unique<MpiSession>()), peers_(static_cast<std::size_t>(size())) {
    Place mine{.pid = ::getpid()};
    ::gethostname(mine.host.data(), mine.host.size() - 1);
    std::vector<Place> places(peers_.size());
    ORRERY_CHECK_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE, world()));
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      peers_[r].place = places[r];
      peers_[r].last_ran = Clock::now();
    }
    host_ = mine.host;
  }
  // MPI_Finalize waits for all processes, so a process that knows of a lost process exits without MPI_Finalize, after
  // all remaining processes have received its messages.
  ~MpiPeers() override {
    try {
      gather("ends");
    } catch (const Error&) {
    }
    for (const Peer& p : peers_) {
      if (p.lost && session_) static_cast<void>(session_.release());
    }
  }
  MpiPeers(const MpiPeers&) = delete;
  MpiPeers& operator=(const MpiPeers&) = delete;

  int rank() const override { return session_->rank(); }
  int size() const override { return session_->size(); }
  int first() const override {
    int r = 0;
    while (peers_[static_cast<std::size_t>(r)].lost) ++r;
    return r;
  }

  std::vector<std::string> gather(const std::string& mine) override {
    if (mine.size() > INT_MAX) throw Error("MPI: more than 2 GiB in one exchange of a search", 1);
    ++round_;
    for (int r = 0; r < size(); ++r) begin(r, mine);
    auto next_look = Clock::now() + kLook;
    for (int i = 0; !all_done(); ++i) {
      if (i < kTries)
        ::sched_yield();
      else
        std::this_thread::sleep_for(kPause);
      if (Clock::now() < next_look) continue;
      for (int r = 0; r < size(); ++r) mark_if_lost(r);
      next_look = Clock::now() + kLook;
    }
    std::vector<std::string> all;
    for (Peer& p : peers_) all.push_back(p.heard.done ? std::move(p.heard.bytes) : "");
    all[static_cast<std::size_t>(rank())] = mine;
    return all;
  }

  void abort(int status) override { session_->abort(status); }

 private:
  MPI_Comm world() const { return session_->world(); }
  bool is_other(int r) const { return r != rank() && !peers_[static_cast<std::size_t>(r)].lost; }

  void begin(int r, const std::string& mine) {
    peers_[static_cast<std::size_t>(r)].heard = {};
    if (!is_other(r)) return;
    Said& said = said_.emplace_back(Said{r, {mine}});
    ORRERY_CHECK_MPI(MPI_Isend(said.message.bytes.data(), static_cast<int>(mine.size()), MPI_CHAR, r, round_, world(),
                               &said.message.request));
  }

  // Returns whether this process and every other process that is not lost have received each other's messages. Messages
  // to a lost process stay in memory.
  bool all_done() {
    bool done = true;
    for (int r = 0; r < size(); ++r) {
      if (is_other(r)) done = hears(r) && done;
    }
    for (auto it = said_.begin(); it != said_.end();) {
      int sent = 0;
      if (is_other(it->to)) ORRERY_CHECK_MPI(MPI_Test(&it->message.request, &sent, MPI_STATUS_IGNORE));
      done = done && (sent != 0 || !is_other(it->to));
      it = sent != 0 ? said_.erase(it) : std::next(it);
    }
    return done;
  }

  bool hears(int r) {
    Message& heard = peers_[static_cast<std::size_t>(r)].heard;
    if (!heard.begun) {
      int there = 0, length = 0;
      MPI_Status status;
      ORRERY_CHECK_MPI(MPI_Iprobe(r, round_, world(), &there, &status));
      if (there == 0) return false;
      ORRERY_CHECK_MPI(MPI_Get_count(&status, MPI_CHAR, &length));
      heard.bytes.resize(static_cast<std::size_t>(length));
      heard.begun = true;
      ORRERY_CHECK_MPI(MPI_Irecv(heard.bytes.data(), length, MPI_CHAR, r, round_, world(), &heard.request));
    }
    int done = heard.done ? 1 : 0;
    if (done == 0) ORRERY_CHECK_MPI(MPI_Test(&heard.request, &done, MPI_STATUS_IGNORE));
    heard.done = done != 0;
    return heard.done;
  }

  // Marks a process as lost if it no longer exists. A process that was stopped for too long is killed, so that it does
  // not continue after other processes have done its work.
  void mark_if_lost(int r) {
    Peer& p = peers_[static_cast<std::size_t>(r)];
    if (!is_other(r) || std::strcmp(p.place.host.data(), host_.data()) != 0) return;
    const auto pid = static_cast<pid_t>(p.place.pid);
    const std::optional<ProcessStat> stat = process_stat(pid);
    const bool gone = !stat || stat->state == 'Z' || stat->state == 'X';
    if (!gone && stat->state != 'T') p.last_ran = Clock::now();
    const bool stopped = !gone && Clock::now() - p.last_ran > kStops;
    if (!gone && !stopped) return;
    if (stopped) ::kill(pid, SIGKILL);
    hears(r);  // reads again, because the lost process's last message may have arrived
    p.lost = true;
    if (rank() == first())
      std::fputs(fmt::format("orrery: process {} of the search was lost; the others do its share\n", r).c_str(),
                 stderr);
  }

  struct Said {
    int to;
    Message message;
  };

  std::unique_ptr<MpiSession> session_;
  std::vector<Peer> peers_;
  std::array<char, HOST_NAME_MAX + 1> host_{};
  std::list<Said> said_;  // messages that are being sent, kept in memory until they are received
  int round_ = 0;
};

}  // namespace
}  // namespace orrery

extern "C" orrery::Peers* orrery_make_peers() { return new orrery::MpiPeers; }
