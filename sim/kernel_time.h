#pragma once

#include "models/cluster.h"
#include "models/plan.h"
#include "models/profile.h"

namespace orrery {

// How long one task computes on an otherwise idle GPU, seconds; transfers take none here.
//   products   waves of tiles: sum over waves of (prologue + 2 tm tn k / (peak per multiprocessor * efficiency)), the
//   best of
//              the profile's tiles and of splitting k; never below what memory delivers
//   attention  start + flops / (fraction of peak)
//   the rest   start + bytes / bandwidth, never below its arithmetic
// Products cut by waves: NVIDIA, Matrix Multiplication Background (DU-09799); NeuSight (2407.13853).
Seconds kernel_time(const Op& op, Bytes width, const Gpu& gpu, const Profile& profile);

}  // namespace orrery
