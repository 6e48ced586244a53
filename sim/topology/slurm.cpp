// Reads Slurm's topology.conf. Lines of topology/tree: SwitchName=s0 Nodes=n[0-31], SwitchName=s2 Switches=s[0-1]; of
// topology/block: BlockName=b0 Nodes=n[0-17], BlockSizes=18 (Slurm's documentation, topology.conf).
#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/host_list.h"
#include "sim/topology/cluster_facts.h"
#include "sim/topology/lines.h"

namespace orrery {
namespace {

// The greatest number of names that a list of hosts may have, so that n[0-999999999] is refused and not expanded.
constexpr std::int64_t kMostNames = 10'000'000;

struct SlurmLine {
  const std::string& path;
  int number = 0;
  std::map<std::string, std::string_view> values;

  [[noreturn]] void fail(std::string_view what) const { throw Error(fmt::format("{}:{}: {}", path, number, what)); }
};

std::int64_t number_of(const SlurmLine& line, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > kMostNames)
    line.fail("a list of names has a range that is none");
  return value;
}

// Returns the number of names in brackets: "0-31,40".
std::int64_t names_in_brackets(const SlurmLine& line, std::string_view ranges) {
  std::int64_t sum = 0;
  while (!ranges.empty()) {
    const std::size_t end = std::min(ranges.find(','), ranges.size());
    const std::string_view range = ranges.substr(0, end);
    ranges.remove_prefix(std::min(end + 1, ranges.size()));
    const std::size_t dash = range.find('-');
    const std::int64_t first = number_of(line, range.substr(0, dash));
    const std::int64_t last = dash == std::string_view::npos ? first : number_of(line, range.substr(dash + 1));
    if (last < first) line.fail("a range of names ends before it begins");
    sum += last - first + 1;
    if (sum > kMostNames) line.fail("a list of names is too long");
  }
  return sum;
}

// Returns the number of names in a list of hosts or switches: "a[0-3,7],b1" has six. Several brackets in a name
// multiply.
std::int64_t count_names(const SlurmLine& line, std::string_view list) {
  std::int64_t sum = 0, in_name = 1;
  bool any = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    any = true;
    if (list[i] == '[') {
      const std::size_t end = list.find(']', i);
      if (end == std::string_view::npos) line.fail("a list of names has a bracket that does not close");
      in_name *= names_in_brackets(line, list.substr(i + 1, end - i - 1));
      i = end;
    } else if (list[i] == ',') {
      sum += in_name;
      in_name = 1;
    }
    if (in_name > kMostNames || sum > kMostNames) line.fail("a list of names is too long");
  }
  return any ? sum + in_name : 0;
}

// Reads NAME=VALUE words; names are compared in lower case, as Slurm does. A # begins a comment.
SlurmLine parse(std::string_view text, const std::string& path, int number) {
  SlurmLine line{path, number, {}};
  for (const std::string_view word : words_of(text.substr(0, text.find('#')))) {
    const std::size_t sign = word.find('=');
    if (sign == std::string_view::npos) continue;
    std::string name(word.substr(0, sign));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    line.values[name] = word.substr(sign + 1);
  }
  return line;
}

// Returns a list of names without its brackets and numbers: "s[0-7],t8" is "s" and "t". Names of switches on one level
// differ in their numbers alone.
std::set<std::string> stems(std::string_view list) {
  std::set<std::string> all;
  std::string stem;
  bool inside = false;
  for (const char c : list) {
    inside = c == '[' || (inside && c != ']');
    if (c == ',' && !inside) {
      all.insert(std::exchange(stem, ""));
    } else if (!inside && c != ']' && std::isdigit(static_cast<unsigned char>(c)) == 0) {
      stem += c;
    }
  }
  all.insert(stem);
  return all;
}

// The numbers of nodes on leaves, of leaves below each switch of leaves, and of nodes in blocks.
struct Counts {
  std::multiset<std::int64_t> leaves, joined, blocks;
  std::set<std::string> leaf_stems;
  std::vector<std::vector<std::string>> names;  // of the nodes of each leaf
  std::int64_t nodes = 0;
};

// Above this number of nodes their names are left out.
constexpr std::int64_t kMostNamedNodes = 100'000;

std::vector<std::string> names_of(const SlurmLine& line, std::string_view list) {
  try {
    return host_names(list, kMostNamedNodes);
  } catch (const Error& e) {
    line.fail(fmt::format("a list of names: {}", e.what()));
  }
}

void add(const SlurmLine& line, Counts& counts) {
  const auto value = [&](const char* name) {
    const auto at = line.values.find(name);
    return at == line.values.end() ? std::string_view() : at->second;
  };
  const std::int64_t nodes = count_names(line, value("nodes"));
  counts.nodes += nodes;
  if (nodes == 0) return;
  if (line.values.contains("switchname")) {
    counts.leaves.insert(nodes);
    counts.leaf_stems.merge(stems(value("switchname")));
    if (counts.nodes <= kMostNamedNodes) counts.names.push_back(names_of(line, value("nodes")));
  } else if (line.values.contains("blockname")) {
    counts.blocks.insert(nodes);
  }
}

// Adds a switch of switches if all that it joins are leaves; switches above it are left out.
void add_joined(const SlurmLine& line, Counts& counts) {
  const auto list = line.values.find("switches");
  if (list == line.values.end()) return;
  const std::set<std::string> below = stems(list->second);
  if (std::ranges::includes(counts.leaf_stems, below)) counts.joined.insert(count_names(line, list->second));
}

}  // namespace

ClusterFacts slurm_topology(std::string_view text, const std::string& path) {
  // A backslash at the end of a line continues it.
  std::string joined;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool continued = text[at] == '\\' && at + 1 < text.size() && text[at + 1] == '\n';
    joined += continued ? ' ' : text[at];
    at += continued ? 1 : 0;
  }
  Counts counts;
  for (const auto each : {add, add_joined}) {
    std::string_view rest = joined;
    for (int number = 1; !rest.empty(); ++number) each(parse(take_line(rest), path, number), counts);
  }
  if (counts.nodes == 0)
    throw Error(fmt::format("{}: has no line SwitchName=... Nodes=... or BlockName=... Nodes=...", path));
  ClusterFacts facts;
  facts.nodes = counts.nodes;
  if (!counts.leaves.empty()) {
    facts.leaf_nodes = *counts.leaves.rbegin();
    facts.remarks.push_back(
        fmt::format("{}: does not say how a node's NICs are cabled; kind is rails unless set", path));
    if (*counts.leaves.begin() != *counts.leaves.rbegin())
      facts.remarks.push_back(fmt::format("{}: leaves have {} to {} nodes; the largest number is taken", path,
                                          *counts.leaves.begin(), *counts.leaves.rbegin()));
  }
  if (counts.nodes <= kMostNamedNodes)
    facts.names_by_leaf = std::move(counts.names);
  else
    facts.remarks.push_back(fmt::format("{}: names of more than {} nodes are left out", path, kMostNamedNodes));
  // A single switch above all leaves divides nothing.
  if (counts.joined.size() > 1) facts.spine_leaves = *counts.joined.begin();
  if (!counts.blocks.empty())
    facts.remarks.push_back(fmt::format(
        "{}: blocks of {} nodes; if each is one NVLink domain, set nvlink_domain to that number times gpus_per_node",
        path, *counts.blocks.rbegin()));
  return facts;
}

}  // namespace orrery
