#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/units.h"
#include "models/cost/nccl/log.h"
#include "models/spec/cluster.h"
#include "models/trace/conditions.h"
#include "models/trace/measured_times.h"

namespace orrery {

// A tile size of a GPU's matrix-product kernels, and the fraction of a multiprocessor's peak that they reach with it.
struct Tile {
  std::int64_t rows = 128, columns = 128;
  double efficiency = 0.8;
};

// Rates that a fused attention kernel reaches for heads of one width: fractions of the 16-bit peak, counting only the
// flops that the mask does not skip, and a fixed cost of every query (diagonal blocks, prologue), expressed as a number
// of additional keys.
struct AttentionHead {
  std::int64_t head_dim = 128;
  double forward_fraction = 0, backward_fraction = 0;
  double forward_keys = 0, backward_keys = 0;
};

struct AttentionKernel {
  std::string name;  // "fa2", "cudnn"
  double start_us = 0;
  std::vector<AttentionHead> heads;                  // rates by head_dim, ascending
  double forward_dropout = 1, backward_dropout = 1;  // factors on these rates with dropout
};

// How long kernels of one kind of device take: the constants of the formulas in models/cost/kernel_time.cpp, from
// models/data/profiles (by GPU, else by architecture), each with its source there; or samples of single ops and
// transfers that `orrery calibrate` measured, which take precedence. A file has either, or both.
struct Profile {
  std::string name;
  std::string hash;  // hash of the file's text

  struct {
    std::vector<Tile> tiles;
    double prologue_us = 0;       // time to fill the pipeline of a tile, per wave
    double smoothing = 0;         // 0: a partly filled last wave costs a whole one; 1: only its share
    double batched_fraction = 1;  // part of the tiles' rate that batched products of unfused attention reach
    // Part of the tiles' rate that experts' products reach, whether each has its own kernel or all share one
    double grouped_fraction = 1;
    double exposed_result = 0;  // part of a result's time to and from memory that the product does not hide
  } gemm;

  // Attention kernels by name; a software stack names the one it uses, and the first stands in for one not listed
  std::vector<AttentionKernel> attention;

  struct {
    double fraction = 0;  // part of the nominal bandwidth that large kernels reach
    double start_us = 0;  // fixed start-up time of every memory-bound kernel
  } memory;

  double kernel_gap_us = 0;      // gap between two kernels of a stream
  double vector_fraction = 0.5;  // part of the fp32 peak that kernels outside tensor cores reach
  // Further slow-down of compute while a transfer runs, per share of the multiprocessors that it occupies
  double contention = 0;
  // How GPUs of one model differ in the speed of products: standard deviation, as a fraction of the mean
  double spread = 0;

  MeasuredTimes measured;
  // Clocks and power of the device during each of the runs in which it was measured, in their order.
  std::vector<Conditions> conditions;
  // Logs that a cluster's own NCCL wrote about its communicators; they override Orrery's port of NCCL's model.
  std::vector<LoggedNccl> nccl;
  // Whether the profile was imported, and so has gaps: times that were not measured come from the built-in profile of
  // the spec's GPU (sim/predict/predict.h, profile_for).
  bool rest_built_in = false;
  Bytes memory_bytes = 0;  // memory of the device, for clusters that do not state it
  // The place and circumstances of the measurement, in words: {"device", "AMD EPYC, 1 thread"}, {"date", "2026-11-21"},
  // ...
  std::vector<std::pair<std::string, std::string>> fingerprint;
};

// The attention kernel of that name, else the profile's first one; reports say when another kernel stands in.
const AttentionKernel& find_attention(const Profile& profile, std::string_view name);

// The rates for heads of one width: interpolated between the widths that the kernel was measured for; beyond them, the
// rates of the nearest width.
AttentionHead head_of(const AttentionKernel& kernel, std::int64_t head_dim);

// The profile of a GPU: its own, else its architecture's. Throws Error when there is neither.
Profile find_profile(const Gpu& gpu);
Profile load_profile(const std::string& path);  // a measured profile; throws Error with file and key
Profile parse_profile(std::string_view text, const std::string& path);
// Whether formulas can time ops that were not measured.
inline bool has_formulas(const Profile& profile) { return !profile.gemm.tiles.empty(); }
// A profile written as a JSON text, with nothing but its measured and logged values.
std::string to_json(const Profile& measured);
// The value of a key of the profile's fingerprint, "" if it has none.
std::string_view fingerprint_of(const Profile& profile, std::string_view key);

}  // namespace orrery
