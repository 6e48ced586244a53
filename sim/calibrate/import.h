#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/cost/nccl/log.h"
#include "models/cost/profile.h"

namespace orrery {

// One transfer, or the mean that a benchmark printed of many.
struct TransferRow {
  std::string kind;  // "all_reduce", "message"
  std::int64_t ranks = 2, nodes = 0;
  Bytes bytes = 0;
  Seconds seconds = 0;
};

// One kernel whose shape is known.
struct OpRow {
  WorkShape shape;
  Seconds seconds = 0;
};

// One rank's end of a collective in a trace: how long it waited there cannot be told from how long it moved, so the
// ends of all ranks are compared. key: the same for the same collective on every rank.
struct CollectiveEnd {
  std::string key;
  TransferRow row;
};

// The contents of one file. refused: rows that were not taken, by reason.
struct Imported {
  std::map<std::string, std::string> fingerprint;  // "device": "NVIDIA H100 80GB HBM3", ...
  std::vector<TransferRow> transfers;
  std::vector<OpRow> ops;
  std::vector<CollectiveEnd> ends;
  std::vector<LoggedNccl> nccl;
  std::map<std::string, std::int64_t> refused;
};

// Each reads one kind of file. path names it in Errors ("path:line: what and what to do") and, where it does not say
// which collective it measured, by its own name. A row that holds no measurement is refused and counted; a broken file
// throws.
Imported import_nccl_tests(const std::string& path, std::string_view text);       // output of *_perf
Imported import_nccl_tests_json(const std::string& path, std::string_view text);  // output of *_perf -J
Imported import_nccl_log(const std::string& path, std::string_view text);  // NCCL_DEBUG=INFO, subsystems GRAPH, TUNING
Imported import_kineto(const std::string& path, std::string_view text);    // PyTorch's profiler, or orrery run --trace

// Imports a file of any of these kinds; a log may hold several.
Imported import_file(const std::string& path);
Imported import_text(const std::string& path, std::string_view text);

// The profile of some files: medians and quartile distances of rows of the same shape, the rest from the built-in
// profile (Profile::rest_built_in). A collective in traces takes as long as on the rank that came last: the shortest of
// all ranks' ends; without the traces of all ranks, the shortest of at least four ends of that size. refused grows by
// the collectives for which that cannot be told.
Profile profile_of(const std::vector<Imported>& files, std::map<std::string, std::int64_t>& refused);

// "all_reduce" of "all_reduce_perf", "reduce_scatter" of "/opt/reduce_scatter_perf_mpi", "message" of "sendrecv_perf",
// "all_reduce" of "all-reduce-8.txt"; "" if it names none.
std::string nccl_tests_kind(std::string_view program);
// Ranks that a kind of nccl-tests' rows are timed over: two for a message, whatever the ring of them.
TransferRow nccl_tests_row(const std::string& kind, std::int64_t ranks, std::int64_t nodes);

}  // namespace orrery
