#include "sim/launch/framework.h"

#include <algorithm>

#include "models/base/error.h"
#include "models/base/names.h"

namespace orrery {
namespace {

constexpr OptionRow kLauncherRows[] = {{"nnodes", "launch.nodes"},
                                       {"nproc_per_node", "launch.gpus_per_node"},
                                       {"num_nodes", "launch.nodes", {}, {}, true},
                                       {"nodes", "launch.nodes", {}, {}, true},
                                       {"N", "launch.nodes", {}, {}, true},
                                       {"num_gpus", "launch.gpus_per_node", {}, {}, true},
                                       {"gpus_per_node", "launch.gpus_per_node", {}, {}, true}};
constexpr std::string_view kLauncherIgnored[] = {"master_",
                                                 "rdzv",
                                                 "node_rank",
                                                 "hostfile",
                                                 "force_multi",
                                                 "job_name",
                                                 "J",
                                                 "output",
                                                 "error",
                                                 "time",
                                                 "partition",
                                                 "account",
                                                 "exclusive",
                                                 "mem",
                                                 "cpus_per",
                                                 "container",
                                                 "mpi",
                                                 "ntasks",
                                                 "standalone",
                                                 "log_dir",
                                                 "redirects",
                                                 "tee",
                                                 "local_ranks",
                                                 "qos",
                                                 "mail",
                                                 "p",
                                                 "A",
                                                 "t",
                                                 "o",
                                                 "e",
                                                 "c",
                                                 "m",
                                                 "u",
                                                 "l",
                                                 "gres",
                                                 "export",
                                                 "wait",
                                                 "kill_on",
                                                 "unbuffered",
                                                 "label",
                                                 "local_addr",
                                                 "role",
                                                 "max_restarts",
                                                 "monitor_interval",
                                                 "launcher",
                                                 "include",
                                                 "exclude",
                                                 "no_kill",
                                                 "overlap"};

const std::vector<std::pair<std::string_view, const Framework& (*)()>>& frameworks_by_name() {
  static const std::vector<std::pair<std::string_view, const Framework& (*)()>> rows = {{"megatron", megatron},
                                                                                        {"deepspeed", deepspeed},
                                                                                        {"torchtitan", torchtitan},
                                                                                        {"nanotron", nanotron},
                                                                                        {"fsdp", accelerate}};
  return rows;
}

}  // namespace

std::span<const OptionRow> launcher_rows() { return kLauncherRows; }
std::span<const std::string_view> launcher_ignored() { return kLauncherIgnored; }

std::vector<OptionRow> Framework::rows() const {
  std::vector<OptionRow> all;
  for (const auto& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

std::string Framework::without_prefix(const std::string& option) const {
  for (const std::string_view prefix : prefixes) {
    if (option.starts_with(prefix)) return option.substr(prefix.size());
  }
  return option;
}

const Framework* framework_of(const Settings& settings) {
  for (const Framework* known : {&accelerate(), &deepspeed(), &nanotron(), &torchtitan(), &nemo(), &megatron()}) {
    const Framework& framework = *known;
    for (const Setting& s : settings.all) {
      for (const std::string_view sign : framework.signs) {
        if (s.name == sign || (sign.ends_with(".") && s.name.starts_with(sign))) return &framework;
      }
    }
  }
  for (const Setting& v : settings.variables) {
    if (settings.refers && std::ranges::find(megatron().variables, std::string_view(v.name), &OptionWord::theirs) !=
                               megatron().variables.end())
      return &megatron();
  }
  return nullptr;
}

const Framework& find_framework(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [known, find] : frameworks_by_name()) {
    if (known == name) return find();
    names.push_back(known);
  }
  names.emplace_back("chakra");  // Chakra traces can be exported, but not as launch options (sim/chakra/)
  throw Error("--to: " + unknown_name("framework", name, names));
}

}  // namespace orrery
