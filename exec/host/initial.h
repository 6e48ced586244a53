#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "exec/host/prepare.h"
#include "exec/memory/buffers.h"
#include "exec/memory/rank.h"

namespace orrery {

// Consecutive elements of one weight that are to get initial values. A value depends only on the key and on the
// element's offset in the uncut weight. Element e of this rank's part of the weight, of shape (out, in), has the offset
// rows[e / in] + columns[e % in] in the uncut weight.
struct InitialRun {
  std::byte* to = nullptr;  // address at which element `first` is written
  Bytes width = 4;
  kernels::Format16 format16 = kernels::Format16::bf16;
  std::int64_t first = 0, count = 0;
  std::int64_t in = 1;
  std::uint64_t key = 0;
  double deviation = 0;  // standard deviation of the values; 0: all elements are `constant`
  float constant = 0;
  std::span<const std::int64_t> rows, columns;
};
void initial_on_host(const InitialRun& run);

// Sets the initial weights: matrices are normal with deviation 0.02 (GPT-2), norm weights one, biases zero. The same
// seed gives the same model under every parallelism strategy. set: writes one contiguous range of elements to a buffer.
void set_initial_weights(const Rank& rank, std::uint64_t seed, const Buffers& buffers,
                         const std::function<void(const InitialRun&)>& set = initial_on_host);

// The weights or gradients that this rank owns, with their offsets in the uncut weights. Members of a data-parallel
// group own different shards; ranks that hold the same elements have equal values. read: copies bytes of buffers to the
// host.
enum class Quantity : std::uint8_t { weights, gradients };
struct OwnedValues {
  std::vector<std::int64_t> shape;   // shape of the uncut weight
  std::vector<std::int64_t> places;  // for each value, its row-major offset in the uncut weight
  std::vector<float> values;
};
std::map<std::string, OwnedValues> owned_values(const Rank& rank, const Buffers& buffers, Quantity quantity,
                                                const Copy& read = copy_on_host);

}  // namespace orrery
