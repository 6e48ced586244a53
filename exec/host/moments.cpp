#include "exec/host/moments.h"

#include <algorithm>

namespace orrery {

// A complete block takes kMomentBlock bytes and a scale; the last block has at least one element.
std::int64_t eight_bit_moments(Bytes bytes) {
  constexpr Bytes kScale = sizeof(float);
  return bytes - kScale * ceil_div(bytes, kMomentBlock + kScale);
}

Moments::Moments(const CpuCall& c, const Argument& a, kernels::MomentSign sign, const Update& work)
    : sign_(sign), values_(CpuCall::floats(a)) {
  if (!c.rank.spec.strategy.optimizer.eight_bit || a.data == nullptr) return;
  const std::int64_t all = eight_bit_moments(a.bytes), blocks = ceil_div(all, kMomentBlock);
  const std::int64_t block = work.first / kMomentBlock;
  first_ = block * kMomentBlock;
  const std::int64_t end = std::min(all, ceil_div(work.first + work.elements, kMomentBlock) * kMomentBlock);
  copy_.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, end - first_)));
  scales_ = CpuCall::floats(a) + block;
  bytes_ = reinterpret_cast<std::uint8_t*>(CpuCall::floats(a) + blocks) + first_;
  kernels::widen_moments(sign_, kMomentBlock, std::ssize(copy_), bytes_, scales_, copy_.data());
  values_ = copy_.data();
}

Moments::~Moments() {
  if (scales_ != nullptr)
    kernels::narrow_moments(sign_, kMomentBlock, std::ssize(copy_), copy_.data(), bytes_, scales_);
}

}  // namespace orrery
