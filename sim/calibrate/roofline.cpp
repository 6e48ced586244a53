#include "sim/calibrate/roofline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "models/base/quantile.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

constexpr std::size_t kMostRoofs = 20;  // the most rows of the table

bool is_fp32(std::string_view kind) { return kind.ends_with("fp32"); }

// Returns the bytes that a matrix product (m x k by k x n, or several) reads and writes if it moves each once.
double product_bytes(const RoofRow& row) {
  const double m = row.sizes[0], n = row.sizes[1], k = row.sizes[2], batch = row.sizes.size() > 3 ? row.sizes[3] : 1;
  return (m * k + k * n + m * n) * batch * (is_fp32(row.kind) ? 4 : 2);
}

// Returns the peak FLOP/s of a precision; 0 if the GPU's data sheet has none, so that the kernel has no such roof.
double peak_of(const Gpu& gpu, const std::string& precision) {
  const auto peak = gpu.tflops.find(precision);
  return peak == gpu.tflops.end() ? 0 : peak->second * 1e12;
}

// Sets the share of the nearer roof: the time at this peak over the measured time.
void set_roof(RoofRow& row, const Gpu& gpu) {
  const double peak = peak_of(gpu, row.precision);
  const double at_compute = peak > 0 ? row.flops / peak : 0;
  const double at_memory = gpu.memory_GBps > 0 ? row.bytes / (gpu.memory_GBps * 1e9) : 0;
  row.by_compute = at_compute >= at_memory;
  row.roof = row.time > 0 ? std::max(at_compute, at_memory) / row.time : 0;
}

// Returns the kind of op without precision, which the table has in a column of its own: "gemm/output" for "gemm/output
// bf16".
std::string kind_alone(const RoofRow& row) {
  for (const std::string_view width : {" bf16", " fp32"}) {
    if (row.kind.ends_with(width)) return row.kind.substr(0, row.kind.size() - width.size());
  }
  return row.kind;
}

}  // namespace

std::vector<RoofRow> roofline_of(const std::vector<Imported>& files, const Gpu& gpu) {
  struct Times {
    std::vector<double> seconds;
    double amount = 0;
  };
  std::map<std::tuple<std::string, std::vector<double>, std::string>, Times> shapes;
  for (const Imported& file : files) {
    for (const OpRow& op : file.ops) {
      const std::string_view width = is_fp32(op.shape.kind) ? "fp32" : "bf16";
      Times& times = shapes[{op.shape.kind, op.shape.sizes, op.precision.empty() ? std::string(width) : op.precision}];
      times.seconds.push_back(op.seconds);
      times.amount = op.shape.amount;
    }
  }
  std::vector<RoofRow> rows;
  for (auto& [shape, times] : shapes) {
    const auto& [kind, sizes, precision] = shape;
    RoofRow row{.kind = kind, .precision = precision, .sizes = sizes, .count = std::ssize(times.seconds)};
    row.time = median(times.seconds);
    const bool product = row.kind.starts_with("gemm") && row.sizes.size() >= 3;
    const bool counts_flops = row.kind.starts_with("gemm") || row.kind.starts_with("grouped gemm") ||
                              row.kind.starts_with("attention") || row.kind.starts_with("scan") ||
                              row.kind.starts_with("index scores");
    row.flops = counts_flops ? times.amount : 0;
    row.bytes = product ? product_bytes(row) : counts_flops ? 0 : times.amount;
    set_roof(row, gpu);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const RoofRow& a, const RoofRow& b) { return a.total() > b.total(); });
  return rows;
}

std::string roofline_text(const std::vector<RoofRow>& rows, const Gpu& gpu, const Style& style) {
  std::string text = '\n' + heading(fmt::format("Measured kernels under the roofs of a {}", gpu.name), style) + '\n';
  if (rows.empty())
    return text + "  no kernel whose op and shape are known: record PyTorch's trace with record_shapes=True\n";
  Table t;
  t.columns = {{"op", "", Align::left},
               {"sizes", "", Align::left},
               {"in", "", Align::left},
               {"times", ""},
               {"time", "us"},
               {"TFLOP/s", ""},
               {"GB/s", ""},
               {"of the roof", "%"},
               {"bound by", "", Align::left}};
  for (std::size_t i = 0; i < std::min(kMostRoofs, rows.size()); ++i) {
    const RoofRow& r = rows[i];
    t.rows.push_back({kind_alone(r), fmt::format("{:.0f}", fmt::join(r.sizes, " x ")), r.precision,
                      fmt::format("{}", r.count), fmt::format("{:.1f}", r.time * 1e6),
                      r.flops > 0 ? fmt::format("{:.1f}", r.flops / r.time * 1e-12) : "",
                      r.bytes > 0 ? fmt::format("{:.0f}", r.bytes / r.time * 1e-9) : "",
                      fmt::format("{:.0f}", 100 * r.roof), r.by_compute ? "compute" : "memory"});
  }
  text += print(t, "  ", style.columns);
  if (rows.size() > kMostRoofs) text += fmt::format("  and {} that take less time\n", rows.size() - kMostRoofs);
  return text;
}

nlohmann::ordered_json roofline_json(const std::vector<RoofRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RoofRow& r : rows)
    list.push_back({{"kind", r.kind},
                    {"sizes", r.sizes},
                    {"precision", r.precision},
                    {"count", r.count},
                    {"time_s", r.time},
                    {"flops", r.flops},
                    {"bytes", r.bytes},
                    {"roof", r.roof},
                    {"bound", r.by_compute ? "compute" : "memory"}});
  return list;
}

}  // namespace orrery
