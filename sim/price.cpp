#include "sim/price.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "models/nccl.h"
#include "sim/kernel_time.h"
#include "sim/shared_links.h"

namespace orrery {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kPressureUnit = 65536;
// NCCL's buffers of one connection and channel: LL 512 KiB, LL128 4.69 MiB, Simple 4 MiB (2.28.9, device.h).
constexpr Bytes kConnectionBytes = 9'646'899;

// How the members of a group lie on the nodes, e.g. {8, 8}.
using Spread = std::vector<int>;

class Pricer {
 public:
  Pricer(const Plan& plan, const Spec& spec, const Profile& profile) : plan_(plan), spec_(spec), profile_(profile) {
    compute_.reserve(plan.ops.size());
    for (const Op& op : plan.ops) {
      compute_.push_back(
          kernel_time(op, plan.element_bytes, spec.cluster.gpu, profile, spec.software.attention_kernel));
    }
    prices_.notes.resize(plan.ops.size());
    node_gpus_ = nccl_node_gpus(spec.cluster);
  }

  Prices run() {
    std::map<std::vector<Spread>, std::uint32_t> rows;
    for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
      std::vector<Spread> lie;
      for (const GroupTable& table : plan_.dimensions) lie.push_back(spread(table, plan_.slots[s].representative));
      lie.push_back({is_near(s, 1) ? 1 : 0, is_near(s, -1) ? 1 : 0});
      const auto [it, fresh] = rows.try_emplace(lie, static_cast<std::uint32_t>(rows.size()));
      if (fresh) prices_.timing.rows.push_back(row(lie));
      prices_.timing.row_of_slot.push_back(it->second);
      prices_.nccl_bytes.push_back(communicator_bytes(s, lie));
    }
    find_shared_links(plan_, spec_.cluster, prices_.timing);
    return std::move(prices_);
  }

 private:
  std::int64_t node_of(std::int64_t rank) const { return rank / node_gpus_; }

  Spread spread(const GroupTable& table, std::int64_t rank) const {
    Spread result;
    std::int64_t last = -1;
    for (const std::int32_t r : table.groups[table.member_of[rank]]) {  // in rank order, so node by node
      const std::int64_t node = node_of(r);
      if (node != last) result.push_back(0);
      ++result.back();
      last = node;
    }
    return result;
  }

  // Whether this slot and the stage `offset` further, modulo the group, lie on one node: where a hop leads.
  bool is_near(std::uint32_t s, std::int64_t offset) const {
    const GroupTable& pipeline = plan_.dimensions[static_cast<std::size_t>(Dimension::pipeline)];
    const auto& group = pipeline.groups[pipeline.member_of[plan_.slots[s].representative]];
    const auto at = std::find(group.begin(), group.end(), plan_.slots[s].representative) - group.begin();
    const auto size = static_cast<std::int64_t>(group.size());
    return node_of(group[at]) == node_of(group[(at + offset + size) % size]);
  }

  // One connection per channel of every communicator that the slot's lanes use.
  Bytes communicator_bytes(std::uint32_t s, const std::vector<Spread>& lie) {
    std::set<Dimension> used;
    for (TaskId t = plan_.slots[s].begin; t < plan_.slots[s].end; ++t) {
      const Op& op = plan_.op_of(t);
      if (const auto* c = std::get_if<Collective>(&op.work)) used.insert(c->group);
      if (std::holds_alternative<Transfer>(op.work)) used.insert(Dimension::pipeline);
    }
    std::int64_t channels = 0;
    for (const Dimension d : used) channels += model(lie[static_cast<std::size_t>(d)]).graphs.collective_channels;
    return channels * kConnectionBytes;
  }

  const NcclModel& model(const Spread& members) {
    const auto it = models_.find(members);
    if (it != models_.end()) return it->second;
    return models_.emplace(members, nccl_model(nccl_topology(spec_.cluster, members))).first->second;
  }

  std::vector<OpTiming> row(const std::vector<Spread>& lie) {
    std::vector<OpTiming> result(plan_.ops.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      const Op& op = plan_.ops[i];
      OpTiming& t = result[i];
      if (const auto* c = std::get_if<Collective>(&op.work))
        transfer(i, t, choose(*c, lie));
      else if (const auto* p = std::get_if<Transfer>(&op.work))
        transfer(i, t, send(*p, lie));
      else
        compute(i, t);
      t.issue = issue(op);
    }
    if (!spec_.software.cuda_graphs) add_host_overheads(result);
    return result;
  }

  // Whether some stage of a pipeline lies on another node than the next.
  bool has_far_stages() const {
    const auto slots = static_cast<std::uint32_t>(plan_.slots.size());
    for (std::uint32_t s = 0; s + 1 < slots; ++s) {
      if (!is_near(s, 1)) return true;
    }
    return false;
  }

  // Ranks of a tensor group, times the root of the nodes that they lie on.
  double tensor_reach() const {
    const auto& tensor = plan_.dimensions[static_cast<std::size_t>(Dimension::tensor)];
    const Spread lie = spread(tensor, plan_.slots.front().representative);
    return static_cast<double>(spec_.strategy.tensor) * std::sqrt(static_cast<double>(lie.size()));
  }

  // What a stack's host does beside launching: per layer, per micro-batch at a stage's ends, and once a step.
  void add_host_overheads(std::vector<OpTiming>& result) const {
    const Software& s = spec_.software;
    const double far = has_far_stages() ? s.far_stage_layer_us * tensor_reach() : 0;
    const auto add = [&](const std::vector<std::uint32_t>& pass, double us) {
      if (!pass.empty()) result[pass.front()].issue += picoseconds(us * kMicro);
    };
    for (const Block& block : plan_.blocks) {
      const bool layer = block.role == BlockRole::layer;
      const bool first = block.role == BlockRole::embedding || block.role == BlockRole::receive;
      const bool last = block.role == BlockRole::output || block.role == BlockRole::send;
      add(block.forward, (layer ? s.layer_us + far : 0) + (first ? s.micro_batch_us : 0));
      add(block.backward, (layer ? s.layer_us + far : 0) + (last ? s.micro_batch_us : 0));
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (std::holds_alternative<Update>(plan_.ops[i].work)) result[i].issue += picoseconds(s.step_us * kMicro);
    }
  }

  void compute(std::size_t i, OpTiming& t) const {
    const Op& op = plan_.ops[i];
    const Seconds time = compute_[i] + profile_.kernel_gap_us * kMicro * kernels_of(op.work);
    t.duration = picoseconds(time);
    t.memory = memory_share(cost_of(op.work, plan_.element_bytes).bytes / time);
  }

  std::uint32_t memory_share(double bytes_per_s) const {
    const double share = bytes_per_s / (spec_.cluster.gpu.memory_GBps * 1e9 * profile_.memory.fraction);
    return static_cast<std::uint32_t>(std::min(share, 1.0) * 65536 + 0.5);
  }

  NcclChoice choose(const Collective& c, const std::vector<Spread>& lie) {
    return nccl_choose(model(lie[static_cast<std::size_t>(c.group)]), c.kind, c.bytes);
  }

  // A hop of the pipeline: inside a node or between two, one rank of each.
  NcclChoice send(const Transfer& t, const std::vector<Spread>& lie) {
    const bool near = lie.back()[t.offset > 0 ? 0 : 1] == 1;
    return nccl_point_to_point(model(near ? Spread{2} : Spread{1, 1}), near, t.bytes);
  }

  void transfer(std::size_t op, OpTiming& t, const NcclChoice& choice) {
    t.duration = picoseconds(choice.seconds);
    const double sms = spec_.cluster.gpu.sms;
    const double taken = std::min<double>(choice.channels, sms / 2);
    t.pressure = static_cast<std::uint32_t>(kPressureUnit * (taken / (sms - taken)) * (1 + profile_.contention) + 0.5);
    // What crosses a port is read from and written to memory on its way, once each at least.
    const double wire = choice.nvlink_share * spec_.cluster.gpu.nvlink_GBps * 1e9;
    t.memory = memory_share(2 * wire);
    t.nic = static_cast<Rate>(std::min(choice.nic_share, 1.0) * static_cast<double>(kFullRate));
    t.nvlink = static_cast<Rate>(std::min(choice.nvlink_share, 1.0) * static_cast<double>(kFullRate));
    if (const auto* c = std::get_if<Collective>(&plan_.ops[op].work)) t.group = c->group;
    if (const auto* p = std::get_if<Transfer>(&plan_.ops[op].work)) {
      t.out = p->send;
      t.in = !p->send;
    }
    TransferNote& note = prices_.notes[op];
    if (!note.link.empty()) return;
    note.link = choice.nic_share > 0 ? "network" : choice.nvlink_share > 0 ? "nvlink" : "pcie";
    note.algorithm = choice.algorithm == NcclAlgorithm::point_to_point
                         ? std::string("send")
                         : fmt::format("{}/{}", name_of(choice.algorithm), name_of(choice.protocol));
  }

  Picoseconds issue(const Op& op) const {
    const Software& s = spec_.software;
    if (s.cuda_graphs) return 0;
    return picoseconds((moves(op) ? s.collective_launch_us : s.launch_us * kernels_of(op.work)) * kMicro);
  }

  const Plan& plan_;
  const Spec& spec_;
  const Profile& profile_;
  std::vector<Seconds> compute_;
  std::int64_t node_gpus_ = 1;
  std::map<Spread, NcclModel> models_;
  Prices prices_;
};

}  // namespace

Prices price(const Plan& plan, const Spec& spec, const Profile& profile) {
  return profile.measured.transfers.empty() ? Pricer(plan, spec, profile).run() : price_measured(plan, profile);
}

}  // namespace orrery
