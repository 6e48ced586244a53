#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_value.h"
#include "models/cost/nccl/model.h"

namespace orrery {

// NCCL's log of one communicator (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING): the graphs that NCCL found, as
// numbers of channels and GB/s, and its own table of latencies and bandwidths. sim/calibrate/import_nccl_log.cpp parses
// the log, import_nccl_graphs.cpp the file of NCCL_GRAPH_DUMP_FILE, which has the graphs alone.
struct LoggedNccl {
  // The value of `nodes` for communicators of any number of nodes above one, of which `ranks` is that on each: NCCL's
  // file of graphs does not say how many there are.
  static constexpr std::int64_t kSeveralNodes = 0;
  std::int64_t nodes = 1, ranks = 1;
  std::string version;  // version of NCCL, "2.28.9+cuda13.0"; "" if the log does not state it
  // Numbers of channels of collectives and of NVLS; both are 0 if they were not logged.
  int collective_channels = 0, nvls_channels = 0;
  std::optional<NcclGraph> ring, tree, nvls;
  std::optional<NcclTable> table;
};

// Overwrites figures that Orrery's port of NCCL's model computed with logged figures: the graphs, the numbers of
// channels, and the table of each collective for which any row was logged. The tables of other collectives are computed
// from the logged graphs.
void apply(const LoggedNccl& logged, NcclModel& model);

struct NcclJob {
  std::int64_t minor = 28;  // minor version of the NCCL 2.x that the job runs
  std::int64_t gpus = 1;
};

// Returns the performance model of NCCL 2.`minor` for a communicator that has members[i] ranks on the i-th of its
// nodes, with the figures that NCCL logged for a communicator with the same numbers of nodes and ranks, if there is
// such a log; else with the graphs of one of several nodes with as many ranks on each.
NcclModel nccl_model(const Cluster& cluster, std::span<const int> members, const NcclJob& job,
                     const std::vector<LoggedNccl>& logged);

// These functions convert between a LoggedNccl and one element of the list "nccl" in a profile's JSON file: {"ranks",
// "nodes", "version", "channels", "nvls_channels", "graphs": {"ring": {"channels", "intra_GBps", "inter_GBps", "intra",
// "inter", "plain_tree", "same_channels"}, ...}, "table": [{"kind", "algorithm", "protocol", "us", "GBps"}]}.
// logged_nccl_of() throws Error with file and key if a value is missing or wrong.
nlohmann::ordered_json json_of(const LoggedNccl& logged);
LoggedNccl logged_nccl_of(const JsonValue& entry);

// Returns the type of path that has this name in NCCL's log, such as "NVL" or "PIX"; nullopt for a name that the model
// does not know.
std::optional<NcclPath> find_path(std::string_view name);

}  // namespace orrery
