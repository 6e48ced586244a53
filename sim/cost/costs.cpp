#include "sim/cost/costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "models/cost/direct_all_reduce.h"
#include "models/cost/host_time.h"
#include "models/cost/kernel_time.h"
#include "models/cost/nccl/model.h"
#include "models/layers/expert_sizes.h"
#include "models/layout/lags.h"
#include "models/layout/placement.h"
#include "models/spec/stragglers.h"
#include "sim/cost/class_seats.h"
#include "sim/cost/host_overheads.h"
#include "sim/cost/host_work.h"
#include "sim/cost/model_of_op.h"
#include "sim/cost/moved_by.h"
#include "sim/cost/server_costs.h"
#include "sim/cost/shared_links.h"
#include "sim/cost/uplinks.h"
#include "sim/cost/variation.h"

namespace orrery {
namespace {

constexpr double kPressureUnit = 65536;

// Each class of ranks has a list of Spreads, and classes with equal lists have equal op times. The list has one Spread
// for each dimension of parallelism, then Spreads of numbers: for each stage that the class sends to
// (Transfer::offset), whether it is on the same node (kHops) and at which levels it is in another domain
// (kHopCrossings, Uplinks::crossed); for each dimension, the levels at which the group spans domains (kCrossings);
// last, the class's slow-down and whether it is a server (kSlowdown).
constexpr std::size_t kHops = kDimensions, kHopCrossings = kDimensions + 1, kCrossings = kDimensions + 2,
                      kSlowdown = kDimensions + 3;
constexpr double kSlowdownUnit = 1e6;
// The part of software.host.far_stage_layer_us that each node but the first of a tensor group adds to it. With it the
// Ultra-Scale Playbook's steps of two stages are 1 % too long on average with 16 tensor ranks on two nodes and right
// with 32 on four, where the cube root of the nodes made these 14 % too fast.
constexpr double kFarOfEachNode = 0.25;

class CostModel {
 public:
  CostModel(const Plan& plan, const Spec& spec, const Profile& profile, std::int64_t job_gpus, const HashDraw& draw)
      : plan_(plan), spec_(spec), profile_(profile), uplinks_(plan, spec.cluster, nccl_node_gpus(spec.cluster), draw) {
    compute_.reserve(plan.ops.size());
    for (const Op& op : plan.ops) {
      if (const auto* t = std::get_if<Transfer>(&op.work)) offsets_.insert(t->offset);
      compute_.push_back(is_host_work(op)
                             ? 0
                             : kernel_time(op, plan.element_bytes, spec.cluster.gpu, profile,
                                           name_in(kFlashKernels, spec.software.kernels.attention_kernel)));
    }
    costs_.notes.resize(plan.ops.size());
    nvlink_GBps_ = nccl_nvlink_GBps(spec.cluster);
    slowest_ = slowest_beyond_a_node(gpu_spread(spec.cluster, profile.spread), job_gpus);
  }

  Costs run() {
    std::map<std::vector<Spread>, std::uint32_t> rows;
    const std::vector<Spread> crossed = uplinks_.crossed_by_classes();
    for (std::uint32_t s = 0; s < plan_.classes.size(); ++s) {
      std::vector<Spread> lie;
      for (const GroupTable& table : plan_.dimensions)
        lie.push_back(seats_.spread(table, plan_.classes[s].representative));
      lie.resize(kCrossings);
      for (const std::int64_t offset : offsets_) {
        lie[kHops].push_back(seats_.is_near(s, offset) ? 1 : 0);
        lie[kHopCrossings].push_back(static_cast<int>(seats_.crossed(s, offset)));
      }
      lie.push_back(crossed[s]);
      const double slow = slowdown_of(spec_, plan_, plan_.classes[s]);
      lie.push_back({static_cast<int>(std::lround(slow * kSlowdownUnit)), plan_.classes[s].server ? 1 : 0});
      const auto [it, fresh] = rows.try_emplace(lie, static_cast<std::uint32_t>(rows.size()));
      if (fresh) costs_.timing.rows.push_back(row(lie));
      costs_.timing.row_of_slot.push_back(it->second);
      costs_.nccl_bytes.push_back(communicator_bytes(s, lie));
    }
    costs_.busiest = uplinks_.busiest();
    costs_.hashed = uplinks_.hashed();
    find_host_parts();
    add_step_begin();
    find_shared_links(plan_, spec_.cluster, costs_.timing);
    costs_.timing.one_queue = plan_.one_queue;
    return std::move(costs_);
  }

 private:
  // Returns the bytes of NCCL's buffers on a rank of class s: one connection per channel of every communicator in use.
  Bytes communicator_bytes(std::uint32_t s, const std::vector<Spread>& lie) {
    std::set<Dimension> used;
    for (TaskId t = plan_.classes[s].begin; t < plan_.classes[s].end; ++t) {
      const Op& op = plan_.op_of(t);
      const auto* c = std::get_if<Collective>(&op.work);
      if (c != nullptr && c->servers == 0) used.insert(c->group);
      if (std::holds_alternative<Transfer>(op.work)) used.insert(Dimension::pipeline);
    }
    std::int64_t channels = 0;
    for (const Dimension d : used) channels += model(lie[static_cast<std::size_t>(d)]).graphs.collective_channels;
    return channels * kNcclConnectionBytes;
  }

  const NcclModel& model(const Spread& members) {
    const auto it = models_.find(members);
    if (it != models_.end()) return it->second;
    return models_
        .emplace(members, nccl_model(spec_.cluster, members, {spec_.software.communication.nccl_minor, spec_.gpus},
                                     profile_.nccl))
        .first->second;
  }

  static std::int64_t ranks_in(const Spread& members) { return std::accumulate(members.begin(), members.end(), 0); }

  // Returns the transfer with its measured time if the profile has one for its ranks and bytes, else as it is modelled.
  NcclChoice measured(NcclChoice choice, std::string_view kind, const Spread& members, Bytes bytes) const {
    const TransferTable* table =
        find_transfers(profile_.measured, kind, ranks_in(members), static_cast<std::int64_t>(members.size()));
    const bool known = table != nullptr && covers(*table, bytes);
    return known ? lasting(choice, interpolate(*table, bytes)) : corrected(profile_.steps, choice, members.size() > 1);
  }

  std::vector<OpTiming> row(const std::vector<Spread>& lie) {
    std::vector<OpTiming> result(plan_.ops.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      const Op& op = plan_.ops[i];
      OpTiming& t = result[i];
      if (const auto* c = std::get_if<Collective>(&op.work))
        transfer(i, t, choose(i, *c, lie), lie[kSlowdown][1] == 1,
                 ranks_in(lie[static_cast<std::size_t>(c->group)]) == 1);
      else if (const auto* p = std::get_if<Transfer>(&op.work))
        transfer(i, t, send(i, *p, lie), false, false);
      else if (is_host_work(op))
        beyond_device(i, t);
      else
        compute(i, t, lie[kSlowdown][0] / kSlowdownUnit);
      t.issue = picoseconds(issue_time(op, spec_.software, profile_));
    }
    if (!graphs_step(spec_.software))
      add_host_overheads(plan_, spec_.software, far_stage_us() + woven_us(spec_), result);
    scale_host(profile_.steps.factor(FitPart::host), result);
    if (spec_.software.host.blocking_launches) block_launches(result);
    return result;
  }

  // Adds to the issue time of a step's first task the measured time of the host since the end of the step before.
  void add_step_begin() {
    std::set<std::pair<std::uint32_t, std::uint32_t>> firsts;
    for (std::uint32_t s = 0; s < plan_.classes.size(); ++s)
      firsts.insert({costs_.timing.row_of_slot[s], plan_.tasks[plan_.classes[s].begin].op});
    for (const auto& [row, op] : firsts) costs_.timing.rows[row][op].issue += picoseconds(profile_.measured.step);
  }

  Seconds first_layers_issue() const {
    const auto layer = std::find_if(plan_.blocks.begin(), plan_.blocks.end(),
                                    [](const Block& block) { return block.role == BlockRole::layer; });
    const auto add = [&](Picoseconds sum, std::uint32_t op) { return sum + costs_.timing.rows[0][op].issue; };
    return seconds(std::accumulate(layer->forward.begin(), layer->forward.end(), Picoseconds{0}, add));
  }

  // Returns whether any stage of the pipeline is on another node than the stage after it.
  bool has_far_stages() const {
    for (std::uint32_t s = 0; s < plan_.classes.size(); ++s) {
      if (plan_.classes[s].stage < plan_.last_stage(plan_.classes[s]) && !seats_.is_near(s, 1)) return true;
    }
    return false;
  }

  // Returns the factor by which software.host.far_stage_layer_us is multiplied: the number of ranks of a tensor group,
  // and a quarter of it more for each node but the first that the group spans; 0 for a group of one rank.
  double tensor_reach() const {
    const auto& tensor = plan_.dimensions[static_cast<std::size_t>(Dimension::tensor)];
    const Spread lie = seats_.spread(tensor, plan_.classes.front().representative);
    const std::int64_t ranks = ranks_in(lie);
    return ranks == 1 ? 0 : static_cast<double>(ranks) * (1 + kFarOfEachNode * static_cast<double>(lie.size() - 1));
  }

  // Returns the microseconds of host time to add per layer and pass if neighbouring stages are on different nodes.
  double far_stage_us() const { return has_far_stages() ? spec_.software.host.far_stage_layer_us * tensor_reach() : 0; }

  // Finds Costs::host_part, the share of the launch time of a layer's ops in which the host thread is busy.
  void find_host_parts() {
    const double far = far_stage_us(), own = spec_.software.host.host_layer_us;
    if (far == 0 && own == 0) return;
    const double whole = first_layers_issue() / kMicrosecond;
    if (whole <= far) return;
    const double mine = own > 0 ? std::min(own, whole - far) : whole - far;
    costs_.host_part = (far + mine) / whole;
    // The time added for stages on different nodes keeps the host busy, but not where the host runs ahead: there only
    // the device waits for other stages.
    costs_.filling_part = mine / whole;
  }

  // With blocking launches the device idles while the host prepares a kernel, so durations include issue times.
  static void block_launches(std::vector<OpTiming>& row) {
    for (OpTiming& t : row) t.duration += std::exchange(t.issue, 0);
  }

  void compute(std::size_t i, OpTiming& t, double slowdown) const {
    const Op& op = plan_.ops[i];
    if (op.within) return;
    // Samples in a profile last from one kernel's end to the next one's; the gaps between an op's kernels are in them.
    const bool sampled = is_calibrated(profile_) && measured_time(profile_.measured, op.work, plan_.element_bytes);
    const Seconds gap =
        sampled ? profile_.measured.gap : profile_.kernel_gap_us * kMicrosecond * kernels_of(op.work, profile_);
    const Seconds time = (compute_[i] * (is_clocked(op) ? slowest_ : 1) + gap) * slowdown;
    t.duration = picoseconds(time);
    t.memory = time > 0 ? memory_share(cost_of(op.work, plan_.element_bytes).bytes / time) : 0;
  }

  void beyond_device(std::size_t i, OpTiming& t) {
    const HostWork work = host_work(plan_.ops[i], plan_, spec_.cluster, profile_.memory.start_us * kMicrosecond);
    t.duration = picoseconds(work.seconds);
    for (std::size_t p = 0; p < kPorts; ++p) {
      t.ports[p] = static_cast<Rate>(std::min(work.share[p], 1.0) * static_cast<double>(kFullRate));
      t.host = t.host || t.ports[p] > 0;
    }
    t.memory = memory_share(work.device_bytes_per_s);
    // The measured slow-down of compute during a copy includes the effect of shared memory bandwidth, which is
    // therefore not added again.
    if (work.device_bytes_per_s > 0 && profile_.measured.beside_slowdown > 1) {
      t.pressure = static_cast<std::uint32_t>(kPressureUnit * (profile_.measured.beside_slowdown - 1) + 0.5);
      t.memory = 0;
    }
  }

  std::uint32_t memory_share(double bytes_per_s) const {
    const double share = bytes_per_s / (spec_.cluster.gpu.memory_GBps * 1e9 * profile_.memory.fraction);
    return static_cast<std::uint32_t>(std::min(share, 1.0) * 65536 + 0.5);
  }

  NcclChoice choose(std::size_t op, const Collective& c, const std::vector<Spread>& lie) {
    const Spread& spread = lie[static_cast<std::size_t>(c.group)];
    if (ranks_in(spread) == 1) return copied(c);
    if (c.servers > 0) return served(c, plan_, spec_, profile_);
    const NcclModel& members = model(spread);
    const bool by_copies = c.algorithm == kCopyEngines;
    Collective timed = by_copies ? one_copy(c, ranks_in(spread)) : c;
    if (c.group == Dimension::hand_over) timed.bytes = exchanged_bytes(c, ranks_in(spread));
    NcclChoice choice =
        c.algorithm.starts_with("hierarchical")
            ? corrected(profile_.steps, two_stage_all_to_all(members, c.bytes, copies(op, spread)), spread.size() > 1)
            : measured(in_a_step(members, timed), transfer_kind(plan_.ops[op]), spread, timed.bytes);
    if (spec_.software.communication.direct_all_reduce && c.kind == CollectiveKind::all_reduce)
      choice = with_direct_all_reduce(members, c.bytes, choice);
    choice.seconds += static_cast<double>(c.tensors - 1) * nccl_next_tensor(members, c.kind);
    if (by_copies) choice.channels = 0;
    NodeTraffic path = path_of(timed.kind, choice.algorithm);
    path.by_node = c.algorithm.starts_with("hierarchical");
    path.levels = static_cast<std::uint32_t>(lie[kCrossings][static_cast<std::size_t>(c.group)]);
    return over_uplinks(uplinks_, op, choice, c.group, members.topology, pattern_of(timed.kind), path);
  }

  static NcclChoice in_a_step(const NcclModel& members, const Collective& c) {
    const NcclChoice choice = nccl_choose(members, c.kind, c.bytes);
    return lasting(choice, choice.seconds + nccl_late_members(members, c.kind));
  }

  // Returns the cost of a collective in a group of a single rank, which is a copy within the device's own memory.
  NcclChoice copied(const Collective& c) const {
    NcclChoice choice;
    choice.seconds = choice.nccl_seconds =
        profile_.memory.start_us * kMicrosecond +
        2 * static_cast<double>(c.bytes) / (spec_.cluster.gpu.memory_GBps * 1e9 * profile_.memory.fraction);
    return choice;
  }

  TokenCopies copies(std::size_t op, const Spread& members) const {
    const Moe& moe = *model_of_op_[op]->moe;
    const double nodes = static_cast<double>(members.size());
    return {(nodes - 1) / nodes * parts_met(moe, nodes), parts_met(moe, static_cast<double>(ranks_in(members)))};
  }

  // Returns the cost of a send between two pipeline stages: that of a pair of ranks on one node, or of a pair on two
  // nodes with one rank on each.
  NcclChoice send(std::size_t op, const Transfer& t, const std::vector<Spread>& lie) {
    const auto way = static_cast<std::size_t>(std::distance(offsets_.begin(), offsets_.find(t.offset)));
    const bool near = lie[kHops][way] == 1;
    const Spread pair = near ? Spread{2} : Spread{1, 1};
    const NcclModel& members = model(pair);
    const Bytes bytes = t.bytes / t.parts;
    const NcclChoice sent =
        measured(nccl_point_to_point(members, near, bytes), transfer_kind(plan_.ops[op]), pair, bytes);
    const NodeTraffic path = {.levels = static_cast<std::uint32_t>(lie[kHopCrossings][way]),
                              .way = t.send ? t.offset : -t.offset};
    const NcclChoice choice =
        over_uplinks(uplinks_, op, sent, Dimension::pipeline, members.topology, Uplinks::Pattern::neighbours, path);
    if (t.parts == 1) return choice;
    const NcclModel& group = model(lie[static_cast<std::size_t>(Dimension::tensor)]);
    return lasting(choice, choice.seconds + nccl_choose(group, CollectiveKind::all_gather, t.bytes).seconds);
  }

  // alone: whether the group has one rank, as on ranks that never issue the op; the note is of a larger group.
  void transfer(std::size_t op, OpTiming& t, const NcclChoice& choice, bool server, bool alone) {
    t.duration = picoseconds(choice.seconds);
    const double sms = spec_.cluster.gpu.sms;
    const double taken = std::min<double>(choice.channels, sms / 2);
    t.pressure = static_cast<std::uint32_t>(kPressureUnit * (taken / (sms - taken)) * (1 + profile_.contention) + 0.5);
    // Bytes that cross NVLink are read from device memory and written to device memory, at least once each.
    const double wire = choice.nvlink_share * nvlink_GBps_ * 1e9;
    t.memory = memory_share(2 * wire);
    t.nic = static_cast<Rate>(std::min(choice.nic_share, 1.0) * static_cast<double>(kFullRate));
    t.nvlink = static_cast<Rate>(std::min(choice.nvlink_share, 1.0) * static_cast<double>(kFullRate));
    t.uplink = static_cast<Rate>(std::min(choice.uplink_share, 1.0) * static_cast<double>(kFullRate));
    t.uplink_level = choice.uplink_level;
    if (const auto* c = std::get_if<Collective>(&plan_.ops[op].work)) {
      if (sums_by_moves(*c)) {
        const double measured = kPressureUnit * (profile_.measured.sum_slowdown - 1);
        t.pressure = std::max(t.pressure, static_cast<std::uint32_t>(measured + 0.5));
      }
      t.group = c->group;
      if (c->servers > 0) t.out = server == (c->kind == CollectiveKind::pull);
      if (c->servers > 0) t.in = !t.out;
    }
    if (const auto* p = std::get_if<Transfer>(&plan_.ops[op].work)) {
      t.out = p->send;
      t.in = !p->send;
    }
    TransferNote& note = costs_.notes[op];
    if (!note.link.empty() && (alone || !noted_alone_[op])) return;
    noted_alone_[op] = alone;
    note.link = choice.nic_share > 0 ? "network" : choice.nvlink_share > 0 ? "nvlink" : "pcie";
    const auto* moved = std::get_if<Collective>(&plan_.ops[op].work);
    note.algorithm = moved != nullptr && moved->algorithm == kCopyEngines ? std::string(kCopyEngines)
                     : choice.algorithm == NcclAlgorithm::point_to_point
                         ? std::string("send")
                         : fmt::format("{}/{}", name_of(choice.algorithm), name_of(choice.protocol));
  }

  const Plan& plan_;
  const Spec& spec_;
  const Profile& profile_;
  std::vector<Seconds> compute_;
  std::set<std::int64_t> offsets_;  // distances, in stages, over which the plan sends (Transfer::offset)
  double nvlink_GBps_ = 0;          // rate of which NcclChoice::nvlink_share is a share
  double slowest_ = 1;              // time of an op on the job's slowest GPU over that on a typical GPU
  std::map<Spread, NcclModel> models_;
  Uplinks uplinks_;
  ClassSeats seats_ = {plan_, uplinks_, nccl_node_gpus(spec_.cluster)};
  std::vector<const Model*> model_of_op_ = models_of_ops(spec_, plan_);
  Costs costs_;
  std::vector<bool> noted_alone_ = std::vector<bool>(plan_.ops.size());  // for each op, whether its note is of one rank
};

}  // namespace

Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile, std::int64_t job_gpus,
               const HashDraw& draw) {
  const bool complete = !has_formulas(profile) && !profile.measured.transfers.empty();
  Costs costs = complete ? measured_costs(plan, spec, profile) : CostModel(plan, spec, profile, job_gpus, draw).run();
  if (const auto& v = spec.cluster.variation) wait_for_slowest_kernels(plan, *v, costs.timing);
  return costs;
}

Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile, std::int64_t job_gpus) {
  return costs_of(plan, spec, profile, job_gpus, draw_of(spec.cluster));
}

Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile) {
  return costs_of(plan, spec, profile, plan.workers());
}

}  // namespace orrery
