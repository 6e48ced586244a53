#pragma once

#include <cstdint>
#include <vector>

#include "models/layers/blocks.h"

namespace orrery {

// The settings of the blocks of a frozen second model (SecondModel) on one rank, and the layers that each virtual stage
// has of it.
struct SecondContext {
  explicit SecondContext(const BlockContext& trained);
  SecondContext(const SecondContext&) = delete;
  SecondContext& operator=(const SecondContext&) = delete;

  Spec spec;  // the spec with the second model as its model (second_spec())
  BlockContext context;
  // number of layers of each virtual stage, and number of its first layer
  std::vector<std::int64_t> layers_of, first_layer;
};

}  // namespace orrery
