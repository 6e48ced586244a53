#pragma once

#include <string_view>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/cluster.h"

namespace orrery {

// Returns the time that one task computes on an otherwise idle device, seconds; 0 for transfers. If the profile has
// samples of the op's kind (models/trace/measured_times.h), the time comes from these samples; if the profile has
// formulas too, the formulas extend the samples to other sizes. Otherwise the time comes from formulas for GPUs:
//   products   waves of tiles: number of waves * (prologue + 2 tm tn k / (peak of a multiprocessor * efficiency)), for
//     the best of the profile's tile sizes tm * tn and of cutting k into 1, 2, 4 or 8 parts, whose results are then
//     added; never less than the time of its memory traffic. If a product is cut into several kernels (Gemm::pieces),
//     each kernel takes an equal share of the complete product's waves. The exposed fraction (from the profile) of the
//     time to write the result, and to read the values that it is added to, comes on top
//   attention  start + flops * (1 + extra keys / keys per query) / (fraction of peak), with the rates of the kernel
//     `attention`
//   other ops  start + bytes / bandwidth, never less than the time of their arithmetic
// Waves of a product: NVIDIA, Matrix Multiplication Background (DU-09799); NeuSight (2407.13853).
Seconds kernel_time(const Op& op, Bytes width, const Gpu& gpu, const Profile& profile, std::string_view attention);

// Returns the number of kernels that an op launches. Inference stacks run the products of all experts as one kernel.
// Ops that they fuse into the kernel before or after count 0: residual sums and quantisation, which are fused with
// norms and activations (fused_add_rms_norm_quant in vLLM and TensorRT-LLM), and rotation and the copy into the
// key/value cache, which are fused with attention.
int kernels_of(const Work& work, const Profile& profile);

}  // namespace orrery
