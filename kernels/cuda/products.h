#pragma once

#include <memory>

#include "kernels/cpu/gemm.h"
#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// The epilogue: an operation on a product's result before the result is stored. gelu is cuBLASLt's GeLU, the tanh
// approximation.
//   bias             adds bias(columns)
//   gelu_aux_bias    stores x + bias in aux, then applies GeLU
//   dgelu            multiplies by GeLU's derivative at aux
//   dgelu_bgrad      as dgelu, and writes the sum over rows to bias, which is `columns` long
//   bgrad            for a weight gradient a^T b: writes the sum of a's rows to bias, one element per row of c
enum class Epilogue : std::uint8_t { none, bias, gelu_aux_bias, dgelu, dgelu_bgrad, bgrad };

// A product c = alpha op(a) op(b) + beta c, where op transposes the matrix if `transposed` says so. It is done `batch`
// times, with matrices a_stride, b_stride and c_stride elements apart. a and b have one type; c has that type or fp32.
// beta is 0 or 1.
struct Product {
  Transposed transposed;
  float alpha = 1;
  ConstMatrix a, b;
  float beta = 0;
  Matrix c;
  std::int64_t batch = 1, a_stride = 0, b_stride = 0, c_stride = 0;
  Epilogue epilogue = Epilogue::none;
  Array bias;  // vector that the epilogue reads or writes; type: that of a, or of c for dgelu_bgrad and bgrad
  Matrix aux;  // matrix that the epilogue reads or writes; has the shape of c and the type of a
};

// The algorithm that cuBLASLt's heuristic chose, for reports only: its attributes (cublasLtMatmulTile_t,
// cublasLtMatmulStages_t and so on) as integers, and the numbers of rows and columns of a tile of the result (0 if the
// library has no name for the tile). Fields that the library does not report keep the defaults below.
struct Algorithm {
  int id = -1, tile = 0, stages = 0, split_k = 1, cluster = 0;
  int tile_rows = 0, tile_columns = 0;
  float waves = 0;
  std::int64_t workspace = 0;
};

// Matrix products with cuBLASLt. Sums are in fp32. Products of 16-bit types run on tensor cores, and so do those of
// fp32 if tf32 is allowed. The object keeps a handle, a workspace and one algorithm per shape, so it asks the heuristic
// once per shape. Calls on different streams must not run at once, because they share the workspace. Results have the
// same bits on the same GPU with the same version of cuBLASLt. multiprocessors: number of the GPU's multiprocessors
// that products may use (0: all), for measuring products while communication kernels use the rest.
class Products {
 public:
  explicit Products(bool tf32 = false, std::int64_t workspace_bytes = std::int64_t{32} << 20, int multiprocessors = 0);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  void multiply(const Product& product, cudaStream_t stream);
  Algorithm algorithm(const Product& product);

  // The functions of kernels/cpu/gemm.h on a GPU.
  void linear(ConstMatrix x, ConstMatrix weight, ConstArray bias, Matrix y, cudaStream_t stream);
  void linear_input_gradient(ConstMatrix dy, ConstMatrix weight, Matrix dx, cudaStream_t stream);
  void linear_weight_gradient(ConstMatrix dy, ConstMatrix x, bool accumulate, Matrix dweight, cudaStream_t stream);

  // The products of unfused attention, as in kernels/cpu/gemm.h; `weights` is (batch, heads, query, key). If query
  // heads share a key head, cuBLASLt is called once for each of these query heads, and head_key_gradient() rounds its
  // sum after each call.
  void head_scores(ConstHeads a, ConstHeads b, float scale, Array weights, cudaStream_t stream);
  void head_values(ConstArray weights, ConstHeads b, float scale, Heads y, cudaStream_t stream);
  void head_key_gradient(ConstArray weights, ConstHeads a, float scale, Heads g, cudaStream_t stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery::kernels::cuda
