#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/spec/cluster.h"
#include "sim/calibrate/import.h"
#include "sim/print/text.h"

namespace orrery {

// The measured kernels of one kind of op and one shape, against a GPU's roofs (Williams, Waterman and Patterson 2009,
// Roofline: an insightful visual performance model): the time that peak FLOP/s would take, and the one that peak
// bandwidth would take. flops, bytes: of one kernel; 0: not known from its shape, so that it has no such roof.
// precision: the one whose peak FLOP/s the kernel is held against (OpRow).
struct RoofRow {
  std::string kind, precision;
  std::vector<double> sizes;
  std::int64_t count = 0;
  double time = 0;  // median time of one kernel in seconds
  double flops = 0, bytes = 0;
  double roof = 0;          // share of the nearer roof: 1 is the peak
  bool by_compute = false;  // whether the nearer roof is that of FLOP/s

  double total() const { return time * static_cast<double>(count); }
};

// Returns the kernels of traces whose op and shape are known, those first that take the most time. Matrix products have
// both roofs, with each operand moved once; attention has that of FLOP/s, other ops that of bandwidth.
std::vector<RoofRow> roofline_of(const std::vector<Imported>& files, const Gpu& gpu);

std::string roofline_text(const std::vector<RoofRow>& rows, const Gpu& gpu, const Style& style);
nlohmann::ordered_json roofline_json(const std::vector<RoofRow>& rows);  // a list

}  // namespace orrery
