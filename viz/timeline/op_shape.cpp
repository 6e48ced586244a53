#include "viz/timeline/op_shape.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery {
namespace {

// Returns a kind of op ("norm/rms/forward bf16") without the precision at its end.
std::string_view without_precision(std::string_view kind) {
  const std::size_t last = kind.rfind(' ');
  if (last == std::string_view::npos) return kind;
  const std::string_view word = kind.substr(last + 1);
  return word.starts_with("fp") || word.starts_with("bf") ? kind.substr(0, last) : kind;
}

}  // namespace

std::string shape_words(const WorkShape& shape) {
  if (!shape.kind.starts_with("gemm"))
    return fmt::format("{} {:.0f}", without_precision(shape.kind), fmt::join(shape.sizes, "x"));
  std::vector<double> sizes = shape.sizes;
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  return fmt::format("gemm {:.0f}", fmt::join(sizes, "x"));
}

std::string shape_words(std::string_view collective, Bytes bytes) {
  return fmt::format("{} {} bytes", collective, bytes);
}

}  // namespace orrery
