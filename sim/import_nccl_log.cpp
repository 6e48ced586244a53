// NCCL's own log: the graphs that its search found ("Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type
// NVL/PIX, sameChannels 1"), the channels of a communicator, and the tuner's table of latency (us) and bandwidth (GB/s
// of payload) by collective, algorithm and protocol. Lines of many processes may be mixed: each carries its thread.
#include <charconv>
#include <cmath>
#include <map>
#include <regex>
#include <sstream>

#include <fmt/format.h>

#include "models/error.h"
#include "sim/import.h"

namespace orrery {
namespace {

constexpr std::string_view kNcclInfo = "NCCL INFO ";

struct LoggedCollective {
  std::string_view text;
  CollectiveKind kind;
};
constexpr LoggedCollective kLoggedCollectives[] = {{"AllReduce", CollectiveKind::all_reduce},
                                                   {"AllGather", CollectiveKind::all_gather},
                                                   {"ReduceScatter", CollectiveKind::reduce_scatter},
                                                   {"Broadcast", CollectiveKind::broadcast},
                                                   {"Reduce", CollectiveKind::reduce}};
struct LoggedAlgorithm {
  std::string_view text;
  NcclAlgorithm algorithm;
};
constexpr LoggedAlgorithm kLoggedAlgorithms[] = {{"Tree", NcclAlgorithm::tree},
                                                 {"Ring", NcclAlgorithm::ring},
                                                 {"NVLS", NcclAlgorithm::nvls},
                                                 {"NVLSTree", NcclAlgorithm::nvls_tree},
                                                 {"PAT", NcclAlgorithm::pat}};
constexpr std::string_view kLoggedProtocols[] = {"LL", "LL128", "Simple"};

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

// "a | b | c |" in pieces, without the last one if it is empty.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(trimmed(cell));
  while (!cells.empty() && cells.back().empty()) cells.pop_back();
  return cells;
}

// What one thread has logged of the communicator that it sets up.
struct OpenCommunicator {
  LoggedNccl logged;
  bool sized = false;                   // ranks and nodes are known
  std::vector<std::string> algorithms;  // of the table's header: by group of protocols
  std::vector<std::string> protocols;
};

class NcclLogText {
 public:
  explicit NcclLogText(const std::string& path) : path_(path) {}

  Imported read(std::string_view text) {
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) {
      ++line_;
      const std::size_t at = line.find(kNcclInfo);
      if (at != std::string::npos) take(open_[thread_of(line.substr(0, at))], line.substr(at + kNcclInfo.size()));
    }
    for (auto& [thread, communicator] : open_) close(communicator);
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{}:{}: {}", path_, line_, what)); }

  // "host:pid:tid" of "[0] host:pid:tid [3] ".
  static std::string thread_of(const std::string& prefix) {
    std::istringstream in(prefix);
    for (std::string word; in >> word;) {
      if (std::count(word.begin(), word.end(), ':') == 2 && word.back() != ':') return word;
    }
    return prefix;
  }

  void take(OpenCommunicator& c, const std::string& message) {
    const std::string start = trimmed(message);
    if (start.starts_with("NCCL version "))
      result_.fingerprint.emplace("nccl", start.substr(13));
    else if (start.starts_with("Pattern "))
      graph(c, start);
    else if (start.starts_with("comm "))
      size(c, start);
    else if (start.find(" coll channels") != std::string::npos)
      channels(c, start);
    else if (start.find('|') != std::string::npos)
      table(c, start);
    else if (start.find("Init START") != std::string::npos || start.find("Init COMPLETE") != std::string::npos)
      close(c);
  }

  // The pattern's number is src/include/graph.h's: 1 to 3 trees, of which 3 is the plain one; 4 ring; 5 NVLS.
  void graph(OpenCommunicator& c, const std::string& text) {
    static const std::regex form(
        R"(Pattern (\d+), crossNic \d+, nChannels (\d+), bw ([\d.]+)/([\d.]+), type (\w+)/(\w+),.*sameChannels (\d))");
    std::smatch f;
    if (!std::regex_search(text, f, form)) fail("a line 'Pattern ...' of a form that is not known");
    const int pattern = std::stoi(f[1]);
    const auto intra = find_path(f[5].str()), inter = find_path(f[6].str());
    const int count = std::stoi(f[2]);
    if (pattern > 5 || count == 0 || !intra || !inter) return;  // CollNet, or not found
    auto& graph = pattern == 4 ? c.logged.ring : pattern == 5 ? c.logged.nvls : c.logged.tree;
    graph = NcclGraph{count, std::stod(f[3]), std::stod(f[4]), *intra, *inter, pattern == 3, f[7] == "1"};
  }

  static void size(OpenCommunicator& c, const std::string& text) {
    static const std::regex form(R"(nRanks (\d+) nNodes (\d+))");
    std::smatch f;
    if (!std::regex_search(text, f, form)) return;
    c.logged.ranks = std::stoll(f[1]);
    c.logged.nodes = std::stoll(f[2]);
    c.sized = true;
  }

  static void channels(OpenCommunicator& c, const std::string& text) {
    static const std::regex form(R"((\d+) coll channels.*?(\d+) nvls channels)"), old(R"((\d+) coll channels)");
    std::smatch f;
    const bool nvls = std::regex_search(text, f, form);
    if (!nvls && !std::regex_search(text, f, old)) return;
    c.logged.collective_channels = std::stoi(f[1]);
    c.logged.nvls_channels = nvls ? std::stoi(f[2]) : 0;
  }

  void table(OpenCommunicator& c, const std::string& text) {
    const std::vector<std::string> cells = cells_of(text);
    if (cells.size() < 2 || cells[0] == "Max NThreads" || cells[0].starts_with("threadThresholds")) return;
    if (cells[0] == "Algorithm" || cells[0] == "Protocol") {
      (cells[0] == "Algorithm" ? c.algorithms : c.protocols).assign(cells.begin() + 1, cells.end());
    } else if (cells[0] == "Latency/AlgBw") {  // before 2.19: both in one line
      old_header(c, cells);
    } else {
      for (const LoggedCollective& name : kLoggedCollectives) {
        if (cells[0] == name.text) row(c, name.kind, cells);
      }
    }
  }

  static void old_header(OpenCommunicator& c, const std::vector<std::string>& cells) {
    c.algorithms.clear();
    c.protocols.clear();
    for (std::size_t i = 1; i < cells.size(); ++i) {
      const std::size_t slash = cells[i].find('/');
      if ((i - 1) % kNcclProtocols == 0) c.algorithms.push_back(trimmed(cells[i].substr(0, slash)));
      c.protocols.push_back(trimmed(cells[i].substr(slash + 1)));
    }
  }

  void row(OpenCommunicator& c, CollectiveKind kind, const std::vector<std::string>& cells) {
    if (c.protocols.empty() || c.algorithms.empty()) fail("a row of the tuning table before its header");
    const std::size_t columns = c.algorithms.size() * kNcclProtocols;
    if (cells.size() != columns + 1)
      fail(fmt::format("a row of {} figures in a tuning table of {} columns", cells.size() - 1, columns));
    for (std::size_t i = 0; i < columns; ++i) {
      const NcclRow figures = figures_of(cells[i + 1]);
      if (figures.bandwidth_GBps <= 0) continue;
      cell(c, kind, c.algorithms[i / kNcclProtocols], c.protocols[i % c.protocols.size()], figures);
    }
  }

  // "  15.2/  43.6"; a way that is switched off has bandwidth 0.
  NcclRow figures_of(const std::string& text) const {
    const std::size_t slash = text.find('/');
    const std::string left = trimmed(text.substr(0, slash)),
                      right = slash < text.size() ? trimmed(text.substr(slash + 1)) : "";
    const auto number = [&](const std::string& word) {
      double value = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (word.empty() || error != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
        fail(fmt::format("'{}' is no latency/bandwidth of the tuning table", text));
      return value;
    };
    return {number(left), number(right)};
  }

  void cell(OpenCommunicator& c, CollectiveKind kind, const std::string& algorithm, const std::string& protocol,
            const NcclRow& figures) {
    for (const LoggedAlgorithm& a : kLoggedAlgorithms) {
      for (std::size_t p = 0; a.text == algorithm && p < std::size(kLoggedProtocols); ++p) {
        if (kLoggedProtocols[p] != protocol) continue;
        if (!c.logged.table) c.logged.table.emplace();
        (*c.logged.table)[static_cast<std::size_t>(kind)][static_cast<std::size_t>(a.algorithm)][p] = figures;
        return;
      }
    }
    ++result_.refused[algorithm + " is an algorithm that is not modelled"];
  }

  void close(OpenCommunicator& c) {
    const bool tells = c.logged.table || c.logged.ring;
    if (tells && !c.sized)
      ++result_.refused["a communicator whose 'nRanks ... nNodes ...' is not logged; add INIT to NCCL_DEBUG_SUBSYS"];
    else if (tells)
      keep(c.logged);
    c = {};
  }

  // Every rank logs the graphs, rank 0 alone the table: of one size, the log with the table is kept.
  void keep(const LoggedNccl& logged) {
    for (LoggedNccl& known : result_.nccl) {
      if (known.ranks != logged.ranks || known.nodes != logged.nodes) continue;
      if (!known.table && logged.table) known = logged;
      return;
    }
    result_.nccl.push_back(logged);
  }

  std::string path_;
  std::size_t line_ = 0;
  Imported result_;
  std::map<std::string, OpenCommunicator> open_;  // by thread
};

}  // namespace

Imported import_nccl_log(const std::string& path, std::string_view text) {
  Imported result = NcclLogText(path).read(text);
  for (LoggedNccl& n : result.nccl) n.version = result.fingerprint.count("nccl") > 0 ? result.fingerprint["nccl"] : "";
  return result;
}

}  // namespace orrery
