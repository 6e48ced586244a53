#include "models/partition/dapple.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/partition/layers_of_stages.h"
#include "models/partition/rank_groups.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

// Fraction of a GPU's peak FLOP/s that the matrix products of a step reach: steps of transformer training that were
// published reach 40 to 55 % (docs/published.md).
constexpr double kReachedPeak = 0.5;

// A suffix: the pipeline stages from some layer to the end of the model, on the last positions of the pipeline. The
// sums in it grow when another stage is put in front.
struct Suffix {
  // time of all stages of the suffix (the last stages of the pipeline), and of the transfers between them
  double forward = 0, backward = 0;
  // forward and backward time of one micro-batch in the suffix's slowest stage or transfer
  double dearest = 0;
  // time from the begin of the last micro-batch's backward to the end of the last gradient reduction of the suffix
  double tail = 0;
  std::int64_t layers = 0, replicas = 0;  // number of layers and replicas of the suffix's first stage
  // These fields say where the planner's table has the rest of the suffix, behind its first stage: `choice` is the
  // index in choices_ of the number of replicas of the rest's first stage, and `rest` the index of the rest in the list
  // front().
  std::size_t choice = 0, rest = 0;
};

constexpr double kMostFronts = 1e7;  // largest number of lists of suffixes (last stages) in the planner's table: 240 MB

class Planner {
 public:
  explicit Planner(const PipelineCosts& costs) : c_(costs) {
    for (std::int64_t r = 1; r <= std::min(c_.samples, places()); ++r) {
      if (c_.samples % r == 0) choices_.push_back(r);
    }
    forward_ = sums(c_.forward);
    gradients_ = sums(c_.gradients);
    states_ = sums(c_.states);
    shared_ = sums(c_.shared_states);
  }

  std::int64_t layers() const { return std::ssize(c_.forward); }
  std::int64_t places() const { return std::ssize(c_.node); }

  // Puts one more stage in front of a suffix (the stages from some layer to the end of the model): a stage of n layers
  // from layer `first` on, with r pipeline positions from position `place` on. next: number of positions of the stage
  // behind the new one, or 0 if the new stage is the last.
  Suffix add(const Suffix& behind, std::int64_t first, std::int64_t n, std::int64_t place, std::int64_t r,
             std::int64_t next) const {
    const double run = (forward_[first + n] - forward_[first]) / static_cast<double>(r);
    const double pass = next > 0 ? passing(place, r, next) : 0;
    Suffix s = behind;
    s.forward += run + pass;
    s.backward += 2 * run + pass;
    s.dearest = std::max({s.dearest, 3 * run, 2 * pass});
    const bool to_end = first + n == layers();
    double bytes = gradients_[first + n] - gradients_[first];
    if (first > 0 && to_end) bytes += c_.table.gradients;
    // With a tied table, the first and the last stage each hold a copy of it. When each has reduced its own gradients
    // of the table, they add each other's.
    const double ends = first == 0 && !to_end ? c_.table.gradients / link(0, places() - 1) : 0;
    s.tail = std::max(s.tail, s.backward + reducing(bytes, place, r) + ends);
    s.layers = n;
    s.replicas = r;
    return s;
  }

  double latency(const Suffix& s) const {
    return s.forward + static_cast<double>(c_.micro_batches - 1) * s.dearest + s.tail;
  }

  // Returns the best plan. A quick search finds a good plan by keeping, of all suffixes (stages up to the end of the
  // model) with the same first layer, positions and replicas of their first stage, only the one of least latency; a
  // second search considers all plans that may be better.
  StagePlan best(std::int64_t stages) {
    stages_ = stages;
    const StagePlan quick = search(true);
    if (quick.layers.empty()) return search(false);
    bound_ = orrery::latency(c_, quick) * (1 + 1e-9);
    return search(false);
  }

 private:
  // Runs the search layer by layer, from the last to the first. It keeps each suffix (stages up to the end of the
  // model) unless another one in the same list is at least as good in each of its times; if quick, it keeps only the
  // suffix of least latency in each list.
  StagePlan search(bool quick) {
    quick_ = quick;
    const double size = static_cast<double>(stages_ + 1) * static_cast<double>(layers() + 1) *
                        static_cast<double>(places() + 1) * static_cast<double>(choices_.size());
    if (size > kMostFronts)
      throw Error(fmt::format("{} layers on {} ranks are more than planned can weigh; give a list, or fewer stages",
                              layers(), places()));
    fronts_.assign(static_cast<std::size_t>(size), {});
    for (std::int64_t first = layers(); first-- > 0;) {
      for (std::int64_t used = 1; used <= places(); ++used) {
        for (std::size_t choice = 0; choice < choices_.size(); ++choice) {
          if (choices_[choice] <= used) fill(first, used, choice);
        }
      }
    }
    return chosen();
  }

  static std::vector<double> sums(const std::vector<double>& values) {
    std::vector<double> result = {0};
    for (const double v : values) result.push_back(result.back() + v);
    return result;
  }

  // rate of the link between two pipeline positions, bytes/s
  double link(std::int64_t from, std::int64_t to) const {
    return 1e9 * (c_.node[from] == c_.node[to] ? c_.inside_GBps : c_.between_GBps);
  }
  // Returns the seconds that hidden states take from a stage to the next; each link of the stage with fewer ranks
  // carries more bytes than a link of the other stage.
  double passing(std::int64_t place, std::int64_t r, std::int64_t next) const {
    return c_.hidden_bytes / static_cast<double>(std::min(r, next)) / link(place, place + r + next - 1);
  }
  double reducing(double bytes, std::int64_t place, std::int64_t r) const {
    const auto n = static_cast<double>(r * c_.copies);
    const double speed = c_.copies > 1 && c_.copies_apart ? 1e9 * c_.between_GBps : link(place, place + r - 1);
    return n > 1 ? 2 * (n - 1) / n * bytes / speed : 0;
  }
  bool fits(std::int64_t first, std::int64_t n, std::int64_t r) const {
    double own = states_[first + n] - states_[first], shared = shared_[first + n] - shared_[first];
    if (first > 0 && first + n == layers()) {
      own += c_.table.states;
      shared += c_.table.shared_states;
    }
    return own + shared / static_cast<double>(r) <= c_.memory;
  }

  // Returns the list of suffixes (stages up to the end of the model) that have `count` stages (0 if the number of
  // stages is free), begin with layer `first`, take `used` pipeline positions, and whose first stage has
  // choices_[choice] replicas.
  std::vector<Suffix>& front(std::int64_t count, std::int64_t first, std::int64_t used, std::size_t choice) {
    const std::int64_t at = (count * (layers() + 1) + first) * (places() + 1) + used;
    return fronts_[static_cast<std::size_t>(at) * choices_.size() + choice];
  }

  // Returns a lower bound of the latency of every plan that ends with a given suffix (the last stages of the model) and
  // divides the remaining layers over the remaining positions. The bound assumes that the remaining work is spread
  // evenly and runs no faster than on the largest number of replicas.
  double least(const Suffix& s, std::int64_t first, std::int64_t used) const {
    if (first == 0) return latency(s);
    const double work = forward_[first], run = work / static_cast<double>(choices_.back());
    Suffix all = s;
    all.forward += run;
    all.dearest = std::max(all.dearest, 3 * work / static_cast<double>(std::max<std::int64_t>(1, places() - used)));
    all.tail = std::max(all.tail, all.backward + 2 * run);
    return latency(all);
  }

  void keep(std::vector<Suffix>& front, const Suffix& s, std::int64_t first, std::int64_t used) const {
    if (least(s, first, used) > bound_) return;
    if (quick_) {
      if (front.empty() || latency(s) < latency(front.front())) front = {s};
      return;
    }
    const auto no_better = [](const Suffix& a, const Suffix& b) {
      return a.forward >= b.forward && a.backward >= b.backward && a.dearest >= b.dearest && a.tail >= b.tail;
    };
    if (std::any_of(front.begin(), front.end(), [&](const Suffix& other) { return no_better(s, other); })) return;
    std::erase_if(front, [&](const Suffix& other) { return no_better(other, s); });
    front.push_back(s);
  }

  void fill(std::int64_t first, std::int64_t used, std::size_t choice) {
    const std::int64_t r = choices_[choice], place = places() - used;
    for (std::int64_t n = 1; n <= layers() - first; ++n) {
      if (!fits(first, n, r)) continue;
      if (first + n == layers()) {
        if (used == r)
          keep(front(stages_ > 0 ? 1 : 0, first, used, choice), add({}, first, n, place, r, 0), first, used);
        continue;
      }
      for (std::int64_t count = stages_ > 0 ? 2 : 0; count <= stages_; ++count) {
        for (std::size_t next = 0; next < choices_.size(); ++next) {
          const auto& behind = front(count > 0 ? count - 1 : 0, first + n, used - r, next);
          for (std::size_t i = 0; i < behind.size(); ++i) {
            Suffix s = add(behind[i], first, n, place, r, choices_[next]);
            s.choice = next;
            s.rest = i;
            keep(front(count, first, used, choice), s, first, used);
          }
        }
      }
    }
  }

  StagePlan chosen() {
    const Suffix* best = nullptr;
    for (std::size_t choice = 0; choice < choices_.size(); ++choice) {
      for (const Suffix& s : front(stages_, 0, places(), choice)) {
        if (best == nullptr || latency(s) < latency(*best)) best = &s;
      }
    }
    if (best == nullptr) return {};
    StagePlan plan;
    for (std::int64_t first = 0, used = places(), count = stages_;; --count) {
      plan.layers.push_back(best->layers);
      plan.replicas.push_back(best->replicas);
      first += best->layers;
      used -= best->replicas;
      if (first == layers()) return plan;
      best = &front(stages_ > 0 ? count - 1 : 0, first, used, best->choice)[best->rest];
    }
  }

  const PipelineCosts& c_;
  // the numbers of replicas that a stage may have: all divisors of the number of samples of a micro-batch
  std::vector<std::int64_t> choices_;
  // Running sums over the layers: for each layer, the forward times of all layers before it, and the bytes of their
  // gradients, of their states that every rank keeps, and of their states that replicas divide
  std::vector<double> forward_, gradients_, states_, shared_;
  std::int64_t stages_ = 0;
  bool quick_ = false;
  double bound_ = std::numeric_limits<double>::infinity();  // plans with a latency above this bound cannot be the best
  std::vector<std::vector<Suffix>> fronts_;
};

std::vector<double> parameters_by_layer(const Spec& spec) {
  const Model& m = spec.model;
  const auto sum = [](const std::vector<Parameter>& list) {
    return std::accumulate(list.begin(), list.end(), 0.0,
                           [](double all, const Parameter& p) { return all + static_cast<double>(elements(p)); });
  };
  std::vector<double> counts;
  for (std::int64_t i = 0; i < m.layers; ++i) counts.push_back(sum(layer_parameters(m, i)));
  counts.front() += sum(embedding_parameters(m, spec.sequence));
  counts.back() += sum(head_parameters(m));
  return counts;
}

void set_states(const Spec& spec, PipelineCosts& c) {
  const Strategy& s = spec.strategy;
  const ShardingRow& row = row_of(s.sharding);
  const Bytes width = storage_bytes(s.precision), gradient = storage_bytes(s.gradient_precision);
  const Bytes update = (width < s.optimizer.master_bytes ? s.optimizer.master_bytes : 0) +
                       s.optimizer.moments() * s.optimizer.moment_bytes;
  const Bytes cut =
      (row.shards_parameters ? width : 0) + (row.shards_gradients ? gradient : 0) + (row.shards_optimizer ? update : 0);
  const Bytes fresh = s.keep_16bit_gradients ? width : 0;
  const double whole = static_cast<double>(width + fresh + gradient + update - cut);
  const double shared = static_cast<double>(cut) / static_cast<double>(s.data);
  for (const double count : parameters_by_layer(spec)) {
    const double own = count / static_cast<double>(s.tensor);
    c.gradients.push_back(own * static_cast<double>(gradient));
    c.states.push_back(own * whole);
    c.shared_states.push_back(own * shared);
  }
  if (spec.model.tied_embeddings) {
    const double own = static_cast<double>(spec.model.vocab * spec.model.hidden) / static_cast<double>(s.tensor);
    c.table = {own * static_cast<double>(gradient), own * whole, own * shared};
  }
  c.memory = static_cast<double>(spec.cluster.gpu.memory_bytes);
}

}  // namespace

PipelineCosts pipeline_costs(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Cluster& cluster = spec.cluster;
  if (cluster.gpu.tflops.empty() || cluster.nic_Gbps <= 0)
    throw Error(
        "planned weighs compute and transfers, but the cluster states no FLOP/s and NICs; give a list, or another "
        "cluster");
  PipelineCosts c;
  const double tokens = static_cast<double>(s.micro_batch * spec.sequence);
  const double flops = peak_flops(cluster.gpu, s.precision) * kReachedPeak * static_cast<double>(s.tensor);
  for (const double cost : layer_costs(spec)) c.forward.push_back(2 * cost * tokens / flops);
  set_states(spec, c);
  // Number of tensor ranks among which the rows that a stage passes to the next are divided
  const double cut = s.sequence_parallel ? static_cast<double>(s.tensor) : 1;
  c.hidden_bytes =
      tokens * static_cast<double>(spec.model.hidden * streams_of(spec.model) * storage_bytes(s.precision)) / cut;
  c.samples = s.micro_batch;
  c.micro_batches = s.micro_batches();
  c.copies = s.data;
  const std::vector<Coordinates> at = coordinates(s);
  c.node.assign(static_cast<std::size_t>(s.places()), -1);
  for (std::size_t r = 0; r < at.size(); ++r) {
    const std::int64_t node = static_cast<std::int64_t>(r) / cluster.gpus_per_node;
    if (c.node[at[r].place] < 0) c.node[at[r].place] = node;
    c.copies_apart = c.copies_apart || c.node[at[r].place] != node;
  }
  c.inside_GBps = std::max(pair_GBps(cluster.gpu), cluster.gpu.pcie_GBps);
  c.between_GBps = cluster.nic_Gbps / 8 * cluster.nics / cluster.gpus_per_node;
  return c;
}

double latency(const PipelineCosts& costs, const StagePlan& plan) {
  const Planner planner(costs);
  Suffix all;
  std::int64_t first = planner.layers(), place = planner.places(), next = 0;
  for (std::size_t i = plan.layers.size(); i-- > 0;) {
    first -= plan.layers[i];
    place -= plan.replicas[i];
    all = planner.add(all, first, plan.layers[i], place, plan.replicas[i], next);
    next = plan.replicas[i];
  }
  return planner.latency(all);
}

StagePlan plan_stages(const PipelineCosts& costs, std::int64_t stages) {
  StagePlan plan = Planner(costs).best(stages);
  if (!plan.layers.empty()) return plan;
  throw Error(
      fmt::format("no plan of {} for {} layers on {} ranks, whose numbers divide micro_batch: {}, fits in memory",
                  stages > 0 ? fmt::format("{} stages", stages) : "any number of stages", costs.forward.size(),
                  costs.node.size(), costs.samples));
}

}  // namespace orrery
