#include "sim/calibrate/import.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/input_file.h"

namespace orrery {
namespace {

// The number of times of a collective that a sample needs if each time comes from the trace of a single rank, which may
// have waited in the collective.
constexpr std::size_t kFewestEnds = 4;

struct SampleSummary {
  Seconds median = 0;
  double spread = 0;
  std::int64_t count = 0;
};

SampleSummary summary_of_sample(std::vector<Seconds> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const Seconds median = (values[(n - 1) / 2] + values[n / 2]) / 2;
  const double spread = n < kFewestEnds ? 0 : (values[n * 3 / 4] - values[n / 4]) / median;
  return {median, spread, static_cast<std::int64_t>(n)};
}

// Key of measured transfers: kind of collective, number of ranks, number of nodes.
using TransferKey = std::tuple<std::string, std::int64_t, std::int64_t>;
using TransferTimes = std::map<TransferKey, std::map<Bytes, std::vector<Seconds>>>;

void add(TransferTimes& transfers, const TransferRow& row) {
  transfers[{row.kind, row.ranks, row.nodes}][row.bytes].push_back(row.seconds);
}

// Adds times of transfers from the collectives in traces. If the traces of all ranks of a collective are there, its
// time is the shortest among the ranks, that of the rank that arrived last; otherwise the time is the shortest one for
// that size in any trace.
void add_ends(TransferTimes& transfers, const std::vector<Imported>& files,
              std::map<std::string, std::int64_t>& refused) {
  std::map<std::string, std::vector<TransferRow>> collectives;
  for (const Imported& file : files) {
    for (const CollectiveEnd& end : file.ends) collectives[end.key].push_back(end.row);
  }
  const auto sooner = [](const TransferRow& a, const TransferRow& b) { return a.seconds < b.seconds; };
  TransferTimes unsure;
  for (const auto& [key, ends] : collectives) {
    const TransferRow& last = *std::min_element(ends.begin(), ends.end(), sooner);
    if (std::ssize(ends) >= last.ranks)
      add(transfers, last);
    else
      add(unsure, last);
  }
  for (const auto& [key, sizes] : unsure) {
    for (const auto& [bytes, times] : sizes) {
      if (times.size() < kFewestEnds)
        refused["a collective of which not all ranks' traces are given: waiting cannot be told from moving"] +=
            std::ssize(times);
      else if (transfers[key][bytes].empty())
        transfers[key][bytes].push_back(*std::min_element(times.begin(), times.end()));
    }
    if (transfers[key].empty()) transfers.erase(key);
  }
}

std::vector<TransferTable> transfer_tables(const TransferTimes& transfers) {
  std::vector<TransferTable> tables;
  for (const auto& [key, sizes] : transfers) {
    TransferTable table{std::get<0>(key), std::get<1>(key), {}, std::get<2>(key)};
    for (const auto& [bytes, times] : sizes) {
      if (times.empty()) continue;
      const SampleSummary s = summary_of_sample(times);
      table.samples.push_back({bytes, s.median, s.spread, s.count});
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<OpTable> op_tables(const std::vector<Imported>& files) {
  std::map<std::string, std::map<std::vector<double>, std::pair<double, std::vector<Seconds>>>> ops;
  for (const Imported& file : files) {
    for (const OpRow& row : file.ops) {
      auto& [amount, times] = ops[row.shape.kind][row.shape.sizes];
      amount = row.shape.amount;
      times.push_back(row.seconds);
    }
  }
  std::vector<OpTable> tables;
  for (const auto& [kind, shapes] : ops) {
    OpTable table{kind, {}};
    for (const auto& [sizes, seen] : shapes) {
      const SampleSummary s = summary_of_sample(seen.second);
      table.samples.push_back({sizes, seen.first, s.median, s.spread, s.count});
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

// Adds to the profile the tuning table that NCCL logged for each size of communicator; a second table for the same size
// is left out.
void add_nccl(Profile& profile, const std::vector<Imported>& files, std::map<std::string, std::int64_t>& refused) {
  for (const Imported& file : files) {
    for (const LoggedNccl& logged : file.nccl) {
      const bool known = std::any_of(profile.nccl.begin(), profile.nccl.end(), [&](const LoggedNccl& n) {
        return n.ranks == logged.ranks && n.nodes == logged.nodes;
      });
      if (known)
        ++refused["a communicator of as many ranks and nodes as one before"];
      else
        profile.nccl.push_back(logged);
    }
  }
}

void append(Imported& to, Imported from) {
  to.fingerprint.merge(from.fingerprint);
  to.transfers.insert(to.transfers.end(), from.transfers.begin(), from.transfers.end());
  to.nccl.insert(to.nccl.end(), from.nccl.begin(), from.nccl.end());
  for (const auto& [reason, rows] : from.refused) to.refused[reason] += rows;
}

struct TestName {
  std::string_view text, kind;
};
// Words in the name of a benchmark program, and the kind of collective that the program measures. The first word that
// occurs in the name counts, so "allreduce" stands before "reduce", which is contained in it.
constexpr TestName kTestNames[] = {
    {"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
    {"alltoall", "all_to_all"},  {"broadcast", "broadcast"},  {"sendrecv", "message"},
    {"reduce", "reduce"}};

}  // namespace

std::string nccl_tests_kind(std::string_view program) {
  const std::string name = std::filesystem::path(program).filename().string();
  std::string letters;
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const TestName& k : kTestNames) {
    if (letters.find(k.text) != std::string::npos) return std::string(k.kind);
  }
  return "";
}

TransferRow nccl_tests_row(const std::string& kind, std::int64_t ranks, std::int64_t nodes) {
  if (kind != "message") return {kind, ranks, nodes};
  // In nccl-tests' sendrecv_perf each rank sends to the next one, and the measured time is that of the slowest send.
  return {kind, 2, std::min<std::int64_t>(nodes, 2)};
}

Imported import_file(const std::string& path) { return import_text(path, read_input(path, kMostMeasurements)); }

Imported import_text(const std::string& path, std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  const bool is_json = start != std::string_view::npos && text[start] == '{';
  if (is_json) {
    const bool trace = text.find("\"traceEvents\"") != std::string_view::npos;
    return trace ? import_kineto(path, text) : import_nccl_tests_json(path, text);
  }
  if (start != std::string_view::npos && text[start] == '<') return import_nccl_graphs(path, std::string(text));
  const bool table = text.find("busbw") != std::string_view::npos,
             log = text.find("NCCL INFO") != std::string_view::npos;
  if (!table && !log)
    throw Error(path +
                ": is neither output of nccl-tests (it has no header with 'busbw'), nor NCCL's log ('NCCL "
                "INFO') or graphs (XML), nor a Kineto trace");
  Imported all;
  if (log) append(all, import_nccl_log(path, text));
  if (table) append(all, import_nccl_tests(path, text));
  return all;
}

Profile profile_of(const std::vector<Imported>& files, std::map<std::string, std::int64_t>& refused) {
  Profile profile;
  profile.rest_built_in = true;
  std::map<std::string, std::string> fingerprint;
  TransferTimes transfers;
  for (const Imported& file : files) {
    for (const auto& [key, value] : file.fingerprint) fingerprint.emplace(key, value);
    for (const TransferRow& row : file.transfers) add(transfers, row);
    for (const auto& [reason, rows] : file.refused) refused[reason] += rows;
  }
  add_ends(transfers, files, refused);
  profile.measured.transfers = transfer_tables(transfers);
  profile.measured.ops = op_tables(files);
  add_nccl(profile, files, refused);
  profile.fingerprint.assign(fingerprint.begin(), fingerprint.end());
  return profile;
}

}  // namespace orrery
