#include <algorithm>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/cost/kernel_time.h"
#include "models/layers/blocks.h"
#include "models/spec/stragglers.h"
#include "sim/cost/costs.h"
#include "sim/cost/host_work.h"

namespace orrery {
namespace {

constexpr double kWhole = 65536;

std::uint32_t fraction(double x) { return static_cast<std::uint32_t>(std::max(x, 0.0) * kWhole + 0.5); }

class MeasuredCosts {
 public:
  MeasuredCosts(const Plan& plan, const Spec& spec, const Profile& profile)
      : plan_(plan), spec_(spec), profile_(profile), times_(profile.measured) {}

  Costs run() {
    const std::vector<Bytes> cleared = cleared_bytes(plan_);
    cleared_.resize(plan_.ops.size(), 0);
    for (TaskId t = 0; t < plan_.task_count(); ++t) {
      Bytes& of_op = cleared_[plan_.tasks[t].op];
      of_op = std::max(of_op, cleared[t]);
    }
    costs_.notes.resize(plan_.ops.size());
    for (std::uint32_t s = 0; s < plan_.classes.size(); ++s) {
      costs_.timing.row_of_slot.push_back(s);
      costs_.timing.rows.push_back(row(s));
      costs_.nccl_bytes.push_back(0);
    }
    return std::move(costs_);
  }

 private:
  std::vector<OpTiming> row(std::uint32_t slot) {
    std::vector<bool> used(plan_.ops.size(), false);
    for (TaskId t = plan_.classes[slot].begin; t < plan_.classes[slot].end; ++t) used[plan_.tasks[t].op] = true;
    std::vector<OpTiming> result(plan_.ops.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (used[i]) result[i] = moves(plan_.ops[i]) ? transfer(slot, i) : compute(slot, i);
    }
    // times_.step is the host's time from the end of one step to the issue of the first task of the next; it is added
    // to the issue time of that task.
    result[plan_.tasks[plan_.classes[slot].begin].op].issue += picoseconds(times_.step);
    return result;
  }

  OpTiming compute(std::uint32_t slot, std::size_t i) const {
    const Op& op = plan_.ops[i];
    Seconds time = kernel_time(op, plan_.element_bytes, {}, profile_, "");
    if (cleared_[i] > 0) time += measured_time(times_, Fill{cleared_[i]}, plan_.element_bytes).value_or(0);
    if (op.lane == LaneKind::compute) time *= slowdown_of(spec_, plan_.classes[slot].representative);
    OpTiming t{.duration = picoseconds(time + times_.gap), .issue = picoseconds(times_.issue)};
    if (!is_host_work(op)) return t;
    t.pressure = fraction(times_.beside_slowdown - 1);
    t.yield = fraction(times_.copy_slowdown - 1);
    return t;
  }

  OpTiming transfer(std::uint32_t slot, std::size_t i) {
    const Op& op = plan_.ops[i];
    const auto* c = std::get_if<Collective>(&op.work);
    const std::int64_t ranks = c == nullptr ? 2 : members(slot, c->group);
    const Bytes bytes = c == nullptr ? std::get<Transfer>(op.work).bytes : c->bytes;
    const auto time = measured_transfer(times_, transfer_kind(op), ranks, bytes);
    if (!time)
      throw Error(fmt::format("{}: has no sample of '{}' over {} ranks ({}); calibrate with --ranks {}", profile_.name,
                              transfer_kind(op), ranks, op.name, std::max(ranks, plan_.ranks)));
    OpTiming t{.duration = picoseconds(*time + times_.transfer_start + times_.wake),
               .issue = picoseconds(times_.issue),
               .pressure = fraction(times_.compute_slowdown - 1),
               .yield = fraction(times_.transfer_slowdown - 1)};
    if (c != nullptr) t.group = c->group;
    const bool library = c == nullptr || c->algorithm == "library";
    costs_.notes[i] = {std::string(fingerprint_of(profile_, "link")),
                       std::string(library ? fingerprint_of(profile_, "library") : c->algorithm)};
    return t;
  }

  std::int64_t members(std::uint32_t slot, Dimension d) const {
    const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(d)];
    return static_cast<std::int64_t>(table.groups[table.member_of[plan_.classes[slot].representative]].size());
  }

  const Plan& plan_;
  const Spec& spec_;
  const Profile& profile_;
  const MeasuredTimes& times_;
  std::vector<Bytes> cleared_;  // for each op, the bytes of gradient buffers that the op must set to zero first
  Costs costs_;
};

}  // namespace

std::string transfer_kind(const Op& op) {
  const auto* c = std::get_if<Collective>(&op.work);
  if (c == nullptr) return "message";
  return c->algorithm == "library" ? std::string(name_of(c->kind))
                                   : fmt::format("{}/{}", name_of(c->kind), c->algorithm);
}

std::vector<Bytes> cleared_bytes(const Plan& plan) {
  std::vector<Bytes> bytes(plan.task_count(), 0);
  std::vector<bool> held(plan.buffers, false);
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto visit = [&](const std::vector<Operand>& operands, bool holds) {
      for (const Operand& o : operands) {
        if (o.scope != Scope::unit || o.slot != kUnitGradient) continue;
        const Frame& unit = plan.frames[frame_of(plan, plan.tasks[t].frame, o)];
        if (holds && !held[unit.first_buffer + o.slot]) bytes[t] += plan.blocks[unit.block].buffers[o.slot].bytes;
        held[unit.first_buffer + o.slot] = holds;
      }
    };
    visit(plan.op_of(t).allocates, true);
    visit(plan.op_of(t).frees, false);
  }
  return bytes;
}

Costs measured_costs(const Plan& plan, const Spec& spec, const Profile& profile) {
  return MeasuredCosts(plan, spec, profile).run();
}

}  // namespace orrery
