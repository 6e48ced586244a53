#pragma once

#include <string>
#include <string_view>

namespace orrery {

// The name of a kernel in readable form: a mangled name (_Z...) is demangled; any other name stays.
std::string demangled(std::string_view name);

// The useful half of a kernel's name, for a table: without return type, parameters, outer namespaces and template
// arguments; kernels that only apply a functor or wrap another kernel also get the name of that:
//   void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, ...>(int, ...)
//     -> vectorized_elementwise_kernel CUDAFunctor_add
//   void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1>(...)
//     -> cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1
std::string short_kernel_name(std::string_view name);

}  // namespace orrery
