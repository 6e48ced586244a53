#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/names.h"
#include "sim/export/pytorch_ops.h"
#include "sim/summary/kernel_class.h"
#include "sim/summary/kernel_name.h"
#include "sim/whatif/run_events.h"

namespace orrery {
namespace {

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  return printable(found->is_string() ? found->get<std::string>() : found->dump());
}

}  // namespace

// Returns how a rank's transfer kernel is named, and the process group or pair of ranks of which it is a transfer. A
// kernel that names no group is a transfer of its rank alone (group "").
KernelRun::Call KernelRun::call_of(const std::string& arguments) {
  const nlohmann::json args = nlohmann::json::parse(arguments, nullptr, false);
  if (!args.is_object()) return {};
  const std::string name = text_of(args, "Collective name"), about = text_of(args, "Process Group Description");
  const std::string_view known = collective_of_torch(name);
  const std::string counted(known.empty() ? name : known);
  const std::string source = text_of(args, "Src Rank"), target = text_of(args, "Dst Rank");
  std::string group = text_of(args, "Process Group Ranks");
  if (group.empty() || group.find("...") != std::string::npos) group = text_of(args, "Process Group Name");
  if (!source.empty() && !target.empty()) group += fmt::format(" {} to {}", source, target);
  const std::string shown = about.empty() || about == "undefined" ? counted : fmt::format("{} {}", counted, about);
  return {group, shown, name == "send"};
}

void KernelRun::add(const Kernel& kernel) {
  const auto worker = workers_.try_emplace(kernel.worker, static_cast<std::int32_t>(workers_.size())).first->second;
  if (static_cast<std::size_t>(worker) == run_.workers.size()) run_.workers.push_back(kernel.worker);
  const std::int32_t lane = lanes_.try_emplace(kernel.lane, static_cast<std::int32_t>(lanes_.size())).first->second;
  MeasuredOp o{.worker = worker, .lane = lane, .step = kernel.step};
  o.begin = kernel.begin;
  o.end = kernel.begin + kernel.time;
  Part part;
  std::string work = kernel.name;
  if (const Call call = kernel.arguments.empty() ? Call{} : call_of(kernel.arguments); !call.name.empty()) {
    o.op = run_.op(call.name, true);
    if (!call.group.empty())
      part.group = groups_.try_emplace(call.group, static_cast<std::int64_t>(groups_.size())).first->second;
    o.aside = call.sends;
    work = call.name;
  } else {
    const KernelClass kind = class_of_kernel(kernel.name, kernel.kind);
    o.op = run_.op(name_of(kind), kind == KernelClass::collective);
  }
  if (run_.transfers[o.op] && part.group < 0) ++without_group_;
  part.work = works_.try_emplace(work, static_cast<std::uint32_t>(works_.size())).first->second;
  run_.operations.push_back(o);
  parts_.push_back(part);
}

void KernelRun::number_pools(const std::vector<std::size_t>& order) {
  std::map<std::tuple<std::int32_t, std::int64_t, std::uint32_t>, std::uint32_t> seen;  // by worker, step and work
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> pools;               // by work, and number in a step
  std::vector<const std::string*> names(works_.size());
  for (const auto& [name, work] : works_) names[work] = &name;
  for (const std::size_t i : order) {
    MeasuredOp& o = run_.operations[i];
    const std::uint32_t number = seen[{o.worker, o.step, parts_[i].work}]++;
    const auto [pool, added] = pools.try_emplace({parts_[i].work, number}, static_cast<std::uint32_t>(pools.size()));
    o.pool = pool->second;
    if (added)
      run_.pool_names.push_back(fmt::format("number {} of {}", number + 1, short_kernel_name(*names[parts_[i].work])));
  }
}

void KernelRun::number_groups(const std::vector<std::size_t>& order) {
  // by group and step: for each worker, the indices of the group's transfers in the order in which they begin
  std::map<std::pair<std::int64_t, std::int64_t>, std::map<std::int32_t, std::vector<std::size_t>>> transfers;
  for (const std::size_t i : order) {
    const MeasuredOp& o = run_.operations[i];
    if (parts_[i].group >= 0) transfers[{parts_[i].group, o.step}][o.worker].push_back(i);
  }
  std::int64_t next = 0;
  std::size_t unmatched = 0;
  std::string example;
  for (const auto& [place, by_worker] : transfers) {
    const std::vector<std::size_t>& first = by_worker.begin()->second;
    const auto other = std::find_if(by_worker.begin(), by_worker.end(),
                                    [&](const auto& w) { return w.second.size() != first.size(); });
    if (other != by_worker.end()) {
      example = fmt::format("in step {} rank {} has {} and rank {} has {}", place.second,
                            run_.workers[static_cast<std::size_t>(by_worker.begin()->first)], first.size(),
                            run_.workers[static_cast<std::size_t>(other->first)], other->second.size());
      for (const auto& [worker, members] : by_worker) unmatched += members.size();
      continue;
    }
    for (const auto& [worker, members] : by_worker) {
      for (std::size_t n = 0; n < members.size(); ++n)
        run_.operations[members[n]].group = next + static_cast<std::int64_t>(n);
    }
    next += static_cast<std::int64_t>(first.size());
  }
  if (unmatched > 0)
    run_.remarks.push_back(fmt::format("{} transfers are not matched between ranks, whose numbers of them differ: {}",
                                       unmatched, example));
}

MeasuredRun KernelRun::take() {
  std::vector<std::size_t> order(run_.operations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return run_.operations[a].begin < run_.operations[b].begin; });
  number_pools(order);
  number_groups(order);
  if (without_group_ > 0 && run_.workers.size() > 1)
    run_.remarks.push_back(fmt::format(
        "{} no process group (traces of PyTorch 2.2 and later usually do): waiting for other ranks counts as moving",
        without_group_ == 1 ? "1 collective names" : fmt::format("{} collectives name", without_group_)));
  run_.sort_workers();
  return std::move(run_);
}

}  // namespace orrery
