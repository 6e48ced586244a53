// A Kineto trace: PyTorch's, whose kernels are told by the operator that launched them ("External id") and its shapes,
// or one of `orrery run --trace`, whose kernels say themselves what they are ("kind", "sizes"). Kernels that ran beside
// others are taken as they are.
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/error.h"
#include "sim/import.h"
#include "sim/pytorch_ops.h"
#include "sim/timing.h"

namespace orrery {
namespace {

struct TorchCollective {
  std::string_view text, kind;
};
// "Collective name" of record_param_comms.
constexpr TorchCollective kTorchCollectives[] = {{"allreduce", "all_reduce"},
                                                 {"allreduce_coalesced", "all_reduce"},
                                                 {"_allgather_base", "all_gather"},
                                                 {"all_gather", "all_gather"},
                                                 {"allgather", "all_gather"},
                                                 {"all_gather_into_tensor_coalesced", "all_gather"},
                                                 {"_reduce_scatter_base", "reduce_scatter"},
                                                 {"reduce_scatter", "reduce_scatter"},
                                                 {"reduce_scatter_tensor_coalesced", "reduce_scatter"},
                                                 {"broadcast", "broadcast"},
                                                 {"reduce", "reduce"},
                                                 {"all_to_all", "all_to_all"},
                                                 {"all_to_allv", "all_to_all"},
                                                 {"send", "message"},
                                                 {"recv", "message"}};

std::string_view torch_kind(std::string_view torch) {
  for (const TorchCollective& n : kTorchCollectives) {
    if (n.text == torch) return n.kind;
  }
  return "";
}

class KinetoTrace {
 public:
  KinetoTrace(const std::string& path, std::string_view text) : path_(path), root_(parse_json(path, text)) {}

  Imported read() {
    about();
    for (const nlohmann::json& e : root_.at("traceEvents")) note_operator(e);
    for (const auto& [id, op] : operators_) {
      if (!on_backward(*op)) add_product(*op, forward_);
    }
    std::vector<const nlohmann::json*> kernels;
    std::set<std::string> devices;
    for (const nlohmann::json& e : root_.at("traceEvents")) {
      if (e.value("cat", "") != "kernel" || e.value("ph", "") != "X") continue;
      kernels.push_back(&e);
      devices.insert(e.value("pid", nlohmann::json()).dump());
    }
    if (devices.size() > 1) node_gpus_ = 0;  // many ranks in one file: where they ran is not said
    for (const nlohmann::json* e : kernels) kernel(*e);
    for (const auto& [id, time] : times_) recognise_operator(id, time);
    return std::move(result_);
  }

 private:
  void refuse(const std::string& reason) { ++result_.refused[reason]; }

  void about() {
    const nlohmann::json devices = root_.value("deviceProperties", nlohmann::json::array());
    if (!devices.empty()) result_.fingerprint["device"] = devices[0].value("name", "");
    node_gpus_ = std::ssize(devices);
    const nlohmann::json job = root_.value("distributedInfo", nlohmann::json::object());
    if (job.contains("nccl_version")) result_.fingerprint["nccl"] = job.at("nccl_version").get<std::string>();
  }

  // What launched kernels, and which threads autograd runs on.
  void note_operator(const nlohmann::json& e) {
    const std::string name = e.value("name", ""), category = e.value("cat", "");
    if (name == "process_labels" && e.at("args").value("labels", "") == "simulated")
      throw Error(path_ + ": is the timeline of a prediction; give one that was measured (orrery run --trace)");
    if (category != "cpu_op") return;
    if (name.starts_with("autograd::engine::evaluate_function")) autograd_.insert(thread_of(e));
    const nlohmann::json args = e.value("args", nlohmann::json::object());
    if (args.contains("External id")) operators_[args.at("External id").get<std::int64_t>()] = &e;
  }

  static std::pair<std::string, std::string> thread_of(const nlohmann::json& e) {
    return {e.value("pid", nlohmann::json()).dump(), e.value("tid", nlohmann::json()).dump()};
  }
  bool on_backward(const nlohmann::json& op) const { return autograd_.count(thread_of(op)) > 0; }

  Seconds duration(const nlohmann::json& e) const {
    const nlohmann::json dur = e.value("dur", nlohmann::json());
    const std::string name = e.value("name", "");
    if (!dur.is_number() || !std::isfinite(dur.get<double>()))
      throw Error(fmt::format("{}: the kernel '{}' has no duration; record the trace again", path_, name));
    return dur.get<double>() * kMicrosecond;
  }

  void kernel(const nlohmann::json& e) {
    const Seconds time = duration(e);
    const nlohmann::json args = e.value("args", nlohmann::json::object());
    if (args.contains("Collective name"))
      collective(args, time, e.value("pid", nlohmann::json()).dump());
    else if (args.contains("kind"))
      own(args, time);
    else if (args.contains("External id"))
      times_[args.at("External id").get<std::int64_t>()] += time;  // an operator may launch several
    else
      refuse("kernels that do not say which operator launched them");
  }

  void own(const nlohmann::json& args, Seconds time) {
    WorkShape shape{args.at("kind").get<std::string>(), args.at("sizes").get<std::vector<double>>(),
                    args.at("amount").get<double>()};
    if (time <= 0 || shape.amount <= 0) return refuse("kernels that take no time or do nothing");
    result_.ops.push_back({std::move(shape), time});
  }

  void recognise_operator(std::int64_t id, Seconds time) {
    const auto found = operators_.find(id);
    if (found == operators_.end()) return refuse("kernels that do not say which operator launched them");
    const Recognised what = recognise(*found->second, on_backward(*found->second), forward_);
    if (const auto* reason = std::get_if<std::string>(&what)) return refuse(*reason);
    if (time > 0) result_.ops.push_back({std::get<WorkShape>(what), time});
  }

  // The n-th of its name in its group on every rank is the same collective.
  void collective(const nlohmann::json& args, Seconds time, const std::string& device) {
    const auto torch = args.at("Collective name").get<std::string>();
    TransferRow row{std::string(torch_kind(torch)), args.value("Group size", std::int64_t{0})};
    const Bytes width = element_bytes(args.value("dtype", ""));
    if (row.kind.empty() || width == 0) return refuse("collectives of a name or type that is not known");
    const std::int64_t in = args.value("In msg nelems", std::int64_t{0}),
                       out = args.value("Out msg nelems", std::int64_t{0});
    row.bytes = std::max(in, out) * width;
    if (row.bytes <= 0 || time <= 0 || row.ranks < 2) return refuse("collectives of one rank, or of no bytes");
    const std::string members = args.value("Process Group Ranks", args.value("Process Group Name", ""));
    std::string group = row.kind + ' ' + members;
    row.nodes = nodes_of(members);
    if (row.kind == "message") {  // between two of the group
      const std::string ends = fmt::format("[{}, {}]", args.value("Src Rank", nlohmann::json()).dump(),
                                           args.value("Dst Rank", nlohmann::json()).dump());
      row.ranks = 2;
      row.nodes = nodes_of(ends);
      group += ends;
    }
    row.seconds = time;
    result_.ends.push_back({fmt::format("{} {}", group, count_[{device, group}]++), row});
  }

  // "[0, 1, 2, 3]" over nodes of as many GPUs as the trace names; 0: not told.
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
  nlohmann::json root_;
  std::int64_t node_gpus_ = 0;
  Imported result_;
  std::map<std::int64_t, const nlohmann::json*> operators_;  // by external id
  std::set<std::pair<std::string, std::string>> autograd_;   // threads
  Products forward_;
  std::map<std::int64_t, Seconds> times_;                              // of an operator's kernels, by external id
  std::map<std::pair<std::string, std::string>, std::int64_t> count_;  // of collectives, by device and group
};

}  // namespace

Imported import_kineto(const std::string& path, std::string_view text) try {
  return KinetoTrace(path, text).read();
} catch (const nlohmann::json::exception& e) {
  throw Error(fmt::format("{}: is no Kineto trace ({}); record it with torch.profiler", path, e.what()));
}

}  // namespace orrery
