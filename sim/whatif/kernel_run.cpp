#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/export/pytorch_ops.h"
#include "sim/summary/kernel_class.h"
#include "sim/summary/kernel_name.h"
#include "sim/whatif/run_events.h"

namespace orrery {
namespace {

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace

// Returns how a rank's transfer kernel is named and grouped. The n-th collective that a rank runs in a process group
// belongs to the same transfer as the n-th of every other rank of the group, and so does the n-th message from one rank
// to another. A kernel that names no group is a transfer of its rank alone (key "").
KernelRun::Call KernelRun::call_of(std::int32_t worker, const std::string& arguments) {
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
  if (group.empty()) return {"", shown, name == "send"};
  const std::int64_t number = seen_[fmt::format("{} in {}", worker, group)]++;
  return {fmt::format("{} {}", group, number), shown, name == "send"};
}

void KernelRun::add(const Kernel& kernel) {
  const auto worker = workers_.try_emplace(kernel.worker, static_cast<std::int32_t>(workers_.size())).first->second;
  if (static_cast<std::size_t>(worker) == run_.workers.size()) run_.workers.push_back(kernel.worker);
  const std::int32_t lane = lanes_.try_emplace(kernel.lane, static_cast<std::int32_t>(lanes_.size())).first->second;
  MeasuredOp o{.worker = worker, .lane = lane, .step = kernel.step};
  o.begin = kernel.begin;
  o.end = kernel.begin + kernel.time;
  std::string work = kernel.name;
  if (const Call call = kernel.arguments.empty() ? Call{} : call_of(worker, kernel.arguments); !call.name.empty()) {
    o.op = run_.op(call.name, true);
    if (!call.key.empty())
      o.group = groups_.try_emplace(call.key, static_cast<std::int64_t>(groups_.size())).first->second;
    o.aside = call.sends;
    work = call.name;
  } else {
    const KernelClass kind = class_of_kernel(kernel.name, kernel.kind);
    o.op = run_.op(name_of(kind), kind == KernelClass::collective);
  }
  const std::int64_t number = seen_[fmt::format("{} {} {}", worker, kernel.step, work)]++;
  o.pool =
      pools_.try_emplace(fmt::format("{} {}", work, number), static_cast<std::uint32_t>(pools_.size())).first->second;
  run_.operations.push_back(o);
}

}  // namespace orrery
