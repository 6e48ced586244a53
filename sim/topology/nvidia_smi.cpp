// Reads the matrix that nvidia-smi topo -m prints: a row and a column for each GPU and NIC of a node. A cell says how
// the two reach each other: NV# over # NVLinks, PIX over one PCIe switch, PXB over several, PHB, NODE or SYS through
// hosts.
#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "sim/topology/lines.h"

namespace orrery {
namespace {

// More GPUs than any node or NVLink domain has.
constexpr std::int64_t kMostGpus = 4096;

struct MatrixRow {
  std::string name;
  std::vector<std::string_view> cells;
};

bool is_gpu(std::string_view name) { return name.starts_with("GPU") && name.size() > 3; }
bool is_nic(std::string_view name) {
  return (name.starts_with("NIC") && name.size() > 3) || name.starts_with("mlx") || name.starts_with("bnxt") ||
         name.starts_with("rdma");
}

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

bool is_cell(std::string_view word) {
  constexpr std::string_view kCells[] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  return word.starts_with("NV") || std::ranges::find(kCells, word) != std::end(kCells);
}

// Returns the size of the largest set of GPUs that NVLinks join; 0 if there are none.
std::int64_t largest_nvlink_domain(const std::vector<MatrixRow>& gpus) {
  std::vector<std::size_t> domain(gpus.size());
  std::iota(domain.begin(), domain.end(), std::size_t{0});
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::size_t j = 0; j < std::min(gpus.size(), gpus[i].cells.size()); ++j) {
      if (!gpus[i].cells[j].starts_with("NV") || domain[i] == domain[j]) continue;
      std::ranges::replace(domain, domain[j], domain[i]);
    }
  }
  std::int64_t most = 0;
  for (const std::size_t d : domain) most = std::max<std::int64_t>(most, std::ranges::count(domain, d));
  return most > 1 ? most : 0;
}

// Returns the number of GPUs that are nearest to a NIC, below the same PCIe switch, or else below the same switches.
std::int64_t gpus_beside(const MatrixRow& nic, std::ptrdiff_t gpus) {
  const auto end = nic.cells.begin() + std::min(std::ssize(nic.cells), gpus);
  const std::int64_t below = std::count(nic.cells.begin(), end, "PIX");
  return below > 0 ? below : std::count(nic.cells.begin(), end, "PXB");
}

}  // namespace

ClusterFacts nvidia_smi_topology(std::string_view text, const std::string& path) {
  std::vector<std::string> lines;
  while (!text.empty()) lines.push_back(without_escapes(take_line(text)));
  std::vector<MatrixRow> gpus, nics;
  for (const std::string& line : lines) {
    std::vector<std::string_view> words = words_of(line);
    if (words.size() < 2 || !is_cell(words[1])) continue;  // a row has a cell after its name
    const std::string name(words.front());
    words.erase(words.begin());
    if (is_gpu(name)) gpus.push_back({name, words});
    if (is_nic(name)) nics.push_back({name, words});
  }
  if (gpus.empty()) throw Error(fmt::format("{}: has no row of a GPU; give what nvidia-smi topo -m prints", path));
  if (std::ssize(gpus) > kMostGpus)
    throw Error(
        fmt::format("{}: has {} rows of GPUs; give what nvidia-smi topo -m prints of one node", path, gpus.size()));
  ClusterFacts facts;
  facts.gpus_per_node = std::ssize(gpus);
  facts.nvlink_domain = largest_nvlink_domain(gpus);
  std::int64_t near_nics = 0, shared = 1;
  for (const MatrixRow& nic : nics) {
    const std::int64_t beside = gpus_beside(nic, std::ssize(gpus));
    near_nics += beside > 0 ? 1 : 0;
    shared = std::max(shared, beside);
  }
  if (near_nics > 0) facts.gpus_per_pcie_switch = shared;
  if (!nics.empty()) facts.nics = near_nics > 0 ? near_nics : std::ssize(nics);
  if (near_nics > 0 && near_nics < std::ssize(nics))
    facts.remarks.push_back(fmt::format("{}: {} of {} NICs are near a GPU; the others are taken to serve storage", path,
                                        near_nics, nics.size()));
  return facts;
}

}  // namespace orrery
