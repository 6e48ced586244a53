// Joins the records of parts of a trace file, so that threads can collect parts at the same time.
#include <algorithm>
#include <utility>

#include "sim/summary/collector.h"

namespace orrery {

// Limits of the whole file count what each part adds, and the class of a kernel's name is the one of its first kernel
// in the file. Where a part goes beyond a limit, or classed a name otherwise, its events must be taken one by one, and
// so are those of the rest of the file (EventParts): a damaged file is read by one thread.
bool TraceCollector::can_join(const TraceCollector& part, const Numbers& numbers) const {
  const auto categories = std::ranges::count_if(
      part.records_.left_out, [&](const auto& entry) { return !records_.left_out.contains(entry.first); });
  std::size_t processes = records_.processes.size();
  for (std::size_t i = numbers.processes.size(); i < part.pids_.size(); ++i)
    processes += !pids_.find(part.pids_.text(static_cast<std::uint32_t>(i)));
  if (records_.left_out.size() + static_cast<std::size_t>(categories) > kMostCategories || processes > kMostProcesses)
    return false;
  for (std::size_t n = numbers.classed; n < part.names_.classed.size(); ++n) {
    const std::uint32_t i = part.names_.classed[n];
    const auto known =
        i < numbers.names.size() ? std::optional(numbers.names[i]) : names_.names.find(part.names_.names.text(i));
    if (!known || *known >= names_.classes.size() || !names_.classes[*known]) continue;
    if (*names_.classes[*known] != *part.names_.classes[i]) return false;
  }
  return true;
}

void TraceCollector::join_names(const TraceCollector& part, Numbers& numbers) {
  const TraceNames& theirs = part.names_;
  for (std::size_t i = numbers.names.size(); i < theirs.names.size(); ++i)
    numbers.names.push_back(names_.names.number_of(theirs.names.text(static_cast<std::uint32_t>(i))));
  for (; numbers.classed < theirs.classed.size(); ++numbers.classed) {
    const std::uint32_t name = theirs.classed[numbers.classed];
    names_.set_class(numbers.names[name], theirs.class_of(name));
  }
  for (std::size_t i = numbers.threads.size(); i < part.threads_.size(); ++i)
    numbers.threads.push_back(threads_.number_of(part.threads_.text(static_cast<std::uint32_t>(i))));
}

void TraceCollector::join_processes(TraceCollector& part, Numbers& numbers) {
  for (std::size_t i = numbers.processes.size(); i < part.pids_.size(); ++i)
    numbers.processes.push_back(process_of(part.pids_.text(static_cast<std::uint32_t>(i))));
  for (std::size_t i = 0; i < part.records_.processes.size(); ++i) {
    ProcessRecord& theirs = part.records_.processes[i];
    ProcessRecord& ours = records_.processes[numbers.processes[i]];
    if (!theirs.name.empty()) ours.name = std::exchange(theirs.name, {});
    if (!theirs.labels.empty()) ours.labels = std::exchange(theirs.labels, {});
    ours.has_kernels = ours.has_kernels || theirs.has_kernels;
    ours.steps.insert(ours.steps.end(), theirs.steps.begin(), theirs.steps.end());
    theirs.steps.clear();
    ours.allocated = std::max(ours.allocated, theirs.allocated);
    ours.reserved = std::max(ours.reserved, theirs.reserved);
  }
}

bool TraceCollector::join(TraceCollector& part, Numbers& numbers) {
  if (!can_join(part, numbers)) return false;
  join_names(part, numbers);
  join_processes(part, numbers);
  TraceRecords& theirs = part.records_;
  records_.events += std::exchange(theirs.events, 0);
  records_.untimed += std::exchange(theirs.untimed, 0);
  for (const auto& [what, count] : theirs.left_out) records_.left_out[what] += count;
  for (const auto& [device, peaks] : theirs.memory) {
    auto& [allocated, reserved] = records_.memory[device];
    allocated = std::max(allocated, peaks.first);
    reserved = std::max(reserved, peaks.second);
  }
  for (KernelRecord k : theirs.kernels) {
    k.device = static_cast<std::uint16_t>(numbers.processes[k.device]);
    if (!k.waits) k.name = numbers.names[k.name];
    if (k.tie == Tie::own) k.operation = numbers.names[k.operation];
    records_.kernels.push_back(k);
  }
  for (LaunchRecord l : theirs.launches) {
    l.thread = numbers.threads[l.thread];
    records_.launches.push_back(l);
  }
  for (OperatorRecord o : theirs.operators) {
    o.thread = numbers.threads[o.thread];
    o.name = numbers.names[o.name];
    records_.operators.push_back(o);
  }
  theirs.kernels.clear();
  theirs.launches.clear();
  theirs.operators.clear();
  theirs.left_out.clear();
  theirs.memory.clear();
  part.last_left_out_ = nullptr;
  return true;
}

}  // namespace orrery
