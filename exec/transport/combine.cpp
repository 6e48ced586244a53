#include "exec/transport/combine.h"

#include <algorithm>

#include "kernels/common/float16.h"
#include "models/base/error.h"

namespace orrery {
namespace {

template <class T>
void combine_all(Reduction reduction, const void* from, void* into, std::int64_t elements) {
  const auto* source = static_cast<const T*>(from);
  auto* target = static_cast<T*>(into);
  const auto walk = [&](const auto& both) {
    for (std::int64_t i = 0; i < elements; ++i) {
      target[i] = kernels::stored_as<T>(both(kernels::to_float(target[i]), kernels::to_float(source[i])));
    }
  };
  switch (reduction) {
    case Reduction::sum:
      return walk([](float a, float b) { return a + b; });
    case Reduction::maximum:
      return walk([](float a, float b) { return std::max(a, b); });
  }
}

void combine_doubles(Reduction reduction, const double* from, double* into, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i)
    into[i] = reduction == Reduction::sum ? into[i] + from[i] : std::max(into[i], from[i]);
}

}  // namespace

std::int64_t width_of(Element element) {
  switch (element) {
    case Element::f32:
      return 4;
    case Element::bf16:
    case Element::fp16:
      return 2;
    case Element::f64:
      return 8;
    case Element::bytes:
      return 1;
  }
  return 1;
}

void combine(Element element, Reduction reduction, const void* from, void* into, std::int64_t elements) {
  switch (element) {
    case Element::f32:
      return combine_all<float>(reduction, from, into, elements);
    case Element::bf16:
      return combine_all<kernels::Bf16>(reduction, from, into, elements);
    case Element::fp16:
      return combine_all<kernels::Fp16>(reduction, from, into, elements);
    case Element::f64:
      return combine_doubles(reduction, static_cast<const double*>(from), static_cast<double*>(into), elements);
    case Element::bytes:
      throw Error("transport: bytes cannot be summed; name f32, bf16 or fp16 elements");
  }
}

}  // namespace orrery
