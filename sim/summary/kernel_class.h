#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace orrery {

// The classes of kernels by which a summary sums time. norm: normalisations and softmax. indexing: embeddings, gathers,
// sorts and scans. triton: kernels that torch.compile fused, whatever they compute. other: no rule knows the name.
enum class KernelClass : std::uint8_t {
  gemm,
  attention,
  convolution,
  norm,
  elementwise,
  reduction,
  indexing,
  optimizer,
  triton,
  copy,
  collective,
  other
};
inline constexpr std::size_t kKernelClasses = 12;

std::string_view name_of(KernelClass kernel_class);

// The class of a kernel by its name on the device, demangled; for copies by a copy engine the name is "Memcpy ..." or
// "Memset ...". kind: the kind of op that Orrery's own traces give for a kernel ("gemm/output bf16"), which decides
// where it is not empty.
KernelClass class_of_kernel(std::string_view name, std::string_view kind = {});

}  // namespace orrery
