#include <algorithm>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "sim/summary/stream.h"
#include "sim/whatif/measured_run.h"
#include "sim/whatif/run_events.h"
#include "sim/whatif/run_rows.h"

namespace orrery {
namespace {

constexpr std::string_view kParquet = "PAR1";  // the first bytes of Parquet files

}  // namespace

std::uint32_t MeasuredRun::op(std::string_view name, bool transfer) {
  const auto found = std::find(ops.begin(), ops.end(), name);
  if (found != ops.end()) return static_cast<std::uint32_t>(found - ops.begin());
  ops.emplace_back(name);
  transfers.push_back(transfer);
  return static_cast<std::uint32_t>(ops.size() - 1);
}

MeasuredRun read_measured_run(const std::vector<std::string>& files) {
  RunRows rows;
  KernelRun kernels;
  for (const std::string& path : files) {
    TraceStream stream(path);
    stream.more();
    const std::string_view text = stream.window();
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) throw Error(path + ": is empty; give a trace or rows of a run");
    if (text.starts_with(kParquet))
      throw Error(path +
                  ": is a Parquet file, which is not read; write it as CSV (in Python: "
                  "pandas.read_parquet(FILE).to_csv(OUT, index=False))");
    if (text[first] == '{' || text[first] == '[')
      read_run_events(path, rows, kernels);
    else
      read_run_csv(path, read_input(path, kMostMeasurements), rows);
  }
  if (!rows.empty() && !kernels.empty())
    throw Error(files.front() + ": the files hold rows of ops and kernels too; give one kind of them");
  MeasuredRun run = rows.empty() ? kernels.take() : rows.take();
  if (run.operations.empty()) throw Error(files.front() + ": holds no operation of a run; give a trace or rows of one");
  return run;
}

}  // namespace orrery
