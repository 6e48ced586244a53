#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// The factors low and high of a prediction: in 80 % of cases a measured step time lies between low and high times the
// predicted step time.
struct Interval {
  double low = 1, high = 1;
};

// Returns the interval for a spec, from models/data/intervals.json: from published steps of the same software on the
// same GPU architecture and about as many nodes, else from the most similar published steps (the file's key `about`
// explains how). GPUs whose predictions no measured step has helped (Gpu::uncalibrated) have an interval of their own
// there. Returns {1, 1} for a GPU architecture that is predicted with a measured profile only.
Interval interval_of(const Spec& spec);

// A published step: its measured time over the predicted time, and the properties by which similar steps are found.
struct StepResidual {
  std::string gpu;  // the GPU's architecture: "ampere"
  std::string software, source;
  std::int64_t nodes = 1;
  double ratio = 1;  // measured step time / predicted step time
};

// Returns the contents of models/data/intervals.json, made from the published steps in `residuals`.
std::string intervals_json(const std::vector<StepResidual>& residuals);

}  // namespace orrery
