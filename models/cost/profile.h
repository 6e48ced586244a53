#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/units.h"
#include "models/cost/expert_law.h"
#include "models/cost/nccl/log.h"
#include "models/cost/product_kernels.h"
#include "models/cost/step_fit.h"
#include "models/spec/cluster.h"
#include "models/trace/conditions.h"
#include "models/trace/measured_times.h"

namespace orrery {

// A tile size of a GPU's matrix-product kernels, in elements of the result, and the fraction of a multiprocessor's peak
// rate that kernels reach with this tile size.
struct Tile {
  std::int64_t rows = 128, columns = 128;
  double efficiency = 0.8;
};

// Factors by which the rates of a fused attention kernel change if its products are in 8 bits: with one scale for each
// tensor (tensor_...), or one for each block of 32 elements (block_...: MXFP8).
struct EightBitGain {
  double tensor_forward = 1, tensor_backward = 1;
  double block_forward = 1, block_backward = 1;
};

// The rates that a fused attention kernel reaches for one head dimension. forward_fraction, backward_fraction:
// fractions of the 16-bit peak, counting only the FLOPs that the mask does not skip. forward_keys, backward_keys: a
// fixed cost of every query (diagonal blocks, prologue), expressed as a number of additional keys.
struct AttentionHead {
  std::int64_t head_dim = 128;
  double forward_fraction = 0, backward_fraction = 0;
  double forward_keys = 0, backward_keys = 0;
  EightBitGain eight_bit_gain = {};
};

struct AttentionKernel {
  std::string name;                  // name of the kernel: "fa2", "cudnn"
  double start_us = 0;               // fixed start-up time of the kernel, microseconds
  std::vector<AttentionHead> heads;  // rates for each head dimension, in ascending order of dimension
  // factors by which the forward and backward rates change if there is dropout
  double forward_dropout = 1, backward_dropout = 1;
};

// The speed of the kernels of one type of device: constants of the formulas in models/cost/kernel_time.cpp, from
// models/data/profiles (by GPU, else by architecture), which states a source for each; or samples of single ops and
// transfers that `orrery calibrate` measured, which take precedence. A profile file has either, or both.
struct Profile {
  std::string name;
  std::string hash;  // hash of the profile file's contents

  struct {
    std::vector<Tile> tiles;
    double prologue_us = 0;  // time in microseconds that each wave takes to fill the pipeline of a tile
    // How much time a partly filled last wave of tiles takes, between two extremes. 0: as much as a complete wave; 1:
    // only its share of a complete wave
    double smoothing = 0;
    double batched_fraction = 1;  // fraction of the tiles' rate that the batched products of unfused attention reach
    // The rate of the products of a layer's experts, as a fraction of the rate in `tiles`, where each expert's product
    // is a kernel of its own
    double grouped_fraction = 1;
    // The part of their peak that products of eight bits and fewer reach, over the part that those of 16 bits reach:
    // under a power limit the clock falls more for the latter.
    double narrow_gain = 1;
    // The part of their peak that products in nvfp4 reach, over the part that those of eight bits reach: below 1 on
    // Blackwell Ultra (B300, GB300), whose peak in nvfp4 is half as much again
    double four_bit_part = 1;
    // The fraction of a result's memory traffic time (writing the result, and reading the values that it is added to)
    // that is not hidden behind the product's arithmetic
    double exposed_result = 0;
  } gemm;

  // Attention kernels by name. A software stack names the kernel that it uses; if the profile does not have that
  // kernel, the first one is used
  std::vector<AttentionKernel> attention;

  struct {
    double fraction = 0;  // fraction of the nominal bandwidth that large kernels reach
    double start_us = 0;  // fixed start-up time of every memory-bound kernel, microseconds
  } memory;

  // Kernels of recurrences: the fraction of the nominal memory bandwidth that the short convolution reaches, and the
  // fraction of the 16-bit peak that the products of the scan's chunks reach.
  struct {
    double convolution_fraction = 0.5, scan_fraction = 0.05;
  } recurrence;

  double kernel_gap_us = 0;      // gap between two kernels of a stream, microseconds
  double vector_fraction = 0.5;  // fraction of the fp32 peak that kernels outside tensor cores reach
  // Slow-down of compute by a running transfer beyond the loss of the multiprocessors that the transfer occupies, as a
  // fraction of the slow-down by that loss
  double contention = 0;
  // Standard deviation of the speed of matrix products over individual GPUs of the same type, as a fraction of the mean
  // speed
  double spread = 0;

  MeasuredTimes measured;
  // Clocks and power of the device during each run in which the device was measured, in the order of the runs.
  std::vector<Conditions> conditions;
  // Figures from the logs that NCCL itself wrote about the cluster's communicators; logged figures take precedence over
  // Orrery's port of NCCL's model.
  std::vector<LoggedNccl> nccl;
  // factors that come from a few measured steps of one stack; steps.steps is 0 if no steps were used
  StepFit steps;
  // Whether the profile is for the kernels of text generation (inference), whose constants are in generation_figures.h
  bool generates = false;
  // The laws of the experts' products where a text is generated by a framework whose kernels were measured.
  ExpertLaws experts;
  // The law of matrix products where a text is generated on a GPU whose kernels were measured.
  std::optional<ProductKernels> products;
  // The law of such products in nvfp4, where a framework's were measured.
  std::optional<NarrowProductLaw> narrow_products;
  // Whether the profile was imported and so lacks some times: the missing times come from the built-in profile of the
  // spec's GPU (sim/predict/predict.h, profile_for).
  bool rest_built_in = false;
  Bytes memory_bytes = 0;  // memory of the device, for clusters whose spec (input file) does not state it
  // The device and circumstances of the measurement, as pairs of strings: {"device", "AMD EPYC, 1 thread"}, {"date",
  // "2026-11-21"}, ...
  std::vector<std::pair<std::string, std::string>> fingerprint;
};

// Returns the attention kernel with this name, else the profile's first kernel; reports say if another kernel is used
// instead.
const AttentionKernel& find_attention(const Profile& profile, std::string_view name);

// Returns the rates for a head dimension, interpolated between the head dimensions that the kernel was measured for;
// outside the range of these, the rates of the nearest one.
AttentionHead head_of(const AttentionKernel& kernel, std::int64_t head_dim);

// Returns the built-in profile of a GPU: the GPU's own, else the profile of its architecture. Throws Error if there is
// neither.
Profile find_profile(const Gpu& gpu);
Profile load_profile(const std::string& path);  // Reads a measured profile; throws Error that names file and key
Profile parse_profile(std::string_view text, const std::string& path);
// Returns whether the profile has formulas, which can time ops that were not measured.
inline bool has_formulas(const Profile& profile) { return !profile.gemm.tiles.empty(); }
// Returns the contents of a JSON profile file, with the profile's measured and logged values only.
std::string to_json(const Profile& measured);
// Returns the value of a key in the profile's fingerprint, which describes the measured device and the measurement; ""
// if the key is absent.
std::string_view fingerprint_of(const Profile& profile, std::string_view key);

}  // namespace orrery
