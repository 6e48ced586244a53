// Reads NCCL's own log: the graphs that NCCL's topology search found ("Pattern 4, crossNic 0, nChannels 12, bw
// 30.000000/30.000000, type NVL/PIX, sameChannels 1"), the channels of a communicator, and the tuner's table of latency
// (us) and bandwidth (GB/s of payload) by collective, algorithm and protocol. Lines of many processes may be mixed:
// each line names its process and thread.
#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/sensible.h"
#include "sim/calibrate/import.h"
#include "sim/calibrate/line_scanner.h"

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

// Splits a row "a | b | c |" of a table into the texts between the bars; an empty last text is left out.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = line.find('|');
    cells.push_back(trimmed(line.substr(0, end)));
    line.remove_prefix(std::min(line.size(), end == std::string_view::npos ? end : end + 1));
  }
  while (!cells.empty() && cells.back().empty()) cells.pop_back();
  return cells;
}

// The lines that one thread has logged about the communicator that it is setting up.
struct OpenCommunicator {
  LoggedNccl logged;
  bool sized = false;  // whether the communicator's numbers of ranks and nodes are known
  // The algorithms in the header of NCCL's tuning table. Each has a group of columns, one for each protocol.
  std::vector<std::string> algorithms;
  std::vector<std::string> protocols;
};

class NcclLogText {
 public:
  explicit NcclLogText(const std::string& path) : path_(path) {}

  Imported read(std::string_view text) {
    for (std::string_view line; next_line(text, line);) {
      ++line_;
      const std::size_t at = line.find(kNcclInfo);
      if (at != std::string::npos) take(open_[thread_of(line.substr(0, at))], line.substr(at + kNcclInfo.size()));
    }
    for (auto& [thread, communicator] : open_) close(communicator);
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(printable(fmt::format("{}:{}: {}", path_, line_, what)));
  }

  // Finds the name of a thread, "host:pid:tid", in the prefix "[0] host:pid:tid [3] " of a line.
  static std::string thread_of(std::string_view prefix) {
    LineScanner scan(prefix);
    for (scan.spaces(); !scan.done(); scan.spaces()) {
      const std::string_view word = scan.word();
      if (std::count(word.begin(), word.end(), ':') == 2 && word.back() != ':') return std::string(word);
    }
    return std::string(prefix);
  }

  void take(OpenCommunicator& c, std::string_view message) {
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

  // Reads a line that describes one graph of NCCL's topology search. NCCL numbers the patterns of graphs as in
  // src/include/graph.h: 1 to 3 are trees, of which 3 is the plain one; 4 is the ring; 5 is NVLS.
  void graph(OpenCommunicator& c, std::string_view text) {
    LineScanner scan(text);
    const auto figure = [&](std::string_view before) {
      return scan.skip(before) ? scan.whole(sensible::kMostChannels) : std::nullopt;
    };
    const auto rate = [&](std::string_view before) {
      return scan.skip(before) ? scan.number(sensible::kMostGBps) : std::nullopt;
    };
    const auto word = [&](std::string_view before) {
      return scan.skip(before) ? scan.take_while([](char x) { return is_letter(x) || is_digit(x); }) : "";
    };
    const auto pattern = figure("Pattern "), across = figure(", crossNic "), count = figure(", nChannels ");
    const auto intra_rate = rate(", bw "), inter_rate = rate("/");
    const std::string_view intra_name = word(", type "), inter_name = word("/");
    const auto same = scan.skip_past("sameChannels ") ? scan.whole(1) : std::nullopt;
    if (!pattern || !across || !count || !intra_rate || !inter_rate || inter_name.empty() || !same)
      fail("a line 'Pattern ...' of a form that is not known");
    const auto intra = find_path(intra_name), inter = find_path(inter_name);
    // A pattern above 5 is CollNet's, which is not imported; a count of 0 channels says that NCCL found no graph of
    // this pattern.
    if (*pattern > 5 || *count == 0 || !intra || !inter) return;
    auto& graph = *pattern == 4 ? c.logged.ring : *pattern == 5 ? c.logged.nvls : c.logged.tree;
    graph = NcclGraph{static_cast<int>(*count), *intra_rate, *inter_rate, *intra, *inter, *pattern == 3, *same == 1};
  }

  // Reads the numbers of ranks and nodes from "nRanks 8 nNodes 1", anywhere in the line.
  void size(OpenCommunicator& c, std::string_view text) {
    for (LineScanner scan(text); scan.skip_past("nRanks ");) {
      const auto ranks = scan.whole(sensible::kMostMembers);
      if (!scan.skip(" nNodes ")) continue;
      const auto nodes = scan.whole(sensible::kMostMembers);
      if (!ranks || !nodes || *ranks < 1 || *nodes < 1) fail("'nRanks ... nNodes ...' is no size of a communicator");
      c.logged.ranks = *ranks;
      c.logged.nodes = *nodes;
      c.sized = true;
      return;
    }
  }

  // The number that ends right before position `at` of a text; nullopt if there is none.
  std::optional<int> figure_before(std::string_view text, std::size_t at) const {
    std::size_t first = at;
    while (first > 0 && is_digit(text[first - 1])) --first;
    if (first == at) return std::nullopt;
    const auto value = LineScanner(text.substr(first, at - first)).whole(sensible::kMostChannels);
    if (!value)
      fail(fmt::format("'{}' is no number of channels",
                       text.substr(first, at - first).substr(0, sensible::kLongestWord)));
    return static_cast<int>(*value);
  }

  // Reads the numbers of channels from the line "24 coll channels, 24 collnet channels, 16 nvls channels, ...".
  void channels(OpenCommunicator& c, std::string_view text) {
    const std::size_t at = text.find(" coll channels"), nvls = text.find(" nvls channels", at);
    const auto count = figure_before(text, at);
    if (!count) return;
    c.logged.collective_channels = *count;
    c.logged.nvls_channels = nvls == std::string_view::npos ? 0 : figure_before(text, nvls).value_or(0);
  }

  void table(OpenCommunicator& c, std::string_view text) {
    const std::vector<std::string> cells = cells_of(text);
    if (cells.size() < 2 || cells[0] == "Max NThreads" || cells[0].starts_with("threadThresholds")) return;
    if (cells[0] == "Algorithm" || cells[0] == "Protocol") {
      (cells[0] == "Algorithm" ? c.algorithms : c.protocols).assign(cells.begin() + 1, cells.end());
    } else if (cells[0] == "Latency/AlgBw") {  // NCCL before 2.19 prints algorithms and protocols in one header
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

  // Reads latency (us) and bandwidth (GB/s) from one entry of NCCL's tuning table, "  15.2/  43.6". An algorithm that
  // is switched off has bandwidth 0.
  NcclRow figures_of(const std::string& text) const {
    const std::size_t slash = text.find('/');
    const std::string left = trimmed(text.substr(0, slash)),
                      right = slash < text.size() ? trimmed(text.substr(slash + 1)) : "";
    const auto number = [&](const std::string& word) {
      double value = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      // a comparison that is false for NaN, so that NaN is refused too
      const bool sensible = value >= 0 && value <= sensible::kMostGBps;
      if (word.empty() || error != std::errc() || end != word.data() + word.size() || !sensible)
        fail(fmt::format("'{}' is no latency/bandwidth of the tuning table", text.substr(0, sensible::kLongestWord)));
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

  // Keeps one log for each size of communicator, preferably one with the tuning table: every rank logs the graphs, but
  // only rank 0 the table.
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
  // communicators that are being set up, by the thread that logs about them
  std::map<std::string, OpenCommunicator> open_;
};

}  // namespace

Imported import_nccl_log(const std::string& path, std::string_view text) {
  Imported result = NcclLogText(path).read(text);
  for (LoggedNccl& n : result.nccl) n.version = result.fingerprint.count("nccl") > 0 ? result.fingerprint["nccl"] : "";
  return result;
}

}  // namespace orrery
