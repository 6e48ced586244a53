// Reads a trace in the format of Kineto, PyTorch's profiler. In a trace from PyTorch, kernels are recognised by the
// operator that launched them ("External id") and the shapes of the operator's inputs; in one from `orrery run
// --trace`, kernels name their kind and sizes ("kind", "sizes"). Times of kernels that ran at the same time as others
// are not corrected for the slow-down.
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/json_value.h"
#include "models/base/names.h"
#include "models/base/sensible.h"
#include "sim/calibrate/import.h"
#include "sim/engine/timing.h"
#include "sim/export/pytorch_ops.h"

namespace orrery {
namespace {

class KinetoTrace {
 public:
  KinetoTrace(const std::string& path, std::string_view text)
      : path_(path), file_(parse_json(path, text)), root_(file_, path, "record it with torch.profiler") {}

  Imported read() {
    about();
    const std::vector<JsonValue> events = root_.at("traceEvents").items();
    for (const JsonValue& e : events) note_operator(e);
    for (const auto& [id, op] : operators_) {
      if (!on_backward(*op)) add_product(op->raw(), forward_);
    }
    std::vector<const JsonValue*> kernels;
    std::set<std::string> devices;
    for (const JsonValue& e : events) {
      if (e.text_or("cat", "") != "kernel" || e.text_or("ph", "") != "X") continue;
      kernels.push_back(&e);
      devices.insert(dump_of(e, "pid"));
    }
    // The number of GPUs per node stays unknown, because a file with several ranks does not say on which nodes they
    // are.
    if (devices.size() > 1) node_gpus_ = 0;
    for (const JsonValue* e : kernels) kernel(*e);
    for (const auto& [id, time] : times_) recognise_operator(id, time);
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

  // Records the operators that launched kernels, and the threads that autograd runs on.
  void note_operator(const JsonValue& e) {
    const std::string name = e.text_or("name", ""), category = e.text_or("cat", "");
    const auto args = e.find("args");
    if (name == "process_labels" && args && args->text_or("labels", "") == "simulated")
      throw Error(path_ + ": is the timeline of a prediction; give one that was measured (orrery run --trace)");
    if (category != "cpu_op") return;
    if (name.starts_with("autograd::engine::evaluate_function")) autograd_.insert(thread_of(e));
    if (const auto id = args ? args->find("External id") : std::nullopt) operators_[id_of(*id)] = &e;
  }

  static std::int64_t id_of(const JsonValue& id) { return id.whole(INT64_MIN, INT64_MAX); }
  static std::string dump_of(const JsonValue& e, const char* key) {
    const auto found = e.find(key);
    return found ? found->raw().dump() : "null";
  }
  static std::pair<std::string, std::string> thread_of(const JsonValue& e) {
    return {dump_of(e, "pid"), dump_of(e, "tid")};
  }
  bool on_backward(const JsonValue& op) const { return autograd_.count(thread_of(op)) > 0; }

  Seconds duration(const JsonValue& e) const {
    const auto dur = e.find("dur");
    if (!dur || !dur->is_number())
      throw Error(printable(fmt::format("{}: the kernel '{}' has no duration; record the trace again", path_,
                                        e.text_or("name", "").substr(0, sensible::kLongestWord))));
    return dur->number(-sensible::kMostMicroseconds, sensible::kMostMicroseconds) * kMicrosecond;
  }

  void kernel(const JsonValue& e) {
    const Seconds time = duration(e);
    const auto args = e.find("args");
    if (args && args->find("Collective name")) return collective(*args, time, dump_of(e, "pid"));
    result_.kernel_time += std::max(0.0, time);
    if (args && args->find("kind"))
      own(*args, time);
    else if (const auto id = args ? args->find("External id") : std::nullopt)
      times_[id_of(*id)] += time;  // a sum, because an operator may launch several kernels
    else
      refuse("kernels that do not say which operator launched them");
  }

  void own(const JsonValue& args, Seconds time) {
    WorkShape shape{args.at("kind").text(), args.at("sizes").numbers(0, sensible::kMostSize),
                    args.at("amount").number(0, sensible::kMostAmount)};
    if (time <= 0 || shape.amount <= 0) return refuse("kernels that take no time or do nothing");
    take(std::move(shape), time);
  }

  void recognise_operator(std::int64_t id, Seconds time) {
    const auto found = operators_.find(id);
    if (found == operators_.end()) return refuse("kernels that do not say which operator launched them");
    const Recognised what = recognise(found->second->raw(), on_backward(*found->second), forward_);
    if (const auto* reason = std::get_if<std::string>(&what)) return refuse(*reason);
    if (time > 0) take(std::get<WorkShape>(what), time);
  }

  void take(WorkShape shape, Seconds time) {
    result_.ops.push_back({std::move(shape), time});
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
  std::map<std::int64_t, const JsonValue*> operators_;      // operators by the trace's external id
  std::set<std::pair<std::string, std::string>> autograd_;  // threads that autograd runs on
  Products forward_;
  std::map<std::int64_t, Seconds> times_;  // kernel time of each operator, by external id

  // For each device and process group: the number of collectives read so far.
  std::map<std::pair<std::string, std::string>, std::int64_t> count_;
};

}  // namespace

Imported import_kineto(const std::string& path, std::string_view text) { return KinetoTrace(path, text).read(); }

}  // namespace orrery
