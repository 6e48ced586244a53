#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/units.h"
#include "models/cost/nccl/log.h"
#include "models/spec/cluster.h"
#include "models/trace/measured_times.h"

namespace orrery {

// A tile that matrix-product kernels of a GPU work in, and what part of a multiprocessor's peak they reach inside it.
struct Tile {
  std::int64_t rows = 128, columns = 128;
  double efficiency = 0.8;
};

// Rates that a fused attention kernel reaches for heads of one width: fractions of the 16-bit peak on the flops that
// the mask leaves, and the cost of every query beyond its keys (diagonal blocks, prologue), as so many keys more.
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
// transfers that `orrery calibrate` measured, which go first. A file has either, or both.
struct Profile {
  std::string name;
  std::string hash;  // hash of the file's text

  struct {
    std::vector<Tile> tiles;
    double prologue_us = 0;       // filling the pipeline of a tile, per wave
    double smoothing = 0;         // 0: the last wave costs a whole one; 1: only its share
    double batched_fraction = 1;  // part of the tiles' rate that batched products of unfused attention reach
    // Part of it that the products of experts reach, with a kernel for each or one for all
    double grouped_fraction = 1;
    double exposed_result = 0;  // part of the time that results take to and from memory which no products hide
  } gemm;

  // kernels by name; a stack names one, and the first serves where that one is not in the list
  std::vector<AttentionKernel> attention;

  struct {
    double fraction = 0;  // part of the nominal bandwidth that long streams reach
    double start_us = 0;  // start of every memory-bound kernel
  } memory;

  double kernel_gap_us = 0;      // gap between two kernels of a stream
  double vector_fraction = 0.5;  // part of the fp32 peak that kernels outside tensor cores reach
  double contention = 0;         // further slow-down of compute per transfer's share of multiprocessors
  double spread = 0;             // spread of like GPUs' speeds in products: one standard deviation, as part of the mean

  MeasuredTimes measured;
  // Logs of a cluster's own NCCL about its communicators; they go before our port of NCCL's model.
  std::vector<LoggedNccl> nccl;
  // Whether the profile was imported, and so has gaps: times that were not measured come from the built-in profile of
  // the spec's GPU (sim/predict/predict.h, profile_for).
  bool rest_built_in = false;
  Bytes memory_bytes = 0;  // memory of the device, where the cluster does not know it
  // The place and circumstances of the measurement, in words: {"device", "AMD EPYC, 1 thread"}, {"date", "2026-11-21"},
  // ...
  std::vector<std::pair<std::string, std::string>> fingerprint;
};

// The kernel of that name, else the profile's first; reports say where another stands in.
const AttentionKernel& find_attention(const Profile& profile, std::string_view name);

// The rates for heads of a width: between the widths that a kernel was measured for, in proportion; beyond them, those
// of the nearest.
AttentionHead head_of(const AttentionKernel& kernel, std::int64_t head_dim);

// The profile of a GPU: its own, else its architecture's. Throws Error when there is neither.
Profile find_profile(const Gpu& gpu);
Profile load_profile(const std::string& path);  // a measured one; throws Error with file and key
Profile parse_profile(std::string_view text, const std::string& path);
// Whether formulas can time ops that were not measured.
inline bool has_formulas(const Profile& profile) { return !profile.gemm.tiles.empty(); }
// The text of a profile's file that has nothing but measured and logged figures.
std::string to_json(const Profile& measured);
// The fingerprint's entry for a key, "" if none.
std::string_view fingerprint_of(const Profile& profile, std::string_view key);

}  // namespace orrery
