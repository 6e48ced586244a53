#include "exec/program/rendezvous.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "exec/host/lanes.h"
#include "models/base/error.h"

namespace orrery {
namespace {

constexpr auto kRetry = std::chrono::milliseconds(50);
constexpr int kClockRounds = 20;
constexpr std::uint32_t kLongest = 1 << 20;  // longest key or value, in bytes
constexpr std::size_t kMostKept = 16 << 20;  // most bytes of all keys and values together
constexpr std::size_t kSpare = 16;  // connections allowed beside one for each rank, for ranks that connect again

// A request is a letter, a key and a value, the last two with a length in front; the answer is a value. Both ends are
// the same program.
bool send_all(int socket, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::recv(socket, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool send_text(int socket, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  return send_all(socket, &size, sizeof size) && send_all(socket, text.data(), size);
}

bool receive_text(int socket, std::string& text) {
  std::uint32_t size = 0;
  if (!receive_all(socket, &size, sizeof size) || size > kLongest) return false;
  text.resize(size);
  return receive_all(socket, text.data(), size);
}

// The first of these environment variables that is set, else `otherwise`.
std::string variable(std::initializer_list<const char*> names, const std::string& otherwise) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return otherwise;
}

std::int64_t number(std::initializer_list<const char*> names, std::int64_t otherwise) {
  return std::atoll(variable(names, fmt::format("{}", otherwise)).c_str());
}

void without_delay(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

Placement placement_of_environment() {
  Placement p;
  p.launched = !variable({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, "").empty();
  p.rank = number({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, p.rank);
  p.ranks = number({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, p.ranks);
  p.local_rank = number({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, p.rank);
  p.address = variable({"MASTER_ADDR"}, p.address);
  p.port = static_cast<std::uint16_t>(number({"MASTER_PORT"}, p.port));
  return p;
}

namespace {

// The socket addresses that MASTER_ADDR and MASTER_PORT name.
struct Addresses {
  explicit Addresses(const Placement& p) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(p.address.c_str(), fmt::format("{}", p.port).c_str(), &hints, &first) != 0) first = nullptr;
  }
  ~Addresses() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;

  addrinfo* first = nullptr;
};

// Listens only at MASTER_ADDR: clients are not authenticated, so none may connect by another of the machine's networks.
int listen_at(const Placement& placement) {
  const Addresses addresses(placement);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* a = addresses.first; a != nullptr; a = a->ai_next) {
    const int listener = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol), yes = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (listener >= 0 && ::bind(listener, a->ai_addr, a->ai_addrlen) == 0 && ::listen(listener, SOMAXCONN) == 0)
      return listener;
    error = errno;
    if (listener >= 0) ::close(listener);
  }
  throw Error(fmt::format("{}:{}: rank 0 cannot listen there: {}; set MASTER_ADDR to an address of its machine and "
                          "MASTER_PORT to a free port",
                          placement.address, placement.port, std::strerror(error)),
              1);
}

}  // namespace

// Answers every client, each in a separate thread, but no more clients than a job can have.
class Rendezvous::Server {
 public:
  explicit Server(const Placement& placement)
      : socket_(listen_at(placement)), most_(static_cast<std::size_t>(placement.ranks) + kSpare) {
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~Server() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      ::shutdown(socket_, SHUT_RDWR);
      for (const int c : connections_) ::shutdown(c, SHUT_RD);  // answers on their way are still sent
    }
    changed_.notify_all();
    acceptor_.join();
    for (std::thread& t : threads_) t.join();
    for (const int c : connections_) ::close(c);
    ::close(socket_);
  }

 private:
  void accept_all() {
    for (;;) {
      const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex_);
      if (ending_) {
        if (connection >= 0) ::close(connection);
        return;
      }
      if (connection < 0) continue;
      if (connections_.size() == most_) {
        ::close(connection);
        continue;
      }
      without_delay(connection);
      connections_.push_back(connection);
      threads_.emplace_back([this, connection] { serve(connection); });
    }
  }

  void serve(int connection) {
    for (;;) {
      char what = 0;
      std::string key, value;
      if (!receive_all(connection, &what, 1) || !receive_text(connection, key) || !receive_text(connection, value))
        return;
      if (!may_keep(what, key, value)) {
        ::shutdown(connection, SHUT_RDWR);
        return;
      }
      if (!send_text(connection, answer(what, key, value))) return;
    }
  }

  bool may_keep(char what, const std::string& key, const std::string& value) {
    if (what == 't' || what == 'g') return true;
    const std::lock_guard lock(mutex_);
    if (kept_ + key.size() + value.size() > kMostKept) return false;
    kept_ += key.size() + value.size();
    return true;
  }

  std::string answer(char what, const std::string& key, const std::string& value) {
    if (what == 't') return fmt::format("{}", host_now());
    std::unique_lock lock(mutex_);
    if (what == 's') values_[key] = value;
    if (what == 'b') ++counts_[key];
    changed_.notify_all();
    if (what == 'g') changed_.wait(lock, [&] { return ending_ || values_.contains(key); });
    if (what == 'b') changed_.wait(lock, [&] { return ending_ || counts_[key] >= std::atoll(value.c_str()); });
    const auto it = values_.find(key);
    return it == values_.end() ? "" : it->second;
  }

  int socket_;
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t kept_ = 0;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::int64_t> counts_;
  std::vector<int> connections_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

namespace {

// Returns -1 while nobody answers.
int try_to_connect(const Placement& p) {
  const Addresses addresses(p);
  int connection = -1;
  for (const addrinfo* a = addresses.first; a != nullptr && connection < 0; a = a->ai_next) {
    connection = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (connection < 0 || ::connect(connection, a->ai_addr, a->ai_addrlen) == 0) continue;
    ::close(connection);
    connection = -1;
  }
  return connection;
}

}  // namespace

Rendezvous::Rendezvous(const Placement& placement, Seconds patience) : placement_(placement), patience_(patience) {
  if (placement.rank == 0) server_ = std::make_unique<Server>(placement);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
  while ((socket_ = try_to_connect(placement_)) < 0) {
    if (std::chrono::steady_clock::now() > give_up)
      throw Error(fmt::format("{}:{}: rank 0 does not answer; set MASTER_ADDR and MASTER_PORT to where it runs",
                              placement_.address, placement_.port),
                  1);
    std::this_thread::sleep_for(kRetry);
  }
  without_delay(socket_);
}

Rendezvous::~Rendezvous() {
  if (socket_ >= 0) ::close(socket_);
}

std::string Rendezvous::ask(char what, const std::string& key, const std::string& value) {
  const auto lost = [&](const char* why) {
    return Error(fmt::format("{}:{}: {} while waiting for '{}'", placement_.address, placement_.port, why, key), 1);
  };
  std::string result;
  if (!send_all(socket_, &what, 1) || !send_text(socket_, key) || !send_text(socket_, value))
    throw lost("rank 0 is gone");
  pollfd ready{socket_, POLLIN, 0};
  if (::poll(&ready, 1, static_cast<int>(patience_ * 1000)) <= 0) throw lost("the other ranks did not come");
  if (!receive_text(socket_, result)) throw lost("rank 0 is gone");
  return result;
}

void Rendezvous::set(const std::string& key, const std::string& value) { ask('s', key, value); }
std::string Rendezvous::get(const std::string& key) { return ask('g', key, ""); }
void Rendezvous::barrier(const std::string& name) { ask('b', name, fmt::format("{}", placement_.ranks)); }
Picoseconds Rendezvous::time() { return std::atoll(ask('t', "", "").c_str()); }

ClockOffset clock_of(Rendezvous& rendezvous) {
  ClockOffset best = {0, -1};
  for (int i = 0; i < kClockRounds; ++i) {
    const Picoseconds sent = host_now();
    const Picoseconds there = rendezvous.time();
    const Picoseconds half = (host_now() - sent) / 2;
    if (best.uncertainty < 0 || half < best.uncertainty) best = {there - sent - half, half};
  }
  return best;
}

}  // namespace orrery
