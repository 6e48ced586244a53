#include "sim/picture/talks.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace orrery {
namespace {

// For each Dimension of parallelism: a text on what the ranks of one group have in common.
constexpr std::array<std::string_view, kDimensions> kAbout = {
    "ranks that hold parts of the same matrices",
    "ranks that hold parts of the same sequences",
    "ranks that hold different experts of the same layers",
    "ranks that hold the same weights, or shards of them, and train on different samples",
    "ranks that hold the same shard of the weights",
    "ranks of different stages of one pipeline",
    "the first and the last stage, which both hold the token embeddings",
    "tensor ranks that hold the same key and value heads",
    "ranks that exchange attention heads for positions (Ulysses)",
    "ranks that together hold one copy of the model, for the norm of its gradients",
    "all ranks",
    "ranks that hold parts of the same experts",
    "ranks that hold the same experts, or shards of them",
    "ranks that hold the same shard of experts",
    "ranks of one row of a grid of tensor ranks",
    "ranks of one column of a grid of tensor ranks",
    "ranks at one place of the layers of a grid of tensor ranks",
    "ranks that hold parts of the vocabulary, on all stages",
    "ranks of a data group on one node",
    "ranks of a data group at the same place of different nodes",
    "ranks of the model that trains, and those that send them the frozen model's output"};

std::string words_of(std::string name) {
  if (name == "send_receive") return "send and receive";
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string link_words(const Spec& spec, const std::string& link) {
  if (link == "nvlink") return "NVLink";
  if (link == "pcie") return "PCIe";
  if (link != "network") return link;
  switch (spec.cluster.fabric) {
    case Fabric::infiniband:
      return "InfiniBand";
    case Fabric::roce:
      return "RoCE";
    case Fabric::efa:
      return "EFA";
    case Fabric::omni_path:
      return "Omni-Path";
    case Fabric::ethernet:
      return "Ethernet";
  }
  return link;
}

// Returns the transfers of one dimension from a report's table of communication, most bytes first. Rows that differ
// only in the algorithm are added up.
std::vector<Talk> talks_in(const Spec& spec, const Report& report, std::string_view group) {
  std::map<std::pair<std::string, std::string>, Talk> sums;
  for (const CommunicationRow& row : report.communication) {
    if (row.group != group) continue;
    Talk& talk = sums[{row.op, row.link}];
    talk.kind = words_of(row.op);
    talk.link = link_words(spec, row.link);
    talk.bytes += row.bytes_per_gpu;
    talk.count += row.count;
  }
  std::vector<Talk> result;
  for (auto& [key, talk] : sums) result.push_back(std::move(talk));
  std::ranges::stable_sort(result, std::ranges::greater{}, &Talk::bytes);
  return result;
}

// Returns for each class of ranks to which other ranks of their pipeline group its ranks send: distances from the
// sender in positions within the group.
std::vector<std::set<std::int64_t>> offsets_of(const Plan& plan) {
  std::vector<std::set<std::int64_t>> offsets(plan.classes.size());
  for (std::size_t s = 0; s < plan.classes.size(); ++s) {
    for (TaskId t = plan.classes[s].begin; t < plan.classes[s].end; ++t) {
      const auto* transfer = std::get_if<Transfer>(&plan.op_of(t).work);
      if (transfer != nullptr && transfer->send) offsets[s].insert(transfer->offset);
    }
  }
  return offsets;
}

// Returns the pairs of stages (sender, receiver) of the first pipeline group; the other pipeline groups have the same.
std::vector<std::pair<std::int64_t, std::int64_t>> pairs_of(const Plan& plan) {
  const std::vector<std::set<std::int64_t>> offsets = offsets_of(plan);
  const std::vector<std::uint32_t> slots = slots_of_ranks(plan);
  const auto group = plan.dimensions[static_cast<std::size_t>(Dimension::pipeline)].groups.front();
  const auto n = static_cast<std::int64_t>(group.size());
  const auto slot = [&](std::int64_t i) { return slots[static_cast<std::size_t>(group[static_cast<std::size_t>(i)])]; };
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t i = 0; i < n; ++i) {
    for (const std::int64_t offset : offsets[slot(i)]) {
      const std::int64_t to = ((i + offset) % n + n) % n;
      const std::pair stages(plan.classes[slot(i)].stage, plan.classes[slot(to)].stage);
      if (stages.first != stages.second) pairs.insert(stages);
    }
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace

std::vector<DimensionTalk> talks_of(const Spec& spec, const Plan& plan, const Report& report) {
  std::vector<DimensionTalk> result;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    const auto dimension = static_cast<Dimension>(d);
    DimensionTalk talk = {dimension, kAbout[d], talks_in(spec, report, name_of(dimension)), {}};
    if (talk.talks.empty()) continue;
    if (dimension == Dimension::pipeline) talk.pairs = pairs_of(plan);
    result.push_back(std::move(talk));
  }
  return result;
}

}  // namespace orrery
