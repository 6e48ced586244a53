#include "exec/program/rendezvous.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "exec/host/lanes.h"
#include "models/base/error.h"

namespace orrery {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kRetry = std::chrono::milliseconds(50);
// Longest time for which rank 0 continues to send answers when it ends.
constexpr auto kFarewell = std::chrono::seconds(2);
constexpr int kClockRounds = 20;
constexpr std::uint32_t kLongestText = 1 << 20;  // greatest length of a key or a value, in bytes
constexpr std::size_t kMostKept = 16 << 20;      // greatest number of bytes of all keys and values together
constexpr std::size_t kSpare = 16;  // number of connections allowed beyond one per rank, for ranks that connect again

enum class Request : std::uint32_t { set, get, barrier, time };

// Head of a request: its kind, and the lengths of the key and the value that follow. An answer is a length and a value.
// Server and clients are the same program, so both can use this struct as the format.
struct RequestHead {
  Request kind = Request::get;
  std::uint32_t key = 0, value = 0;  // number of bytes of the key, and of the value
};

// Returns the value of the first environment variable among `names` that is set, else `otherwise`.
std::string variable(std::initializer_list<const char*> names, const std::string& otherwise) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return otherwise;
}

std::int64_t number(std::initializer_list<const char*> names, std::int64_t otherwise) {
  return std::atoll(variable(names, fmt::format("{}", otherwise)).c_str());
}

}  // namespace

RankPlacement placement_of_environment() {
  RankPlacement p;
  p.launched = !variable({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, "").empty();
  p.rank = number({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, p.rank);
  p.ranks = number({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, p.ranks);
  p.local_rank = number({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, p.rank);
  p.address = variable({"MASTER_ADDR"}, p.address);
  p.port = static_cast<std::uint16_t>(number({"MASTER_PORT"}, p.port));
  return p;
}

namespace {

tcp::resolver::results_type addresses(asio::io_context& io, const RankPlacement& p, error_code& error) {
  return tcp::resolver(io).resolve(tcp::v4(), p.address, fmt::format("{}", p.port), error);
}

// Listens only at the address MASTER_ADDR: clients are not authenticated, so the machine's other networks must not
// reach it.
tcp::acceptor listen_at(asio::io_context& io, const RankPlacement& placement) {
  error_code error;
  for (const auto& address : addresses(io, placement, error)) {
    tcp::acceptor acceptor(io);
    acceptor.open(address.endpoint().protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(address.endpoint(), error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) return acceptor;
  }
  throw Error(fmt::format("{}:{}: rank 0 cannot listen there: {}; set MASTER_ADDR to an address of its machine and "
                          "MASTER_PORT to a free port",
                          placement.address, placement.port, error.message()),
              1);
}

// A connection from a client, with the request that is being read or answered.
struct Client {
  explicit Client(tcp::socket s) : socket(std::move(s)) {}

  tcp::socket socket;
  RequestHead head;
  std::string key, value, answer;
  std::uint32_t answer_bytes = 0;
};
using ClientPtr = std::shared_ptr<Client>;

}  // namespace

// Serves the key-value store; refuses more clients than a job can have. One thread does all the work.
class Rendezvous::Server {
 public:
  explicit Server(const RankPlacement& placement)
      : acceptor_(listen_at(io_, placement)), ranks_(static_cast<std::size_t>(placement.ranks)) {
    accept();
    thread_ = std::thread([this] {
      while (!ending_) io_.run_one();
      io_.run_for(kFarewell);  // completes the answers that are being sent
    });
  }

  ~Server() {
    asio::post(io_, [this] { end(); });
    thread_.join();
  }

 private:
  void end() {
    ending_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    for (const ClientPtr& c : clients_) c->socket.shutdown(tcp::socket::shutdown_receive, ignored);
    waiting_.clear();
  }

  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (ending_) return;
      if (!error && clients_.size() < ranks_ + kSpare) {
        socket.set_option(tcp::no_delay(true), error);
        const auto client = std::make_shared<Client>(std::move(socket));
        clients_.insert(client);
        read(client);
      }
      accept();
    });
  }

  void read(const ClientPtr& c) {
    asio::async_read(c->socket, asio::buffer(&c->head, sizeof c->head), [this, c](error_code error, std::size_t) {
      if (error || c->head.key > kLongestText || c->head.value > kLongestText) return lose(c);
      c->key.resize(c->head.key);
      c->value.resize(c->head.value);
      const std::array<asio::mutable_buffer, 2> texts = {asio::buffer(c->key), asio::buffer(c->value)};
      asio::async_read(c->socket, texts, [this, c](error_code cut, std::size_t) { cut ? lose(c) : serve(c); });
    });
  }

  void lose(const ClientPtr& c) { clients_.erase(c); }

  void serve(const ClientPtr& c) {
    if (c->head.kind == Request::time) return answer(c, fmt::format("{}", host_now()));
    if (c->head.kind == Request::get) {
      const auto found = values_.find(c->key);
      return found != values_.end() ? answer(c, found->second) : waiting_[{Request::get, c->key}].push_back(c);
    }
    kept_ += c->key.size() + c->value.size();
    if (kept_ > kMostKept) return lose(c);
    if (c->head.kind == Request::set) {
      values_[c->key] = c->value;
      answer_all(waiting_[{Request::get, c->key}], c->value);
      return answer(c, "");
    }
    std::vector<ClientPtr>& come = waiting_[{Request::barrier, c->key}];
    come.push_back(c);
    if (come.size() >= ranks_) answer_all(come, "");
  }

  void answer_all(std::vector<ClientPtr>& waiting, const std::string& text) {
    for (const ClientPtr& c : std::exchange(waiting, {})) answer(c, text);
  }

  void answer(const ClientPtr& c, std::string text) {
    c->answer = std::move(text);
    c->answer_bytes = static_cast<std::uint32_t>(c->answer.size());
    const std::array<asio::const_buffer, 2> reply = {asio::buffer(&c->answer_bytes, sizeof c->answer_bytes),
                                                     asio::buffer(c->answer)};
    asio::async_write(c->socket, reply, [this, c](error_code error, std::size_t) { error ? lose(c) : read(c); });
  }

  asio::io_context io_;
  tcp::acceptor acceptor_;
  std::size_t ranks_;
  bool ending_ = false;
  std::size_t kept_ = 0;
  std::map<std::string, std::string> values_;
  // for each kind of request and key (or name of a barrier), the clients that wait for the answer
  std::map<std::pair<Request, std::string>, std::vector<ClientPtr>> waiting_;
  std::set<ClientPtr> clients_;
  std::thread thread_;
};

// The connection of this process to rank 0.
class Rendezvous::Connection {
 public:
  Connection(const RankPlacement& placement, Seconds patience);
  std::string ask(Request kind, const std::string& key, const std::string& value);

 private:
  std::optional<std::string> receive();  // no value if no answer came in time, or if the connection failed
  Error error(const std::string& what) const {
    return Error(fmt::format("{}:{}: {}", placement_.address, placement_.port, what), 1);
  }

  RankPlacement placement_;
  std::chrono::milliseconds patience_;
  asio::io_context io_;
  tcp::socket socket_{io_};
};

Rendezvous::Connection::Connection(const RankPlacement& placement, Seconds patience)
    : placement_(placement), patience_(std::llround(patience * 1000)) {
  const auto give_up = std::chrono::steady_clock::now() + patience_;
  for (;;) {
    error_code failed;
    const auto found = addresses(io_, placement_, failed);
    if (!failed) asio::connect(socket_, found, failed);
    if (!failed) break;
    if (std::chrono::steady_clock::now() > give_up)
      throw error("rank 0 does not answer; set MASTER_ADDR and MASTER_PORT to where it runs");
    std::this_thread::sleep_for(kRetry);
  }
  socket_.set_option(tcp::no_delay(true));
}

std::string Rendezvous::Connection::ask(Request kind, const std::string& key, const std::string& value) {
  const RequestHead head = {kind, static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())};
  const std::array<asio::const_buffer, 3> request = {asio::buffer(&head, sizeof head), asio::buffer(key),
                                                     asio::buffer(value)};
  error_code failed;
  asio::write(socket_, request, failed);
  std::optional<std::string> answer;
  if (!failed) answer = receive();
  if (answer) return *answer;
  const char* const why = failed || io_.stopped() ? "rank 0 is gone" : "the other ranks did not come";
  throw error(fmt::format("{} while waiting for '{}'", why, key));
}

std::optional<std::string> Rendezvous::Connection::receive() {
  struct Answer {
    std::uint32_t size = 0;
    std::string text;
    bool complete = false;
  };
  // The memory for the answer must live longer than this call, because the answer may come after receive() has given up
  // waiting.
  const auto answer = std::make_shared<Answer>();
  asio::async_read(socket_, asio::buffer(&answer->size, sizeof answer->size), [this, answer](error_code cut, auto) {
    if (cut || answer->size > kLongestText) return;
    answer->text.resize(answer->size);
    asio::async_read(socket_, asio::buffer(answer->text), [answer](error_code e, auto) { answer->complete = !e; });
  });
  io_.restart();
  io_.run_for(patience_);
  if (!answer->complete) return std::nullopt;
  return std::move(answer->text);
}

Rendezvous::Rendezvous(const RankPlacement& placement, Seconds patience)
    : server_(placement.rank == 0 ? std::make_unique<Server>(placement) : nullptr),
      connection_(std::make_unique<Connection>(placement, patience)) {}

Rendezvous::~Rendezvous() = default;

void Rendezvous::set(const std::string& key, const std::string& value) { connection_->ask(Request::set, key, value); }
std::string Rendezvous::get(const std::string& key) { return connection_->ask(Request::get, key, ""); }
void Rendezvous::barrier(const std::string& name) { connection_->ask(Request::barrier, name, ""); }
Picoseconds Rendezvous::time() { return std::atoll(connection_->ask(Request::time, "", "").c_str()); }

std::uint16_t free_port() {
  asio::io_context io;
  const tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  return acceptor.local_endpoint().port();
}

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
