#include "models/layout/surroundings.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "models/cost/nccl/model.h"
#include "models/partition/job_seats.h"

namespace orrery {
namespace {

// Lists of numbers, each distinct one of which gets a number.
class Numbering {
 public:
  std::uint32_t of(const std::vector<std::int64_t>& list) {
    return known_.try_emplace(list, static_cast<std::uint32_t>(known_.size())).first->second;
  }

 private:
  std::map<std::vector<std::int64_t>, std::uint32_t> known_;
};

class Surroundings {
 public:
  explicit Surroundings(const Draft& draft)
      : draft_(draft), plan_(draft.plan), cluster_(draft.facts.spec.cluster), workers_(plan_.workers()) {
    find_domains();
  }

  std::vector<std::uint32_t> run() {
    std::vector<std::vector<std::int64_t>> lie(static_cast<std::size_t>(workers_));
    for (std::size_t d = 0; d < kDimensions; ++d) add_groups(d, lie);
    std::vector<std::uint32_t> numbers = numbered(lie);
    add_neighbours(numbers, lie);
    numbers = numbered(lie);
    return told_from_first(numbers);
  }

 private:
  // Finds the node of every worker, and its domain of each size.
  void find_domains() {
    const std::int64_t node_gpus = nccl_node_gpus(cluster_);
    const JobSeats seats(plan_, cluster_, node_gpus);
    std::vector<std::int64_t> sizes = domain_sizes(cluster_);
    domains_.resize(1 + sizes.size());
    for (std::int64_t r = 0; r < workers_; ++r) {
      domains_[0].push_back(seats.node_of(r));
      for (std::size_t i = 0; i < sizes.size(); ++i) domains_[i + 1].push_back(seats.domain_of(sizes[i], r));
    }
    peculiar_ = peculiar_places(plan_, cluster_, seats);
    if (!cluster_.network || cluster_.network->kind != NetworkKind::graph) return;
    Numbering leaves;
    std::vector<std::int64_t> own;
    for (std::int64_t r = 0; r < workers_; ++r) {
      const auto& switches = cluster_.network->graph.leaves[seats.domain_of(cluster_.gpus_per_node, r)];
      own.push_back(leaves.of({switches.begin(), switches.end()}));
    }
    domains_.push_back(std::move(own));
  }

  // Adds what the groups of one dimension are like to every member. All workers of a dimension with one group, or of
  // groups of one, have the same.
  void add_groups(std::size_t dimension, std::vector<std::vector<std::int64_t>>& lie) {
    Numbering kinds;
    for (const auto& group : plan_.dimensions[dimension].groups) {
      if (group.size() < 2 || std::ssize(group) >= workers_ || group.front() >= workers_) continue;
      const bool pipeline = static_cast<Dimension>(dimension) == Dimension::pipeline;
      const std::uint32_t kind = kinds.of(pipeline ? division(group) : spread(group));
      const auto key = static_cast<std::int64_t>(dimension << 32 | kind);
      for (const std::int32_t r : group) lie[static_cast<std::size_t>(r)].push_back(key);
    }
  }

  // Returns how a pipeline is divided among nodes and domains: for each stage the first one in the same place.
  std::vector<std::int64_t> division(std::span<const std::int32_t> group) const {
    std::vector<std::int64_t> result;
    for (const auto& domain : domains_) {
      const auto place = [&](std::int32_t r) { return domain[static_cast<std::size_t>(r)]; };
      for (const std::int32_t r : group) result.push_back(std::ranges::find(group, place(r), place) - group.begin());
    }
    for (std::size_t i = 0; i < group.size() && !peculiar_.empty(); ++i)
      result.push_back(peculiar_[static_cast<std::size_t>(group[i])]);
    return result;
  }

  // Returns the number of members on each node, and for each kind of domain whether the group is in several.
  std::vector<std::int64_t> spread(std::span<const std::int32_t> group) const {
    std::vector<std::int64_t> result;
    std::int64_t last = -1;
    for (const std::int32_t r : group) {
      const std::int64_t node = domains_[0][static_cast<std::size_t>(r)];
      if (node != last) result.push_back(0);
      ++result.back();
      last = node;
    }
    for (std::size_t i = 1; i < domains_.size(); ++i) {
      const auto at = [&](std::int32_t r) { return domains_[i][static_cast<std::size_t>(r)]; };
      const bool one = std::ranges::all_of(group, [&](std::int32_t r) { return at(r) == at(group.front()); });
      result.push_back(one ? -1 : -2);
    }
    std::set<std::int64_t> peculiar;
    for (std::size_t i = 0; i < group.size() && !peculiar_.empty(); ++i)
      peculiar.insert(peculiar_[static_cast<std::size_t>(group[i])]);
    for (const std::int64_t p : peculiar) result.push_back(-3 - p);
    return result;
  }

  // Adds who shares a NIC, or a node's links to its host, with a worker: how many workers of each stage lie alike.
  void add_neighbours(const std::vector<std::uint32_t>& numbers, std::vector<std::vector<std::int64_t>>& lie) {
    const std::int64_t gpus = std::max(1, cluster_.gpus_per_node);
    const std::int64_t nics = std::clamp<std::int64_t>(cluster_.nics, 1, gpus);
    if (nics < gpus) add_sharers(gpus, nics, numbers, lie);
    if (draft_.facts.spec.strategy.offload.any()) {
      add_sharers(gpus, 1, numbers, lie);
      add_sharers(gpus, ceil_div(gpus, std::max(cluster_.gpus_per_pcie_switch, 1)), numbers, lie);
    }
  }

  void add_sharers(std::int64_t gpus, std::int64_t links, const std::vector<std::uint32_t>& numbers,
                   std::vector<std::vector<std::int64_t>>& lie) {
    std::map<std::int64_t, std::vector<std::int64_t>> users;
    for (std::int64_t r = 0; r < workers_; ++r) users[r / gpus * links + r % gpus * links / gpus].push_back(r);
    for (const auto& [link, ranks] : users) {
      std::vector<std::int64_t> kinds;
      for (const std::int64_t r : ranks) kinds.push_back(stage_of(r) << 32 | numbers[static_cast<std::size_t>(r)]);
      std::ranges::sort(kinds);
      const std::uint32_t kind = sharers_.of(kinds);
      for (const std::int64_t r : ranks) lie[static_cast<std::size_t>(r)].push_back(kind);
    }
  }

  std::int64_t stage_of(std::int64_t r) const { return draft_.coordinates[static_cast<std::size_t>(r)].pipeline; }

  static std::vector<std::uint32_t> numbered(const std::vector<std::vector<std::int64_t>>& lie) {
    Numbering numbering;
    std::vector<std::uint32_t> result;
    for (const auto& list : lie) result.push_back(numbering.of(list));
    return result;
  }

  std::vector<std::uint32_t> told_from_first(std::vector<std::uint32_t> numbers) const {
    std::map<std::int64_t, std::uint32_t> first;
    bool alike = true;
    for (std::size_t r = 0; r < numbers.size(); ++r) {
      const std::uint32_t ordinary =
          first.try_emplace(stage_of(static_cast<std::int64_t>(r)), numbers[r]).first->second;
      numbers[r] = numbers[r] == ordinary ? 0 : numbers[r] + 1;
      alike = alike && numbers[r] == 0;
    }
    return alike ? std::vector<std::uint32_t>{} : numbers;
  }

  const Draft& draft_;
  const Plan& plan_;
  const Cluster& cluster_;
  std::int64_t workers_;
  std::vector<std::vector<std::int64_t>> domains_;  // for nodes and each kind of domain, that of every worker
  std::vector<std::int64_t> peculiar_;              // peculiar_places()
  Numbering sharers_;
};

}  // namespace

std::vector<std::uint32_t> surroundings(const Draft& draft) { return Surroundings(draft).run(); }

}  // namespace orrery
