// Reads the matrix that nvidia-smi topo -m prints: a row and a column for each GPU and NIC of a node. A cell says how
// the two reach each other: NV# over # NVLinks, PIX over one PCIe switch, PXB over several, PHB, NODE or SYS through
// hosts.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "sim/topology/lines.h"

namespace orrery {
namespace {

struct Row {
  std::string name;
  std::vector<std::string_view> cells;
};

bool is_gpu(std::string_view name) { return name.starts_with("GPU") && name.size() > 3; }
bool is_nic(std::string_view name) {
  return (name.starts_with("NIC") && name.size() > 3) || name.starts_with("mlx") || name.starts_with("bnxt") ||
         name.starts_with("rdma");
}
bool is_near(std::string_view cell) { return cell == "PIX" || cell == "PXB"; }

// Terminals underline the header with escape sequences, which a file of the output keeps.
std::string without_escapes(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && line[i] != 'm') ++i;
    } else {
      plain += line[i];
    }
  }
  return plain;
}

std::int64_t longest_nvlink_row(const std::vector<Row>& gpus, std::size_t columns) {
  std::ptrdiff_t most = 0;
  for (const Row& row : gpus) {
    const auto end = row.cells.begin() + static_cast<std::ptrdiff_t>(std::min(columns, row.cells.size()));
    most = std::max(most, std::count_if(row.cells.begin(), end, [](auto cell) { return cell.starts_with("NV"); }));
  }
  return most == 0 ? 0 : most + 1;
}

}  // namespace

ClusterFacts nvidia_smi_topology(std::string_view text, const std::string& path) {
  std::vector<std::string> lines;
  while (!text.empty()) lines.push_back(without_escapes(take_line(text)));
  std::vector<Row> gpus, nics;
  for (const std::string& line : lines) {
    std::vector<std::string_view> words = words_of(line);
    // The header has the same names in its first words; a row has a cell after its name.
    if (words.size() < 2 || is_gpu(words[1]) || is_nic(words[1]) || words[0].ends_with(":")) continue;
    const std::string name(words.front());
    words.erase(words.begin());
    if (is_gpu(name)) gpus.push_back({name, words});
    if (is_nic(name)) nics.push_back({name, words});
  }
  if (gpus.empty()) throw Error(fmt::format("{}: has no row of a GPU; give what nvidia-smi topo -m prints", path));
  ClusterFacts facts;
  facts.gpus_per_node = std::ssize(gpus);
  facts.nvlink_domain = longest_nvlink_row(gpus, gpus.size());
  std::int64_t near_nics = 0, shared = 1;
  for (const Row& nic : nics) {
    const auto end = nic.cells.begin() + std::min(std::ssize(nic.cells), std::ssize(gpus));
    near_nics += std::any_of(nic.cells.begin(), end, is_near) ? 1 : 0;
    shared = std::max<std::int64_t>(shared, std::count(nic.cells.begin(), end, "PIX"));
  }
  if (near_nics > 0) facts.gpus_per_pcie_switch = shared;
  if (!nics.empty()) facts.nics = near_nics > 0 ? near_nics : std::ssize(nics);
  if (near_nics > 0 && near_nics < std::ssize(nics))
    facts.remarks.push_back(fmt::format("{}: {} of {} NICs are near a GPU; the others are taken to serve storage", path,
                                        near_nics, nics.size()));
  return facts;
}

}  // namespace orrery
