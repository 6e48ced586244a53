#pragma once

#include <vector>

#include "exec/memory/buffers.h"
#include "kernels/cpu/elementwise.h"

namespace orrery {

// A view of stored numbers as floats, since CPU kernels compute in float. Numbers stored as floats are used in place.
// 16-bit numbers are converted to a copy, which the destructor writes back if the numbers are results.
class Values {
 public:
  enum class Mode : std::uint8_t { read, write, update };

  Values(std::byte* stored, std::int64_t n, Bytes width, kernels::Format16 format, Mode mode)
      : stored_(stored), n_(n), mode_(mode), format_(format) {
    if (width == sizeof(float)) {
      data_ = reinterpret_cast<float*>(stored);
      return;
    }
    copy_.resize(static_cast<std::size_t>(n));
    data_ = copy_.data();
    if (mode == Mode::write) return;
    if (format == kernels::Format16::fp16)
      kernels::cast(n, reinterpret_cast<const kernels::Fp16*>(stored), data_);
    else
      kernels::cast(n, reinterpret_cast<const kernels::Bf16*>(stored), data_);
  }
  ~Values() {
    if (copy_.empty() || mode_ == Mode::read) return;
    if (format_ == kernels::Format16::fp16)
      kernels::cast(n_, data_, reinterpret_cast<kernels::Fp16*>(stored_));
    else
      kernels::cast(n_, data_, reinterpret_cast<kernels::Bf16*>(stored_));
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  float* data() const { return data_; }

 private:
  std::byte* stored_;
  std::int64_t n_;
  Mode mode_;
  kernels::Format16 format_;
  float* data_ = nullptr;
  std::vector<float> copy_;
};

}  // namespace orrery
