#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "exec/memory/buffers.h"
#include "kernels/cpu/elementwise.h"

namespace orrery {

// A view of stored numbers as floats, since CPU kernels compute in float. Numbers stored as floats are used in place.
// Numbers at an address that is no multiple of their bytes, which can only be read, are copied. 16-bit numbers are
// converted to a copy, which the destructor writes back if the numbers are results.
class Values {
 public:
  enum class Mode : std::uint8_t { read, write, update };

  Values(std::byte* stored, std::int64_t n, Bytes width, kernels::Format16 format, Mode mode)
      : stored_(stored), n_(n), mode_(mode), format_(format) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(stored) % static_cast<std::uintptr_t>(width) == 0;
    if (width == sizeof(float) && aligned) {
      data_ = reinterpret_cast<float*>(stored);
      return;
    }
    copy_.resize(static_cast<std::size_t>(n));
    data_ = copy_.data();
    if (mode == Mode::write) return;
    // Weights that are only read may lie at any address, behind weights in NF4.
    std::vector<float> moved(aligned ? 0 : static_cast<std::size_t>(n));
    assert(aligned || mode == Mode::read);
    if (!aligned) std::memcpy(moved.data(), stored, static_cast<std::size_t>(n * width));
    const auto* from = aligned ? stored : reinterpret_cast<const std::byte*>(moved.data());
    if (width == sizeof(float))
      copy_ = std::move(moved);
    else if (format == kernels::Format16::fp16)
      kernels::cast(n, reinterpret_cast<const kernels::Fp16*>(from), data_);
    else
      kernels::cast(n, reinterpret_cast<const kernels::Bf16*>(from), data_);
    data_ = copy_.data();
  }
  // Takes numbers that were computed, which are only read.
  explicit Values(std::vector<float> computed)
      : stored_(nullptr),
        n_(static_cast<std::int64_t>(computed.size())),
        mode_(Mode::read),
        format_(kernels::Format16::bf16),
        copy_(std::move(computed)) {
    data_ = copy_.data();
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
