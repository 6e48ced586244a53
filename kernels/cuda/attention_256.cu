#include "kernels/cuda/attention_backward.cuh"
#include "kernels/cuda/attention_forward.cuh"

namespace orrery::kernels::cuda {

void attention_256(const ForwardArguments& a, cudaStream_t stream) {
  using Tile = ForwardTile<256, 64, 8, 1>;
  a.q.type == Type::bf16 ? launch_forward<Bf16Bits, Tile>(a, stream) : launch_forward<Fp16Bits, Tile>(a, stream);
}

void attention_gradient_256(const BackwardArguments& a, cudaStream_t stream) {
  using Tile = BackwardTile<256, 2>;
  a.dq.type == Type::bf16 ? launch_backward<Bf16Bits, Tile>(a, stream) : launch_backward<Fp16Bits, Tile>(a, stream);
}

}  // namespace orrery::kernels::cuda
