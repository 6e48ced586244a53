#include "sim/summary/collect.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/summary/collector.h"
#include "sim/summary/event.h"
#include "sim/summary/kernel_name.h"

namespace orrery {
namespace {

// Collects the records of parts of a file, one after the other, and joins each with those of the whole file.
class CollectedPart : public PartReader {
 public:
  explicit CollectedPart(TraceCollector& file) : file_(file) {}

  void event(const TraceEvent& e) override { part_->collector.take(e); }
  bool pass_on() override {
    const bool joined = file_.join(part_->collector, part_->numbers);
    if (part_->names.names.size() > kMostNames) drop();
    return joined;
  }
  void drop() override { part_ = std::make_unique<Part>(); }

 private:
  // Most names that a reader keeps from part to part, so that the next part finds them classed. A trace has a few
  // thousand of them; where each event has a name of its own, every reader would keep the names of its share of a file.
  static constexpr std::size_t kMostNames = 100'000;

  struct Part {
    TraceNames names;
    TraceCollector collector{names};
    TraceCollector::Numbers numbers;
  };

  TraceCollector& file_;
  std::unique_ptr<Part> part_ = std::make_unique<Part>();
};

}  // namespace

std::uint32_t TraceNames::kernel(std::string_view name, std::string_view kind) {
  const std::uint32_t number = names.number_of(name);
  if (number >= classes.size() || !classes[number])
    set_class(number, class_of_kernel(demangled(unescaped(name)), kind));
  return number;
}

void TraceNames::set_class(std::uint32_t name, KernelClass kernel_class) {
  if (name >= classes.size()) classes.resize(names.size());
  if (classes[name]) return;
  classes[name] = kernel_class;
  classed.push_back(name);
}

TraceRecords collect(const std::string& path, TraceNames& names, const std::function<void()>& piece) {
  TraceCollector collector(names);
  TraceReaders readers;
  readers.event = [&](const TraceEvent& e) { collector.take(e); };
  readers.member = [&](std::string_view key, std::string_view value) { collector.member(key, value); };
  readers.part = [&] { return std::make_unique<CollectedPart>(collector); };
  readers.piece = piece;
  read_trace(path, readers);
  TraceRecords records = std::move(collector).records();
  if (records.events == 0) throw Error(path + ": holds no events; record the trace again");
  const bool kernels = std::ranges::any_of(records.processes, [](const ProcessRecord& p) { return p.has_kernels; });
  if (!kernels)
    throw Error(
        fmt::format("{}: none of its {} events is a kernel of a device; profile with ProfilerActivity.CUDA (ops "
                    "that a program times by itself are for orrery whatif)",
                    path, records.events));
  return records;
}

}  // namespace orrery
