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

// NCCL's log of one communicator (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING): the graphs that it found, in
// channels and GB/s, and its own table of latencies and bandwidths. A value; sim/calibrate/import_nccl_log.cpp reads
// it.
struct LoggedNccl {
  std::int64_t nodes = 1, ranks = 1;
  std::string version;  // "2.28.9+cuda13.0", "" if not logged
  // Channels of collectives and of NVLS; both 0: not logged.
  int collective_channels = 0, nvls_channels = 0;
  std::optional<NcclGraph> ring, tree, nvls;
  std::optional<NcclTable> table;
};

// Puts logged figures in the place of those that our port of the model found: graphs, channels, and the table of each
// collective that has a row; other collectives are computed from the graphs.
void apply(const LoggedNccl& logged, NcclModel& model);

struct NcclJob {
  std::int64_t minor = 28;  // the job runs NCCL 2.`minor`
  std::int64_t gpus = 1;
};

// The model of a group of which the i-th touched node holds members[i], of NCCL 2.`minor`, with the logged figures of
// groups like it.
NcclModel nccl_model(const Cluster& cluster, std::span<const int> members, const NcclJob& job,
                     const std::vector<LoggedNccl>& logged);

// An element of a profile's "nccl": {"ranks", "nodes", "version", "channels", "nvls_channels", "graphs": {"ring":
// {"channels", "intra_GBps", "inter_GBps", "intra", "inter", "plain_tree", "same_channels"}, ...}, "table": [{"kind",
// "algorithm", "protocol", "us", "GBps"}]}. Reading throws Error with file and key.
nlohmann::ordered_json json_of(const LoggedNccl& logged);
LoggedNccl logged_nccl_of(const JsonValue& entry);

// The path for a name in NCCL's log, such as "NVL" or "PIX"; nullopt for a name that the model does not know.
std::optional<NcclPath> find_path(std::string_view name);

}  // namespace orrery
