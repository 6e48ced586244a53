#pragma once

#include <vector>

#include "exec/memory/buffers.h"
#include "kernels/cpu/elementwise.h"

namespace orrery {

// A view of stored values as floats: the values themselves where floats are stored, else a copy that is read from
// 16-bit values and, for a result, written back when the view ends. Kernels compute in float either way.
class Values {
 public:
  enum class Mode : std::uint8_t { read, write, update };

  Values(std::byte* stored, std::int64_t n, Bytes width, Mode mode) : stored_(stored), n_(n), mode_(mode) {
    if (width == sizeof(float)) {
      data_ = reinterpret_cast<float*>(stored);
      return;
    }
    copy_.resize(static_cast<std::size_t>(n));
    data_ = copy_.data();
    if (mode != Mode::write) kernels::cast(n, reinterpret_cast<const kernels::Bf16*>(stored), data_);
  }
  ~Values() {
    if (!copy_.empty() && mode_ != Mode::read) kernels::cast(n_, data_, reinterpret_cast<kernels::Bf16*>(stored_));
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  float* data() const { return data_; }

 private:
  std::byte* stored_;
  std::int64_t n_;
  Mode mode_;
  float* data_ = nullptr;
  std::vector<float> copy_;
};

}  // namespace orrery
