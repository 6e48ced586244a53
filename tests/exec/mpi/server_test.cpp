// Servers that apply pushes in order of arrival. Their actions are recorded in order; one process that does the same in
// that order, with separate servers, must get the same losses and weights.
#include "exec/mpi/server.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include "kernels/cpu/update.h"
#include "models/layers/blocks.h"
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

constexpr std::int64_t kWorkerSteps = 6;
using Orders = std::vector<std::vector<Served>>;  // by server

// The results of a run, gathered on rank 0.
struct ServedRun {
  std::vector<std::vector<double>> losses;  // by worker, then step
  Orders orders;
  Tensors weights;
};

template <class T>
std::vector<std::vector<T>> gather_all(MPI_Comm world, const std::vector<T>& mine) {
  int size = 1;
  MPI_Comm_size(world, &size);
  const auto bytes = static_cast<int>(mine.size() * sizeof(T));
  std::vector<int> counts(static_cast<std::size_t>(size)), offsets;
  MPI_Allgather(&bytes, 1, MPI_INT, counts.data(), 1, MPI_INT, world);
  int all = 0;
  for (const int c : counts) {
    offsets.push_back(all);
    all += c;
  }
  std::vector<T> flat(static_cast<std::size_t>(all) / sizeof(T));
  MPI_Allgatherv(mine.data(), bytes, MPI_BYTE, flat.data(), counts.data(), offsets.data(), MPI_BYTE, world);
  std::vector<std::vector<T>> result;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const auto first = flat.begin() + offsets[r] / static_cast<int>(sizeof(T));
    result.emplace_back(first, first + counts[r] / static_cast<int>(sizeof(T)));
  }
  return result;
}

ExecuteOptions options_for(const Spec& spec) {
  ExecuteOptions options;
  options.steps = kWorkerSteps;
  options.training = test::training_of(spec);
  return options;
}

Text text_for(const Spec& spec) {
  return read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", spec.model.vocab, spec.sequence);
}

ServedRun run_on_ranks(MPI_Comm world, const Spec& spec) {
  int number = 0;
  MPI_Comm_rank(world, &number);
  const Plan plan = make_plan(spec);
  const Rank rank(spec, plan, number);
  const Text text = text_for(spec);
  ExecuteOptions options = options_for(spec);
  Tensors weights;
  std::vector<Served> order;
  Execution e;
  if (serves_arrivals(rank)) {
    options.on_end = [&](const Buffers& b) { add(weights, owned_values(rank, b, Quantity::weights)); };
    e = serve(world, rank, text, options, order);
  } else {
    const auto transport = mpi_transport(world, rank.plan);
    e = execute(rank, *transport, text, options);
  }
  ServedRun run = {gather_all(world, e.losses), gather_all(world, order), collect(world, weights)};
  run.losses.resize(static_cast<std::size_t>(plan.workers()));
  run.orders.erase(run.orders.begin(), run.orders.begin() + plan.workers());
  return run;
}

// Runs on as many ranks as the spec has; only the first rank gets the result.
std::optional<ServedRun> run_here(const Spec& spec) {
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return std::nullopt;
  ServedRun run = run_on_ranks(some, spec);
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return std::nullopt;
  return run;
}

// An emulation of servers and workers in one process: whole weights and moments, of which every server has its ranges,
// and the weights that each worker holds.
class ServersEmulation {
 public:
  ServersEmulation(const Spec& spec, Orders orders)
      : spec_(spec), plan_(make_plan(spec)), orders_(std::move(orders)), next_(orders_.size(), 0) {
    for (std::int64_t s = 0; s < plan_.servers; ++s) {
      const Rank server(spec, plan_, plan_.workers() + s);
      ranges_.push_back(server.pieces.at(server.states.front()));
    }
    const Rank worker(spec, plan_, 0);
    CachingMemory memory(host_segments());
    const Buffers buffers(worker, memory);
    const auto rule = options_for(spec).training;
    set_initial_weights(worker, rule.seed, buffers);
    std::int64_t n = 0;
    for (const PlacedParameter& p : worker.parameters.at(worker.states.front()))
      n = std::max(n, p.first + p.local.out * p.local.in);
    const auto* first = reinterpret_cast<const float*>(buffers.state(worker.states.front(), kParameters));
    weights_.assign(first, first + n);
    moment1_.assign(weights_.size(), 0);
    moment2_.assign(weights_.size(), 0);
    const auto workers = static_cast<std::size_t>(plan_.workers());
    gradients_.assign(workers, std::vector<float>(weights_.size(), 0));
    pulled_.assign(workers, std::vector<float>(weights_.size(), 0));
    pushes_.assign(workers, 0);
    pulls_.assign(workers, std::vector<std::int64_t>(orders_.size(), 0));
  }

  // Runs every worker as a thread with its own part of the plan.
  std::vector<std::vector<double>> run();

  const std::vector<float>& weights() const { return weights_; }
  const Plan& plan() const { return plan_; }

  void push(std::int64_t worker, const Collective& c, const float* from) {
    const std::lock_guard lock(mutex_);
    std::copy_n(from, c.bytes / c.width, gradients_[worker].begin() + c.first);
  }
  void end_push(std::int64_t worker) {
    const std::lock_guard lock(mutex_);
    ++pushes_[worker];
    go_on();
  }
  // Whether every server has handed out the weights that the worker's step reads.
  bool pull(std::int64_t worker, std::int64_t clock, const Collective& c, float* to) {
    const std::lock_guard lock(mutex_);
    go_on();
    for (const std::int64_t pulls : pulls_[worker]) {
      if (pulls <= clock) return false;
    }
    std::copy_n(pulled_[worker].begin() + c.first, c.bytes / c.width, to);
    return true;
  }

 private:
  // Processes every server's order as far as the workers' pushes allow.
  void go_on() {
    for (std::size_t s = 0; s < orders_.size(); ++s) {
      for (; next_[s] < orders_[s].size(); ++next_[s]) {
        const Served& e = orders_[s][next_[s]];
        if (e.update && pushes_[e.worker] <= e.clock) break;
        e.update ? update(s, e) : hand_out(s, e);
      }
    }
  }

  void update(std::size_t server, const Served& e) {
    const kernels::UpdateRule rule = options_for(spec_).training.rule;
    for (const Piece& p : ranges_[server]) {
      const std::int64_t at = p.owned_first;
      kernels::update(rule, {e.version, 1}, p.owned, gradients_[e.worker].data() + at, weights_.data() + at,
                      moment1_.data() + at, moment2_.data() + at, static_cast<float*>(nullptr));
    }
  }

  void hand_out(std::size_t server, const Served& e) {
    for (const Piece& p : ranges_[server])
      std::copy_n(weights_.begin() + p.owned_first, p.owned, pulled_[e.worker].begin() + p.owned_first);
    pulls_[e.worker][server] = e.clock + 1;
  }

  const Spec& spec_;
  Plan plan_;
  Orders orders_;
  std::vector<std::size_t> next_;
  std::vector<std::vector<Piece>> ranges_;
  std::vector<float> weights_, moment1_, moment2_;
  std::vector<std::vector<float>> gradients_, pulled_;
  std::vector<std::int64_t> pushes_;              // ended, by worker
  std::vector<std::vector<std::int64_t>> pulls_;  // by worker, then server
  std::mutex mutex_;
};

// The transport of a worker in the emulation.
class EmulatedTransport final : public Transport {
 public:
  EmulatedTransport(ServersEmulation& all, const Rank& worker) : all_(all), worker_(worker.number) {
    for (TaskId t = 0; t < worker.plan.task_count(); ++t) {
      const auto* c = std::get_if<Collective>(&worker.plan.op_of(t).work);
      if (c == nullptr) continue;
      if (c->kind == CollectiveKind::pull && pulls_.empty()) first_ = pushes_.empty() ? 0 : 1;
      (c->kind == CollectiveKind::push ? pushes_ : pulls_).push_back(*c);
    }
  }

  std::unique_ptr<Pending> start(LaneKind, const CollectiveCall& call) override {
    if (call.kind == CollectiveKind::push) {
      all_.push(worker_, pushes_[pushed_ % pushes_.size()], static_cast<const float*>(call.in));
      if (++pushed_ % pushes_.size() == 0) all_.end_push(worker_);
      return std::make_unique<Arrival>(std::function<bool()>([] { return true; }));
    }
    const Collective& c = pulls_[pulled_ % pulls_.size()];
    const auto clock = first_ + static_cast<std::int64_t>(pulled_++ / pulls_.size());
    return std::make_unique<Arrival>(
        [this, &c, clock, to = static_cast<float*>(call.out)] { return all_.pull(worker_, clock, c, to); });
  }
  std::unique_ptr<Pending> start(LaneKind, const MessageCall&) override { return nullptr; }

 private:
  struct Arrival : Pending {
    explicit Arrival(std::function<bool()> f) : come(std::move(f)) {}
    bool done() override { return come(); }
    std::function<bool()> come;
  };

  ServersEmulation& all_;
  std::int64_t worker_;
  std::int64_t first_ = 0;  // the step for which the first pull is made
  std::vector<Collective> pushes_, pulls_;
  std::size_t pushed_ = 0, pulled_ = 0;
};

std::vector<std::vector<double>> ServersEmulation::run() {
  std::vector<std::vector<double>> losses(static_cast<std::size_t>(plan_.workers()));
  std::vector<std::thread> threads;
  const Text text = text_for(spec_);
  for (std::int64_t w = 0; w < plan_.workers(); ++w) {
    threads.emplace_back([&, w] {
      const Rank rank(spec_, plan_, w);
      EmulatedTransport transport(*this, rank);
      losses[static_cast<std::size_t>(w)] = execute(rank, transport, text, options_for(spec_)).losses;
    });
  }
  for (std::thread& t : threads) t.join();
  return losses;
}

double farthest(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double most = 0;
  for (std::size_t w = 0; w < a.size(); ++w) {
    EXPECT_EQ(a[w].size(), static_cast<std::size_t>(kWorkerSteps));
    for (std::size_t k = 0; k < std::min(a[w].size(), b[w].size()); ++k)
      most = std::max(most, std::abs(a[w][k] / b[w][k] - 1));
  }
  return most;
}

// The most steps by which a step began ahead of the slowest worker; checks that the actions are complete and numbered.
std::int64_t most_ahead(const Orders& orders, std::int64_t workers) {
  std::int64_t most = 0;
  for (const std::vector<Served>& order : orders) {
    std::vector<std::int64_t> clocks(static_cast<std::size_t>(workers), 0);
    std::int64_t version = 0;
    for (const Served& e : order) {
      EXPECT_EQ(e.clock, clocks[e.worker]);
      if (e.update) {
        ++clocks[e.worker];
        EXPECT_EQ(e.version, ++version);
      } else {
        EXPECT_EQ(e.version, version);
        most = std::max(most, e.clock - *std::min_element(clocks.begin(), clocks.end()));
      }
    }
    EXPECT_EQ(version, workers * kWorkerSteps);
  }
  return most;
}

Spec served_spec(const std::string& servers, const std::string& optimizer = "adamw", const std::string& model = kLlama,
                 std::int64_t workers = 3, const std::string& more = "") {
  return spec_of({model,
                  fmt::format("data: {}, clip: 0, sharding: parameter-server, parameter_server: {}, global_batch: {}{}",
                              workers, servers, workers, more),
                  optimizer});
}

TEST(Servers, StalenessCountsOthersUpdates) {
  const std::vector<Served> order = {{false, 0, 0, 0}, {false, 1, 0, 0}, {true, 0, 0, 1}, {false, 0, 1, 1},
                                     {true, 0, 1, 2},  {false, 0, 2, 2}, {true, 1, 0, 3}};
  const Staleness s = staleness_of(order, 2);
  EXPECT_DOUBLE_EQ(s.mean, 2.0 / 3);
  EXPECT_EQ(s.most, 2);
  EXPECT_EQ(s.most_ahead, 2);
}

enum class Fault : std::uint8_t { update_left_out, weights_too_old };

// Changes the order given to the emulation, which has the same effect as a faulty server.
Orders spoiled(Orders orders, Fault fault) {
  for (std::vector<Served>& order : orders) {
    const auto third = [n = 0](const Served& e) mutable { return e.update && ++n == 3; };
    const auto at = std::find_if(order.begin(), order.end(), third);
    if (fault == Fault::update_left_out) {
      order.erase(at);
    } else {
      const auto pull = std::find_if(at, order.end(), [](const Served& e) { return !e.update; });
      std::iter_swap(pull, pull - 1);  // moves the pull before the update that precedes it
    }
  }
  return orders;
}

void check_order(const Spec& spec, std::int64_t bound = -1) {
  const std::optional<ServedRun> real = run_here(spec);
  if (!real) return;
  const std::int64_t ahead = most_ahead(real->orders, spec.strategy.gpus());
  EXPECT_LE(ahead, bound >= 0 ? bound : kWorkerSteps);
  ServersEmulation one(spec, real->orders);
  EXPECT_LE(farthest(one.run(), real->losses), kLimit);
  const Rank worker(spec, one.plan(), 0);
  for (const PlacedParameter& p : worker.parameters.at(worker.states.front())) {
    const auto first = one.weights().begin() + p.first;
    const std::vector<float> emulated(first, first + p.local.out * p.local.in);
    EXPECT_LE(norm(difference(real->weights.at(p.name), emulated, emulated.size())), kLimit * norm(emulated)) << p.name;
  }
}

TEST(Servers, AsynchronousRunsAgreeWithTheirOrder) {
  check_order(served_spec("{mode: async}"));
  check_order(served_spec("{servers: 3, mode: async}", "sgd"));
  check_order(served_spec("{servers: 2, mode: async}", "adamw", kQwen, 4, ", bucket_MiB: 0.05"));
  check_order(served_spec("{servers: 2, mode: async}", "adamw", kLlama, 3,
                          ", overlap: {gradient_reduce: false, parameter_gather: false}"));
}

TEST(Servers, BoundedStalenessHoldsFastWorkersBack) {
  for (const std::int64_t staleness : {0, 1, 3}) {
    Spec spec = served_spec(fmt::format("{{servers: 2, mode: ssp, staleness: {}}}", staleness));
    spec.cluster.stragglers = {{1, 4.0}};
    check_order(spec, staleness);
  }
}

// With asynchronous updates and no bound on staleness, no worker waits for one that has a quarter of the others' speed.
TEST(Servers, AsynchronousWorkersLeaveStragglersBehind) {
  Spec spec = served_spec("{mode: async}", "sgd");
  spec.cluster.stragglers = {{0, 8.0}};
  const std::optional<ServedRun> real = run_here(spec);
  if (!real) return;
  EXPECT_GE(most_ahead(real->orders, 3), 2);
}

TEST(Servers, PlantedFaultsShow) {
  const Spec spec = served_spec("{servers: 2, mode: ssp, staleness: 1}", "sgd");
  const std::optional<ServedRun> real = run_here(spec);
  if (!real) return;
  for (const Fault fault : {Fault::update_left_out, Fault::weights_too_old}) {
    ServersEmulation one(spec, spoiled(real->orders, fault));
    EXPECT_GT(farthest(one.run(), real->losses), 10 * kLimit);
  }
}

}  // namespace
}  // namespace orrery
