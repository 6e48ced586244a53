#include "models/base/narrow.h"

namespace orrery {

std::string_view name_of(NarrowKind kind) {
  static constexpr std::string_view kNames[] = {"int8", "int4", "nf4", "nvfp4"};
  return kNames[static_cast<std::size_t>(kind)];
}

Bytes narrow_bytes(const NarrowFormat& format, std::int64_t elements) {
  const std::int64_t codes = format.kind == NarrowKind::int8 ? elements : ceil_div(elements, 2);
  const std::int64_t scales = ceil_div(elements, format.block);
  if (format.kind == NarrowKind::nvfp4) return codes + scales;
  return codes + (format.kind == NarrowKind::nf4 ? scales + 4 * ceil_div(scales, kNf4Scales) : 4 * scales);
}

}  // namespace orrery
