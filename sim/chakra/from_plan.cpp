#include "sim/chakra/from_plan.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"

namespace orrery {
namespace {

LaneKind lane_of(const Plan& plan, TaskId t) { return static_cast<LaneKind>(plan.tasks[t].lane % kLanes); }

std::uint64_t whole_us(Picoseconds time) { return static_cast<std::uint64_t>((time + 500'000) / 1'000'000); }

// Pairs of lanes (streams) of two pipeline stages: what one rank sends in the first lane, the other rank receives in
// the second.
constexpr std::array<std::pair<LaneKind, LaneKind>, 3> kEnds = {{{LaneKind::send_next, LaneKind::receive_previous},
                                                                 {LaneKind::send_previous, LaneKind::receive_next},
                                                                 {LaneKind::send_partner, LaneKind::receive_partner}}};

std::int64_t way_of(LaneKind lane) {
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    if (lane == kEnds[i].first || lane == kEnds[i].second) return static_cast<std::int64_t>(i);
  }
  return 0;
}

const Collective* collective_of(const Plan& plan, TaskId t) {
  const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
  return c == nullptr || plan.dimensions[static_cast<std::size_t>(c->group)].groups.empty() ? nullptr : c;
}

}  // namespace

// How many messages a rank has exchanged with each other rank in each direction so far; the count serves as a message's
// tag.
struct ChakraWriter::Pairs {
  std::map<std::tuple<std::int64_t, std::int64_t, bool>, std::int64_t> count;
};

ChakraWriter::ChakraWriter(const Plan& plan, const Trace& trace)
    : plan_(plan), trace_(trace), class_of_(slots_of_ranks(plan)) {
  if (plan.servers > 0)
    throw Error("strategy.sharding: execution traces have no parameter servers; choose another sharding");
  std::int64_t next = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Collective* c = collective_of(plan, t);
    if (c == nullptr) continue;
    if (c->kind == CollectiveKind::shift || c->kind == CollectiveKind::push || c->kind == CollectiveKind::pull)
      throw Error(fmt::format("{}: execution traces have no {}; leave the option out that asks for it (overlap.tensor)",
                              plan.op_of(t).name, orrery::name_of(c->kind)));
    const auto [it, fresh] = first_group_.try_emplace({c->group, lane_of(plan, t)}, next);
    if (fresh) next += static_cast<std::int64_t>(plan.dimensions[static_cast<std::size_t>(c->group)].groups.size());
  }
}

std::int64_t ChakraWriter::group_of(Dimension d, LaneKind lane, std::int64_t rank) const {
  return first_group_.at({d, lane}) + plan_.dimensions[static_cast<std::size_t>(d)].member_of[rank];
}

void ChakraWriter::set_collective(ChakraNode& node, const Collective& c, LaneKind lane, std::int64_t rank) const {
  const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(c.group)];
  const auto members = static_cast<Bytes>(table.groups[table.member_of[rank]].size());
  if (members < 2) return;  // in a group of one rank the op is a copy, not a collective
  node.kind = ChakraNode::Kind::collective;
  node.collective = c.kind;
  node.group = fmt::format("{}", group_of(c.group, lane, rank));
  node.bytes = static_cast<std::uint64_t>(c.kind == CollectiveKind::all_gather ? c.bytes / members : c.bytes);
}

void ChakraWriter::set_transfer(ChakraNode& node, const Transfer& t, LaneKind lane, std::int64_t rank,
                                Pairs& pairs) const {
  const GroupTable& pipeline = plan_.dimensions[static_cast<std::size_t>(Dimension::pipeline)];
  const auto group = pipeline.groups[pipeline.member_of[rank]];
  const auto size = static_cast<std::int64_t>(group.size());
  const auto at = std::find(group.begin(), group.end(), static_cast<std::int32_t>(rank)) - group.begin();
  node.kind = t.send ? ChakraNode::Kind::send : ChakraNode::Kind::receive;
  node.bytes = static_cast<std::uint64_t>(t.bytes / t.parts);
  node.peer = group[static_cast<std::size_t>((at + t.offset % size + size) % size)];
  const std::int64_t way = way_of(lane);
  node.tag = pairs.count[{node.peer, way, t.send}]++ * static_cast<std::int64_t>(kEnds.size()) + way;
}

ChakraNode ChakraWriter::node_of(TaskId task, std::int64_t rank, Pairs& pairs) const {
  const Op& op = plan_.op_of(task);
  const Span& span = trace_.spans[task];
  const Cost cost = cost_of(op.work, plan_.element_bytes);
  ChakraNode node = {.name = fmt::format("{}, {}", describe_task(plan_, task), name_of(lane_of(plan_, task))),
                     .kind = ChakraNode::Kind::compute,
                     .start_us = whole_us(span.matched),
                     .duration_us = whole_us(span.ended - span.matched),
                     .on_host = lane_of(plan_, task) == LaneKind::cpu,
                     .operations = static_cast<std::int64_t>(cost.flops),
                     .bytes = static_cast<std::uint64_t>(cost.bytes)};
  if (const Collective* c = collective_of(plan_, task)) set_collective(node, *c, lane_of(plan_, task), rank);
  if (const auto* t = std::get_if<Transfer>(&op.work)) set_transfer(node, *t, lane_of(plan_, task), rank, pairs);
  if (node.kind != ChakraNode::Kind::compute) node.operations = 0;
  return node;
}

ChakraTrace ChakraWriter::of_rank(std::int64_t rank) const {
  const RankClass& own = plan_.classes[class_of_[static_cast<std::size_t>(rank)]];
  std::map<std::uint32_t, TaskId> before;  // last task so far in each lane (stream)
  Pairs pairs;
  ChakraTrace trace;
  for (TaskId t = own.begin; t < own.end; ++t) {
    ChakraNode node = node_of(t, rank, pairs);
    node.id = t - own.begin;
    for (const TaskId d : plan_.dependencies_of(t)) {
      if (d >= own.begin && d < own.end) node.waits_for.push_back(d - own.begin);
    }
    const auto [last, fresh] = before.try_emplace(plan_.tasks[t].lane, t);
    if (!fresh) {
      node.waits_for.push_back(last->second - own.begin);
      last->second = t;
    }
    std::ranges::sort(node.waits_for);
    node.waits_for.erase(std::unique(node.waits_for.begin(), node.waits_for.end()), node.waits_for.end());
    trace.nodes.push_back(std::move(node));
  }
  return trace;
}

std::string ChakraWriter::groups() const {
  nlohmann::ordered_json groups = nlohmann::ordered_json::object();
  for (const auto& [communicator, first] : first_group_) {
    const GroupList& lists = plan_.dimensions[static_cast<std::size_t>(communicator.first)].groups;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      const auto members = lists[i];
      if (members.size() > 1)
        groups[fmt::format("{}", first + static_cast<std::int64_t>(i))] =
            std::vector<std::int32_t>(members.begin(), members.end());
    }
  }
  return groups.dump() + "\n";
}

}  // namespace orrery
