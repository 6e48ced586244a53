#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.h"
#include "models/cost/expert_law.h"
#include "models/cost/narrow_product.h"
#include "models/plan/op.h"
#include "models/spec/cluster.h"

namespace orrery {

// The six numbers that are fitted to the measured kernels of one kind of GPU, which ran alone.
struct KernelRates {
  double bf16 = 0, fp8 = 0;  // fractions of the peak of products that long products reach; fp8 0: a GPU without it
  double memory = 0;         // the fraction of the nominal memory bandwidth
  double start_us = 0;       // what a product takes beyond its arithmetic and memory traffic
  // The fraction of the 16-bit peak that attention reaches, with exponentials counted as FLOPs (AttentionLaw::softmax):
  // it may exceed 1, since both overlap, but products alone never take less than at the peak
  double attention = 0;
  double attention_tail = 0;  // blocks of queries, in average ones, that the last multiprocessor finishes after others
};

// The law of matrix products of some kinds of GPUs. Products are cut into tiles of the result, and these
// into parts of the sum; the fastest of a list of shapes is taken. Prologue, depth and split are numbers of clocks,
// given as the time that they take at 2 GHz.
struct ProductLaw {
  double prologue_us = 0;  // time in which a tile's first operands come
  double smoothing = 0;    // 0: a partly filled last wave of tiles takes as much time as a whole one; 1: its share
  // FLOPs in 16 bits for each byte that a multiprocessor loads, at which loading takes as long as the arithmetic at the
  // nominal peak
  double intensity = 1;
  double overlap = 2;    // arithmetic c and memory traffic m take (c^overlap + m^overlap)^(1/overlap)
  double depth_us = 0;   // the least time in which a tile adds 64 elements of the sum
  double split_us = 0;   // what adding the parts of a split sum takes beyond its memory traffic
  double heat = 0;       // how much slower arithmetic becomes over milliseconds: c is c (1 + heat c / (c + 1 ms))
  double cast_us = 0;    // what a kernel that makes an operand 8 bits wide takes beyond its memory traffic
  double cast_part = 1;  // the memory traffic of such kernels, as a multiple of their bytes
};

// The law of fused attention, forward, of some kinds of GPUs.
struct AttentionLaw {
  double key_block = 0;      // keys by which the diagonal lengthens a query's keys
  double result_passes = 0;  // how often queries and results pass through memory without being hidden
  // The exponential of a score costs as much as products of softmax + softmax_slope * r more elements of a head, where
  // r is the number of FLOPs that a multiprocessor does in the time of one exponential
  double softmax = 0, softmax_slope = 0;
  double start_us = 0;
  double heat = 0;  // as in ProductLaw
};

// Kinds of GPUs that share a law, and the measured kernels that it is fitted to.
template <class Law>
struct KernelFamily {
  std::string name;
  std::vector<std::string> gpus;
  std::string framework;  // whose kernels they are
  // Names of the kernels in tables of measurements, in one format alone where "/" and its word follow; empty: all of
  // the framework. A kernel of experts that is named is the family's although another framework called it.
  std::vector<std::string> kernels;
  Law law;
};

// Laws of kernels that run alone, fitted to measured kernels (models/data/kernel_laws.json).
struct KernelLaws {
  std::string source, experts_source;  // what they were fitted to, and those of experts
  std::vector<KernelFamily<ProductLaw>> products;
  std::vector<KernelFamily<AttentionLaw>> attention;
  std::vector<KernelFamily<ExpertLaws>> experts;
  std::vector<KernelFamily<NarrowProductLaw>> narrow;
  std::map<std::string, KernelRates> rates;  // by GPU
};

// Returns the family of a GPU, or nullptr.
template <class Law>
const KernelFamily<Law>* family_of(const std::vector<KernelFamily<Law>>& families, std::string_view gpu) {
  for (const KernelFamily<Law>& family : families) {
    if (std::find(family.gpus.begin(), family.gpus.end(), gpu) != family.gpus.end()) return &family;
  }
  return nullptr;
}

// The operand that a product in 8 bits is measured with, which comes in 16 bits: how many kernels make it 8 bits wide,
// and how many bytes they move for each element; none where the operand is 8 bits wide.
struct OperandCast {
  int kernels = 0;
  double bytes = 0;
};

// The bytes that stay in the L2 cache of a GPU.
double held_in_cache(const Gpu& gpu);

// Returns the time of a product alone. cached: whether its weights are in the L2 cache when it starts.
Seconds product_time(const Gemm& g, bool eight_bit, bool cached, OperandCast cast, const Gpu& gpu,
                     const KernelRates& rates, const ProductLaw& law);
// Throws Error for backward, cached tokens and merging, which the law is not for.
Seconds attention_time(const FlashAttention& a, const Gpu& gpu, const KernelRates& rates, const AttentionLaw& law);

// Returns the rates of a GPU as the other GPUs of its families and the data sheets tell them: its fraction of the peak
// from a line through theirs, over the watts for each FLOP/s (clocks are limited by power), in 8 bits with the median
// ratio of all GPUs; attention from GPUs of its compute capability, if there are any; the rest is the others' median.
KernelRates rates_from_others(const KernelLaws& laws, std::string_view gpu);

const KernelLaws& built_in_kernel_laws();
KernelLaws rounded(KernelLaws laws);  // to the digits that a file has
KernelLaws parse_kernel_laws(std::string_view text, const std::string& path);
std::string to_json(const KernelLaws& laws);

}  // namespace orrery
