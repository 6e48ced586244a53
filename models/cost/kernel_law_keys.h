#pragma once

#include "models/cost/kernel_laws.h"

namespace orrery {

// A number of a law or of a GPU, its name in the file, and the range that it may have: times up to a millisecond,
// multiples far above every measured one.
template <class Numbers>
struct LawNumber {
  using Of = Numbers;
  const char* name;
  double Numbers::*number;
  double least, most;
};
inline constexpr LawNumber<ProductLaw> kProductKeys[] = {{"prologue_us", &ProductLaw::prologue_us, 0, 1000},
                                                         {"smoothing", &ProductLaw::smoothing, 0, 1},
                                                         {"intensity", &ProductLaw::intensity, 0, 1e4},
                                                         {"overlap", &ProductLaw::overlap, 1, 100},
                                                         {"depth_us", &ProductLaw::depth_us, 0, 1000},
                                                         {"split_us", &ProductLaw::split_us, 0, 1000},
                                                         {"heat", &ProductLaw::heat, 0, 10},
                                                         {"cast_us", &ProductLaw::cast_us, 0, 1000},
                                                         {"cast_part", &ProductLaw::cast_part, 0, 100}};
inline constexpr LawNumber<AttentionLaw> kAttentionKeys[] = {
    {"key_block", &AttentionLaw::key_block, 0, 1e4}, {"result_passes", &AttentionLaw::result_passes, 0, 100},
    {"softmax", &AttentionLaw::softmax, 0, 1e4},     {"softmax_slope", &AttentionLaw::softmax_slope, 0, 100},
    {"start_us", &AttentionLaw::start_us, 0, 1000},  {"heat", &AttentionLaw::heat, 0, 10}};
inline constexpr LawNumber<ExpertLaw> kExpertKeys[] = {
    {"fraction", &ExpertLaw::fraction, 1e-3, 1},  {"start_us", &ExpertLaw::start_us, 0, 1000},
    {"half_rows", &ExpertLaw::half_rows, 0, 256}, {"prologue_us", &ExpertLaw::prologue_us, 0, 1000},
    {"depth_us", &ExpertLaw::depth_us, 0, 1000},  {"passed_ns", &ExpertLaw::passed_ns, 0, 1000}};
inline constexpr LawNumber<NarrowProductLaw> kNarrowKeys[] = {{"start_us", &NarrowProductLaw::start_us, 0, 1000},
                                                              {"memory", &NarrowProductLaw::memory, 1e-3, 2},
                                                              {"depth_us", &NarrowProductLaw::depth_us, 0, 1000},
                                                              {"overlap", &NarrowProductLaw::overlap, 1, 100}};
inline constexpr LawNumber<KernelRates> kRateKeys[] = {
    {"bf16", &KernelRates::bf16, 0, 1},           {"fp8", &KernelRates::fp8, 0, 1},
    {"memory", &KernelRates::memory, 0, 1},       {"start_us", &KernelRates::start_us, 0, 1000},
    {"attention", &KernelRates::attention, 0, 2}, {"attention_tail", &KernelRates::attention_tail, 0, 100}};

}  // namespace orrery
