#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exec/buffers.h"
#include "exec/rank.h"

namespace orrery {

// Weights at the start: matrices are normal with deviation 0.02 (GPT-2), norm weights one, biases zero. Each element
// depends on the seed, the weight's name and its place in the uncut weight, so every layout begins from the same model.
void set_initial_weights(const Rank& rank, std::uint64_t seed, const Buffers& buffers);

// What of its weights or gradients this rank owns, as values of the uncut weights. Members of the data group own
// different pieces; ranks that hold the same elements agree.
enum class Quantity : std::uint8_t { weights, gradients };
struct OwnedValues {
  std::vector<std::int64_t> shape;   // of the uncut weight
  std::vector<std::int64_t> places;  // elements of it, row-major
  std::vector<float> values;
};
std::map<std::string, OwnedValues> owned_values(const Rank& rank, const Buffers& buffers, Quantity quantity);

}  // namespace orrery
