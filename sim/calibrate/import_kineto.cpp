// Reads a trace in the format of Kineto, PyTorch's profiler. In a trace from PyTorch, kernels are recognised by the
// operator that launched them and the shapes of the operator's inputs; in one from `orrery run --trace`, kernels name
// their kind and sizes ("kind", "sizes"). Times of kernels that ran at the same time as others are not corrected for
// the slow-down.
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/json_value.h"
#include "models/base/names.h"
#include "models/base/sensible.h"
#include "sim/calibrate/import.h"
#include "sim/calibrate/kineto_operators.h"
#include "sim/engine/timing.h"
#include "sim/summary/event.h"
#include "sim/summary/kernel_class.h"
#include "sim/summary/kernel_name.h"

namespace orrery {
namespace {

class KinetoTrace {
 public:
  KinetoTrace(const std::string& path, std::string_view text)
      : path_(path), file_(parse_json(path, text)), root_(file_, path, "record it with torch.profiler") {}

  Imported read() {
    about();
    const std::vector<JsonValue> events = root_.at("traceEvents").items();
    for (const JsonValue& e : events) refuse_prediction(e);
    const KinetoOperators operators(events);
    for (const std::size_t op : operators.operators()) {
      if (!operators.place_of(op).backward) add_product(events[op].raw(), forward_);
    }
    std::vector<std::size_t> kernels;
    std::set<std::string> devices;
    for (std::size_t e = 0; e < events.size(); ++e) {
      if (event_sort_of(events[e].text_or("cat", "")) != EventSort::kernel || events[e].text_or("ph", "") != "X")
        continue;
      kernels.push_back(e);
      devices.insert(dump_of(events[e], "pid"));
    }
    // The number of GPUs per node stays unknown, because a file with several ranks does not say on which nodes they
    // are.
    if (devices.size() > 1) node_gpus_ = 0;
    for (const std::size_t e : kernels) kernel(events[e], operators.of_kernel(e));
    for (const auto& [op, sum] : sums_) recognise_operator(events[op].raw(), operators.place_of(op), sum);
    return std::move(result_);
  }

 private:
  void refuse(const std::string& reason) { ++result_.refused[reason]; }

  void about() {
    if (const auto devices = root_.find("deviceProperties")) {
      const std::vector<JsonValue> list = devices->items();
      if (!list.empty()) result_.fingerprint["device"] = list[0].text_or("name", "");
      node_gpus_ = std::ssize(list);
    }
    const auto job = root_.find("distributedInfo");
    if (const auto version = job ? job->find("nccl_version") : std::nullopt)
      result_.fingerprint["nccl"] = version->text();
  }

  void refuse_prediction(const JsonValue& e) const {
    const auto args = e.find("args");
    if (e.text_or("name", "") == "process_labels" && args && args->text_or("labels", "") == "simulated")
      throw Error(path_ + ": is the timeline of a prediction; give one that was measured (orrery run --trace)");
  }

  static std::string dump_of(const JsonValue& e, const char* key) {
    const auto found = e.find(key);
    return found ? found->raw().dump() : "null";
  }

  Seconds duration(const JsonValue& e) const {
    const auto dur = e.find("dur");
    if (!dur || !dur->is_number())
      throw Error(printable(fmt::format("{}: the kernel '{}' has no duration; record the trace again", path_,
                                        e.text_or("name", "").substr(0, sensible::kLongestWord))));
    return dur->number(-sensible::kMostMicroseconds, sensible::kMostMicroseconds) * kMicrosecond;
  }

  // The kernels of one operator.
  struct KernelSum {
    Seconds time = 0;
    bool tf32 = false;  // whether one of them rounds operands to TF32
  };

  // Adds a kernel. op: index of the event of its operator, nullopt if not known.
  void kernel(const JsonValue& e, std::optional<std::size_t> op) {
    const Seconds time = duration(e);
    const auto args = e.find("args");
    if (args && args->find("Collective name")) return collective(*args, time, dump_of(e, "pid"));
    const std::string name = demangled(e.text_or("name", ""));
    if (class_of_kernel(name) == KernelClass::collective && !(args && args->find("sizes")))
      return refuse(named(name) + ": collectives that do not say what they move");
    result_.kernel_time += std::max(0.0, time);
    if (args && args->find("sizes")) return own(*args, time);  // kernels of ROCm have a "kind" too
    if (!op) return refuse(named(name) + ": kernels that do not say which operator launched them");
    KernelSum& sum = sums_[*op];
    sum.time += time;
    sum.tf32 = sum.tf32 || rounds_to_tf32(name);
  }

  static std::string named(const std::string& kernel) {
    return printable(short_kernel_name(kernel).substr(0, sensible::kLongestWord));
  }

  // Whether a kernel's name says that its products of 32 bits are those of TF32: it names that type, or the tensor
  // cores' instruction for it, whose tiles are 16 x 8 x 8 or 16 x 8 x 4 (PTX ISA, mma), behind CUTLASS's letter for
  // sums in fp32.
  static bool rounds_to_tf32(const std::string& name) {
    return name.find("tf32") != std::string::npos || name.find("s1688gemm") != std::string::npos ||
           name.find("s1684gemm") != std::string::npos;
  }

  void own(const JsonValue& args, Seconds time) {
    WorkShape shape{args.at("kind").text(), args.at("sizes").numbers(0, sensible::kMostSize),
                    args.at("amount").number(0, sensible::kMostAmount)};
    if (time <= 0 || shape.amount <= 0) return refuse("kernels that take no time or do nothing");
    const std::string_view precision = shape.kind.ends_with("fp32") ? "fp32" : "bf16";
    take(std::move(shape), time, precision);
  }

  void recognise_operator(const nlohmann::json& op, const OperatorPlace& place, const KernelSum& sum) {
    const Recognised what = recognise(op, place, forward_);
    if (const auto* reason = std::get_if<std::string>(&what)) return refuse(*reason);
    const std::string_view precision = precision_of(op);
    if (sum.time > 0) take(std::get<WorkShape>(what), sum.time, precision == "fp32" && sum.tf32 ? "tf32" : precision);
  }

  void take(WorkShape shape, Seconds time, std::string_view precision) {
    result_.ops.push_back({std::move(shape), time, std::string(precision)});
    result_.taken_time += time;
  }

  // Records a collective. The n-th collective of one name in one process group is the same collective on every rank.
  void collective(const JsonValue& args, Seconds time, const std::string& device) {
    TransferRow row{std::string(collective_of_torch(args.at("Collective name").text())),
                    args.whole_or("Group size", 0, 0, sensible::kMostMembers)};
    const Bytes width = element_bytes(args.text_or("dtype", ""));
    if (row.kind.empty() || width == 0) return refuse("collectives of a name or type that is not known");
    row.bytes = std::max(args.whole_or("In msg nelems", 0, 0, sensible::kMostElements),
                         args.whole_or("Out msg nelems", 0, 0, sensible::kMostElements)) *
                width;
    if (row.bytes <= 0 || time <= 0 || row.ranks < 2) return refuse("collectives of one rank, or of no bytes");
    const std::string members = args.text_or("Process Group Ranks", args.text_or("Process Group Name", ""));
    std::string group = row.kind + ' ' + members;
    row.nodes = nodes_of(members);
    if (row.kind == "message") {  // a message is between two ranks, whatever the size of the group
      const std::string ends = fmt::format("[{}, {}]", dump_of(args, "Src Rank"), dump_of(args, "Dst Rank"));
      row.ranks = 2;
      row.nodes = nodes_of(ends);
      group += ends;
    }
    row.seconds = time;
    result_.ends.push_back({fmt::format("{} {}", group, count_[{device, group}]++), row});
  }

  // The number of nodes that the listed ranks (a text such as "[0, 1, 2, 3]") occupy, by the number of GPUs per node in
  // the trace; 0: not known.
  std::int64_t nodes_of(const std::string& members) const {
    const nlohmann::json list = nlohmann::json::parse(members, nullptr, false);
    if (node_gpus_ < 2 || !list.is_array()) return 0;
    std::set<std::int64_t> nodes;
    for (const nlohmann::json& r : list) {
      if (!r.is_number_integer()) return 0;
      nodes.insert(r.get<std::int64_t>() / node_gpus_);
    }
    return std::ssize(nodes);
  }

  std::string path_;
  nlohmann::json file_;
  JsonValue root_;
  std::int64_t node_gpus_ = 0;
  Imported result_;
  Products forward_;
  std::map<std::size_t, KernelSum> sums_;  // kernels of each operator, by the index of its event

  // For each device and process group: the number of collectives read so far.
  std::map<std::pair<std::string, std::string>, std::int64_t> count_;
};

}  // namespace

Imported import_kineto(const std::string& path, std::string_view text) { return KinetoTrace(path, text).read(); }

}  // namespace orrery
