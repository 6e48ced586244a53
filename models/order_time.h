#pragma once

#include "models/plan.h"
#include "models/spec.h"

namespace orrery {

// What an op counts in orders of pipeline schedules that fit the times of stages: nanoseconds on the spec's GPU and its
// fastest link at their peaks, which is as near as an order needs; on a machine without known peaks operations count.
// Launches are left out: they hide behind one another; so are copies to and from the host, which run beside compute.
// width: bytes of an element.
double order_time(const Op& op, Bytes width, const Gpu& gpu);

}  // namespace orrery
