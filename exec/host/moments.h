#pragma once

#include <cstdint>
#include <vector>

#include "exec/host/host_call.h"
#include "kernels/cpu/eight_bit.h"

namespace orrery {

// A view of one of the optimizer's moments as floats, for an op that updates the elements [Update::first, Update::first
// + Update::elements) of the rank's shards. Moments stored as floats are used in place. Moments of 8 bits are blocks of
// kMomentBlock consecutive elements of the rank's shards, whose scales (fp32) lie at the beginning of the buffer,
// before the elements' bytes; they are widened to a copy, which the destructor rounds again, block by block.
class Moments {
 public:
  Moments(const CpuCall& c, const Argument& a, kernels::MomentSign sign, const Update& work);
  ~Moments();
  Moments(const Moments&) = delete;
  Moments& operator=(const Moments&) = delete;

  // Returns the address of an element, given its index in the buffer; null if the optimizer has no such moment.
  float* at(std::int64_t element) const { return values_ == nullptr ? nullptr : values_ + element - first_; }

 private:
  kernels::MomentSign sign_;
  float* values_;
  std::int64_t first_ = 0;
  float* scales_ = nullptr;        // the scale of the block of element first_; null if moments are floats
  std::uint8_t* bytes_ = nullptr;  // the byte of element first_
  mutable std::vector<float> copy_;
};

// Returns the number of elements in a buffer of 8-bit moments of this many bytes.
std::int64_t eight_bit_moments(Bytes bytes);

}  // namespace orrery
