#pragma once

#include <string_view>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/cluster.h"

namespace orrery {

// How long one task computes on an otherwise idle device, seconds; transfers take none here. Where the profile has
// measured the op's kind, that counts (models/trace/measured_times.h): where there are formulas too, they carry what
// was measured to other sizes. Else formulas of GPUs:
//   products   waves of tiles: counted waves * (prologue + 2 tm tn k / (peak of a multiprocessor * efficiency)), the
//              best of the profile's tiles and of cutting k in 1, 2, 4 or 8 parts, which are then added up; never
//              below what memory delivers; a piece of a product takes its part of the whole one's waves. Then the
//              part of its result's way to memory, and of what that is added to, which the profile calls exposed
//   attention  start + flops * (1 + extra keys / keys per query) / (fraction of peak), of the kernel `attention`
//   others     start + bytes / bandwidth, never less than the time of their arithmetic
// Waves of a product: NVIDIA, Matrix Multiplication Background (DU-09799); NeuSight (2407.13853).
Seconds kernel_time(const Op& op, Bytes width, const Gpu& gpu, const Profile& profile, std::string_view attention);

}  // namespace orrery
