#include "kernels/cuda/products.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>

#include <cublasLt.h>

#include "kernels/cuda/check.h"

namespace orrery::kernels::cuda {
namespace {

void check_lt(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(std::string(call) + ": " + cublasLtGetStatusString(status));
  }
}
#define ORRERY_CHECK_LT(call) check_lt((call), #call)

cudaDataType_t data_type(Type type) {
  return type == Type::fp32 ? CUDA_R_32F : type == Type::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

cublasLtEpilogue_t epilogue_of(Epilogue e) {
  switch (e) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu_aux_bias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::dgelu:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::dgelu_bgrad:
      return CUBLASLT_EPILOGUE_DGELU_BGRAD;
    case Epilogue::bgrad:
      return CUBLASLT_EPILOGUE_BGRADB;  // `a` of Product is the second operand of cuBLASLt
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// Returns the alignment of a pointer in bytes, up to 256, the largest that cuBLASLt asks for.
std::uint32_t alignment_of(const void* pointer) {
  const auto bits = reinterpret_cast<std::uintptr_t>(pointer) | 256U;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

// The key under which cuBLASLt's choice of an algorithm for a product is cached; it contains everything on which the
// heuristic's choice depends.
using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t,                // sizes m, n and k of the product
                       std::int64_t, std::int64_t, std::int64_t, std::int64_t,  // strides of the rows of the matrices
                       // number of products in the batch, and for each matrix the stride from one product to the next
                       std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                       // data types of the product, whether its matrices are transposed, whether the result is added,
                       // its epilogue
                       Type, Type, Type, bool, bool, bool, Epilogue,
                       // alignments of the pointers to the product's matrices
                       std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

std::int64_t inner_of(const Product& p) { return p.transposed.a ? p.a.rows : p.a.columns; }

Key key_of(const Product& p) {
  return {p.c.rows,
          p.c.columns,
          inner_of(p),
          p.a.stride,
          p.b.stride,
          p.c.stride,
          p.aux.stride,
          p.batch,
          p.a_stride,
          p.b_stride,
          p.c_stride,
          p.a.type,
          p.c.type,
          p.bias.type,
          p.transposed.a,
          p.transposed.b,
          p.beta != 0,
          p.epilogue,
          alignment_of(p.a.data),
          alignment_of(p.b.data),
          alignment_of(p.c.data),
          alignment_of(p.aux.data)};
}

void check_shapes(const Product& p) {
  const std::int64_t m = p.transposed.a ? p.a.columns : p.a.rows, n = p.transposed.b ? p.b.rows : p.b.columns;
  const std::int64_t inner = p.transposed.b ? p.b.columns : p.b.rows;
  require(m == p.c.rows && n == p.c.columns && inner == inner_of(p), "product: the shapes do not fit");
  require(p.a.type == p.b.type, "product: both operands must have one type");
  require(p.c.type == p.a.type || p.c.type == Type::fp32, "product: the result must have the operands' type or fp32");
  require(p.beta == 0 || p.beta == 1, "product: beta must be 0 or 1");
}

template <class T>
void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  ORRERY_CHECK_LT(cublasLtMatmulDescSetAttribute(d, attribute, &value, sizeof value));
}
template <class T>
void set(cublasLtMatrixLayout_t d, cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
  ORRERY_CHECK_LT(cublasLtMatrixLayoutSetAttribute(d, attribute, &value, sizeof value));
}
template <class T>
void set(cublasLtMatmulPreference_t d, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  ORRERY_CHECK_LT(cublasLtMatmulPreferenceSetAttribute(d, attribute, &value, sizeof value));
}

// Owns one of cuBLASLt's descriptors from its creation on, because setting an attribute of it may throw.
template <class T, cublasStatus_t (*destroy)(T)>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (handle_ != nullptr) destroy(handle_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  T* address() { return &handle_; }
  operator T() const { return handle_; }

 private:
  T handle_ = nullptr;
};

// The cuBLASLt layout of a matrix. cuBLASLt is column-major, so a row-major matrix is passed as its transpose.
struct Layout : Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> {
  template <class Void>
  Layout(const BasicMatrix<Void>& m, std::int64_t batch, std::int64_t stride) {
    ORRERY_CHECK_LT(cublasLtMatrixLayoutCreate(address(), data_type(m.type), static_cast<std::uint64_t>(m.columns),
                                               static_cast<std::uint64_t>(m.rows), m.stride));
    set(*this, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
    set(*this, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  }
};

struct Preference : Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> {
  Preference() { ORRERY_CHECK_LT(cublasLtMatmulPreferenceCreate(address())); }
};

// cuBLASLt's description of a product; the pointers of an epilogue are set again for each call. c = a b is passed as
// c^T = b^T a^T, so b is the library's first operand.
struct Plan {
  explicit Plan(const Product& p, bool tf32, int multiprocessors)
      : a(p.b, p.batch, p.b_stride), b(p.a, p.batch, p.a_stride), c(p.c, p.batch, p.c_stride) {
    const cublasComputeType_t compute =
        p.a.type == Type::fp32 && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    ORRERY_CHECK_LT(cublasLtMatmulDescCreate(product.address(), compute, CUDA_R_32F));
    set(product, CUBLASLT_MATMUL_DESC_TRANSA, p.transposed.b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(product, CUBLASLT_MATMUL_DESC_TRANSB, p.transposed.a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p.epilogue));
    if (multiprocessors > 0) set(product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, multiprocessors);
    if (p.bias.data != nullptr) set(product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(p.bias.type));
    if (p.aux.data != nullptr) {
      set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.aux.stride);
      set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, data_type(p.aux.type));
    }
    point(p);
  }

  void point(const Product& p) const {
    if (p.bias.data != nullptr) set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias.data);
    if (p.aux.data != nullptr) set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.aux.data);
  }

  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product;
  Layout a, b, c;
  cublasLtMatmulHeuristicResult_t chosen = {};
};

// Reads an attribute of an algorithm into `to`, which stays unchanged if the library does not report the attribute.
template <class T>
void take_configured(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute, int& to) {
  T value = 0;
  std::size_t written = 0;
  if (cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written) ==
      CUBLAS_STATUS_SUCCESS)
    to = static_cast<int>(value);
}

// The size of the tiles into which cuBLASLt divides a result c. The library is column-major, so the rows of its tiles
// are columns of the row-major c.
struct Tile {
  cublasLtMatmulTile_t id;
  int library_rows, library_columns;
};
#define ORRERY_TILE(rows, columns) \
  { CUBLASLT_MATMUL_TILE_##rows##x##columns, rows, columns }
constexpr Tile kTiles[] = {ORRERY_TILE(16, 16),   ORRERY_TILE(16, 32),   ORRERY_TILE(32, 16),   ORRERY_TILE(32, 32),
                           ORRERY_TILE(32, 64),   ORRERY_TILE(64, 32),   ORRERY_TILE(64, 64),   ORRERY_TILE(32, 128),
                           ORRERY_TILE(128, 32),  ORRERY_TILE(64, 96),   ORRERY_TILE(96, 64),   ORRERY_TILE(64, 128),
                           ORRERY_TILE(128, 64),  ORRERY_TILE(96, 128),  ORRERY_TILE(128, 96),  ORRERY_TILE(128, 128),
                           ORRERY_TILE(64, 192),  ORRERY_TILE(192, 64),  ORRERY_TILE(64, 256),  ORRERY_TILE(256, 64),
                           ORRERY_TILE(128, 160), ORRERY_TILE(128, 192), ORRERY_TILE(192, 128), ORRERY_TILE(128, 256),
                           ORRERY_TILE(256, 128), ORRERY_TILE(192, 192), ORRERY_TILE(192, 256), ORRERY_TILE(256, 192)};
#undef ORRERY_TILE

}  // namespace

struct Products::State {
  bool tf32;
  int multiprocessors;
  std::int64_t workspace_bytes;
  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans;

  ~State() {
    plans.clear();
    cudaFree(workspace);
    if (handle != nullptr) cublasLtDestroy(handle);
  }

  void choose(const Product& p, Plan& plan) const {
    const Preference preference;
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.b.data));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.a.data));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.c.data));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.c.data));
    int found = 0;
    ORRERY_CHECK_LT(cublasLtMatmulAlgoGetHeuristic(handle, plan.product, plan.a, plan.b, plan.c, plan.c, preference, 1,
                                                   &plan.chosen, &found));
    require(found > 0, "product: cuBLASLt has no algorithm for this shape and epilogue");
  }

  Plan& plan_for(const Product& p) {
    check_shapes(p);
    std::unique_ptr<Plan>& plan = plans[key_of(p)];
    if (plan == nullptr) {
      auto made = std::make_unique<Plan>(p, tf32, multiprocessors);
      choose(p, *made);
      plan = std::move(made);
    }
    plan->point(p);
    return *plan;
  }
};

Products::Products(bool tf32, std::int64_t workspace_bytes, int multiprocessors)
    : state_(new State{tf32, multiprocessors, workspace_bytes}) {
  ORRERY_CHECK_LT(cublasLtCreate(&state_->handle));
  ORRERY_CHECK_CUDA(cudaMalloc(&state_->workspace, static_cast<std::size_t>(workspace_bytes)));
}

Products::~Products() = default;

void Products::multiply(const Product& p, cudaStream_t stream) {
  if (p.c.rows == 0 || p.c.columns == 0 || p.batch == 0) return;
  const Plan& plan = state_->plan_for(p);
  ORRERY_CHECK_LT(cublasLtMatmul(state_->handle, plan.product, &p.alpha, p.b.data, plan.a, p.a.data, plan.b, &p.beta,
                                 p.c.data, plan.c, p.c.data, plan.c, &plan.chosen.algo, state_->workspace,
                                 static_cast<std::size_t>(state_->workspace_bytes), stream));
}

Algorithm Products::algorithm(const Product& p) {
  const cublasLtMatmulHeuristicResult_t& chosen = state_->plan_for(p).chosen;
  Algorithm result;
  take_configured<std::int32_t>(chosen.algo, CUBLASLT_ALGO_CONFIG_ID, result.id);
  take_configured<std::uint32_t>(chosen.algo, CUBLASLT_ALGO_CONFIG_TILE_ID, result.tile);
  take_configured<std::uint32_t>(chosen.algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, result.stages);
  take_configured<std::int32_t>(chosen.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, result.split_k);
  take_configured<std::uint16_t>(chosen.algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, result.cluster);
  for (const Tile& t : kTiles) {
    if (t.id != result.tile) continue;
    result.tile_rows = t.library_columns;
    result.tile_columns = t.library_rows;
  }
  result.waves = chosen.wavesCount;
  result.workspace = static_cast<std::int64_t>(chosen.workspaceSize);
  return result;
}

void Products::linear(ConstMatrix x, ConstMatrix weight, ConstArray bias, Matrix y, cudaStream_t stream) {
  Product p = {.transposed = {.b = true}, .a = x, .b = weight, .c = y};
  if (bias.data != nullptr) {
    p.epilogue = Epilogue::bias;
    p.bias = {const_cast<void*>(bias.data), bias.type};
  }
  multiply(p, stream);
}

void Products::linear_input_gradient(ConstMatrix dy, ConstMatrix weight, Matrix dx, cudaStream_t stream) {
  multiply({.a = dy, .b = weight, .c = dx}, stream);
}

void Products::linear_weight_gradient(ConstMatrix dy, ConstMatrix x, bool accumulate, Matrix dweight,
                                      cudaStream_t stream) {
  multiply({.transposed = {.a = true}, .a = dy, .b = x, .beta = accumulate ? 1.0F : 0.0F, .c = dweight}, stream);
}

namespace {

// Some heads of one sample: head `first` and every step-th head after it. matrix: that of head `first`; stride: number
// of elements from the matrix of one of these heads to the matrix of the next.
template <class Void>
struct HeadBatch {
  BasicMatrix<Void> matrix;
  std::int64_t stride;
};
template <class Void>
HeadBatch<Void> heads_from(const BasicHeads<Void>& h, std::int64_t sample, std::int64_t first, std::int64_t step) {
  Void* data = element_at(h.data, h.type, sample * h.rows * h.stride + first * h.head_dim);
  return {{data, h.type, h.rows, h.head_dim, h.stride}, step * h.head_dim};
}

// Returns the (query, key) matrices of every step-th head, from matrix number first_matrix on, in the attention weights
// of shape (batch, heads, query, key).
template <class Void>
HeadBatch<Void> weights_from(const BasicArray<Void>& weights, std::int64_t first_matrix, std::int64_t step,
                             std::int64_t queries, std::int64_t keys) {
  Void* data = element_at(weights.data, weights.type, first_matrix * queries * keys);
  return {{data, weights.type, queries, keys, keys}, step * queries * keys};
}

// Returns the batched product c = scale a b + beta c for `batch` heads of one sample.
template <class A, class B, class C>
Product of_heads(Transposed transposed, float scale, const A& a, const B& b, float beta, const C& c,
                 std::int64_t batch) {
  return {.transposed = transposed,
          .alpha = scale,
          .a = a.matrix,
          .b = b.matrix,
          .beta = beta,
          .c = c.matrix,
          .batch = batch,
          .a_stride = a.stride,
          .b_stride = b.stride,
          .c_stride = c.stride};
}

// Calls f(sample, i, group) for every sample and every i below `group`, the number of query heads that share a key
// head.
template <class F>
void over_groups(std::int64_t batch, std::int64_t heads, std::int64_t key_heads, const F& f) {
  for (std::int64_t s = 0; s < batch; ++s) {
    for (std::int64_t i = 0; i < heads / key_heads; ++i) f(s, i, heads / key_heads);
  }
}

}  // namespace

void Products::head_scores(ConstHeads a, ConstHeads b, float scale, Array weights, cudaStream_t stream) {
  over_groups(a.batch, a.heads, b.heads, [&](std::int64_t s, std::int64_t i, std::int64_t group) {
    const auto w = weights_from(weights, s * a.heads + i, group, a.rows, b.rows);
    multiply(of_heads({.b = true}, scale, heads_from(a, s, i, group), heads_from(b, s, 0, 1), 0, w, b.heads), stream);
  });
}

void Products::head_values(ConstArray weights, ConstHeads b, float scale, Heads y, cudaStream_t stream) {
  over_groups(y.batch, y.heads, b.heads, [&](std::int64_t s, std::int64_t i, std::int64_t group) {
    const auto w = weights_from(weights, s * y.heads + i, group, y.rows, b.rows);
    multiply(of_heads({}, scale, w, heads_from(b, s, 0, 1), 0, heads_from(y, s, i, group), b.heads), stream);
  });
}

void Products::head_key_gradient(ConstArray weights, ConstHeads a, float scale, Heads g, cudaStream_t stream) {
  over_groups(a.batch, a.heads, g.heads, [&](std::int64_t s, std::int64_t i, std::int64_t group) {
    const auto w = weights_from(weights, s * a.heads + i, group, a.rows, g.rows);
    const float beta = i == 0 ? 0 : 1;
    multiply(of_heads({.a = true}, scale, w, heads_from(a, s, i, group), beta, heads_from(g, s, 0, 1), g.heads),
             stream);
  });
}

}  // namespace orrery::kernels::cuda
