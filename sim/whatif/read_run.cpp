#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/natural_order.h"
#include "sim/summary/stream.h"
#include "sim/whatif/measured_run.h"
#include "sim/whatif/run_events.h"
#include "sim/whatif/run_rows.h"

namespace orrery {
namespace {

constexpr std::string_view kParquet = "PAR1";  // the first bytes of Parquet files

}  // namespace

std::uint32_t MeasuredRun::op(std::string_view name, bool transfer) {
  if (const auto found = numbers.find(name); found != numbers.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(ops.size());
  numbers.emplace(name, number);
  ops.emplace_back(name);
  transfers.push_back(transfer);
  return number;
}

void MeasuredRun::sort_workers() {
  std::vector<std::size_t> order(workers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, in_natural_order, [&](std::size_t w) -> std::string_view { return workers[w]; });
  std::vector<std::int32_t> place(order.size());
  std::vector<std::string> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<std::int32_t>(i);
    sorted.push_back(std::move(workers[order[i]]));
  }
  workers = std::move(sorted);
  for (MeasuredOp& o : operations) o.worker = place[static_cast<std::size_t>(o.worker)];
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
  if (rows.empty() && kernels.empty())
    throw Error(files.front() + ": holds no operation of a run; give a trace or rows of one");
  try {
    return rows.empty() ? kernels.take() : rows.take();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", files.front(), error.what()));
  }
}

}  // namespace orrery
