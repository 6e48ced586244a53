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

// One measured transfer, or the mean of many transfers that a benchmark has printed.
struct TransferRow {
  std::string kind;  // "all_reduce", ..., or "message" (a send and its receive)
  std::int64_t ranks = 2, nodes = 0;
  Bytes bytes = 0;
  Seconds seconds = 0;
};

// One measured kernel whose shape is known. precision: that of its arithmetic, by the operator's inputs and the
// kernel's name, a key of Gpu::tflops ("bf16", "tf32"); "": not known.
struct OpRow {
  WorkShape shape;
  Seconds seconds = 0;
  std::string precision;
};

// One collective in the trace of one rank. A trace does not separate the time in which the rank waited for other ranks
// from the time in which data moved, so the traces of all ranks are compared. key: identifies the collective, and is
// the same in the traces of all its ranks.
struct CollectiveEnd {
  std::string key;
  TransferRow row;
};

// The measurements read from one file. refused: number of measurements that could not be used, by reason. kernel_time:
// time of all kernels in a trace except collectives; taken_time: time of those kernels that became samples of the
// profile. Both are 0 for files that are no traces.
struct Imported {
  // properties of the machine: "device": "NVIDIA H100 80GB HBM3", ...
  std::map<std::string, std::string> fingerprint;
  std::vector<TransferRow> transfers;
  std::vector<OpRow> ops;
  std::vector<CollectiveEnd> ends;
  std::vector<LoggedNccl> nccl;
  std::map<std::string, std::int64_t> refused;
  Seconds kernel_time = 0, taken_time = 0;
};

// The functions below read measurement files, one function for each tool. path: the file's path, for Errors
// ("path:line: what and what to do"); if the file does not say which collective it measured, its name tells that. A
// line without a measurement is refused and counted; for a broken file Error is thrown.

// Reads the text output of nccl-tests (all_reduce_perf and others).
Imported import_nccl_tests(const std::string& path, std::string_view text);
// Reads the JSON output of nccl-tests (all_reduce_perf -J and others).
Imported import_nccl_tests_json(const std::string& path, std::string_view text);
// Reads NCCL's log, as NCCL_DEBUG=INFO writes it with the subsystems GRAPH and TUNING.
Imported import_nccl_log(const std::string& path, std::string_view text);
// Reads the graphs that NCCL writes into the file of NCCL_GRAPH_DUMP_FILE.
Imported import_nccl_graphs(const std::string& path, const std::string& text);
// Reads a trace of PyTorch's profiler or of `orrery run --trace`.
Imported import_kineto(const std::string& path, std::string_view text);

// Imports a file of nccl-tests, of NCCL's log or graphs, or of a profiler's trace, whichever it is; a log may hold the
// output of several of these tools.
Imported import_file(const std::string& path);
Imported import_text(const std::string& path, std::string_view text);

// Makes a profile from measured files, with medians and quartile distances over the measurements of the same shape.
// Whatever the files do not measure is taken from the built-in profile (Profile::rest_built_in). A collective in traces
// is given the time on the rank that arrived last, the shortest of all its ranks; if some ranks' traces are missing, it
// is given the shortest of at least four times for that size. Collectives with fewer than four times are counted in
// `refused`.
Profile profile_of(const std::vector<Imported>& files, std::map<std::string, std::int64_t>& refused);

// The kind of collective that the name of a program or file contains: "all_reduce" for "all_reduce_perf",
// "reduce_scatter" for "/opt/reduce_scatter_perf_mpi", "message" for "sendrecv_perf", "all_reduce" for
// "all-reduce-8.txt"; "" if it contains none.
std::string nccl_tests_kind(std::string_view program);
// Describes as a TransferRow a transfer that nccl-tests measured on `ranks` ranks. A message (sendrecv_perf) becomes a
// transfer between two ranks, although in the test all ranks send to each other in a ring.
TransferRow nccl_tests_row(const std::string& kind, std::int64_t ranks, std::int64_t nodes);

}  // namespace orrery
