#pragma once

#include "models/spec/spec.h"

namespace orrery {

// The factors low and high of a prediction: in 80 % of cases a measured step time lies between low and high times the
// predicted step time.
struct Interval {
  double low = 1, high = 1;
};

// Returns the interval for a spec, from models/data/intervals.json: from published steps of the same software on the
// same GPU architecture, else of any software on it, else of all (the file's key `about` explains how). GPUs whose
// predictions no measured step has helped (Gpu::uncalibrated) have an interval of their own there. Returns {1, 1} for a
// GPU architecture that is predicted with a measured profile only.
Interval interval_of(const Spec& spec);

}  // namespace orrery
