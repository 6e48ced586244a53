// cuBLASLt: descriptions of products are checked against each other and against the memory that they name.
#include <cublasLt.h>

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "tests/exec/cuda/null_gpu/machine.h"

namespace orrery::null_gpu {
namespace {

constexpr double kProduct = 20e-6;         // seconds of a product
constexpr std::size_t kCache = 126000000;  // bytes of the largest L2 cache, a B200's

struct Layout {
  cudaDataType type;
  std::int64_t rows, columns, stride;
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;

  std::size_t width() const { return type == CUDA_R_32F ? 4 : 2; }
  std::size_t bytes() const {
    return static_cast<std::size_t>((batch - 1) * batch_stride + (columns - 1) * stride + rows) * width();
  }
};

struct Description {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  const void* bias = nullptr;
};

// Alignments of A, B, C and D that an algorithm is chosen for; they travel in the algorithm's bytes.
using Alignments = std::array<std::uint32_t, 4>;
struct Preference {
  Alignments alignments{};
};

template <class T>
T* make(const char* kind) {
  const Lock lock(gpu().mutex);
  ++gpu().objects[kind];
  return new T{};
}
template <class T>
cublasStatus_t give_back(T* object, const char* kind) {
  const Lock lock(gpu().mutex);
  --gpu().objects[kind];
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}
constexpr char kHandles[] = "cuBLASLt handles", kLayouts[] = "cuBLASLt layouts",
               kDescriptions[] = "cuBLASLt descriptions", kPreferences[] = "cuBLASLt preferences";

Layout& of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<Layout*>(layout); }

template <class T>
void take(T& to, const void* from, std::size_t bytes, const char* what) {
  if (bytes != sizeof to) complain(fmt::format("cuBLASLt: {} has {} bytes, not {}", what, bytes, sizeof to));
  std::memcpy(&to, from, std::min(bytes, sizeof to));
}

void check_shapes(const Description& d, const Layout& a, const Layout& b, const Layout& c) {
  const bool ta = d.a == CUBLAS_OP_T, tb = d.b == CUBLAS_OP_T;
  const std::int64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns;
  const std::int64_t inner = tb ? b.columns : b.rows, n = tb ? b.rows : b.columns;
  if (m != c.rows || n != c.columns || k != inner) complain("a product's shapes do not fit");
  if (a.batch != b.batch || a.batch != c.batch) complain("a product's batches differ");
}

void check_operand(Stream& stream, const void* at, const Layout& l, std::uint32_t alignment, bool writes) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  if (address % l.width() != 0 || (alignment > 0 && address % alignment != 0))
    complain(fmt::format("a product's operand is not aligned to the {} bytes that its algorithm was chosen for",
                         std::max<std::size_t>(alignment, l.width())));
  if (!on_device(at, l.bytes())) return complain("a product's operand goes beyond an allocation of the device");
  access(stream, "a product", at, l.bytes(), writes);
}

// This records where products have found their operands: for each address, how many bytes of operands had been read
// by then.
struct OperandsRead {
  std::size_t bytes = 0;
  std::map<const void*, std::size_t> at;
};
OperandsRead& operands_read() {
  static OperandsRead* const the = new OperandsRead;
  return *the;
}

// Notes a product whose operands the one L2 cache may still hold, by its sizes.
void note_operands(const void* a, const Layout& a_layout, const void* b, const Layout& b_layout) {
  OperandsRead& read = operands_read();
  bool cached = false;
  for (const void* at : {a, b}) {
    const auto before = read.at.find(at);
    cached |= before != read.at.end() && read.bytes - before->second < kCache;
  }
  read.bytes += a_layout.bytes() + b_layout.bytes();
  read.at[a] = read.at[b] = read.bytes;
  if (cached)
    gpu().cached_products.insert(
        fmt::format("{} x {} and {} x {}", a_layout.rows, a_layout.columns, b_layout.rows, b_layout.columns));
}

}  // namespace

std::set<std::string> products_of_cached_operands() {
  const Lock lock(gpu().mutex);
  return gpu().cached_products;
}

}  // namespace orrery::null_gpu

using namespace orrery::null_gpu;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (fails("cublasLtCreate")) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasLtHandle_t>(make<int>(kHandles));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return give_back(reinterpret_cast<int*>(handle), kHandles); }
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_EXECUTION_FAILED";
}
std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t, cudaDataType_t) {
  if (fails("cublasLtMatmulDescCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
  *description = reinterpret_cast<cublasLtMatmulDesc_t>(make<Description>(kDescriptions));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return give_back(reinterpret_cast<Description*>(description), kDescriptions);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  if (fails("cublasLtMatmulDescSetAttribute")) return CUBLAS_STATUS_INVALID_VALUE;
  auto& d = *reinterpret_cast<Description*>(handle);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) take(d.a, value, bytes, "TRANSA");
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) take(d.b, value, bytes, "TRANSB");
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) take(d.bias, value, bytes, "BIAS_POINTER");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  if (fails("cublasLtMatrixLayoutCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
  if (stride < static_cast<std::int64_t>(rows)) complain("a matrix has rows longer than the distance between them");
  auto* made = make<Layout>(kLayouts);
  *made = {type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), stride};
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return give_back(&of(layout), kLayouts); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  if (fails("cublasLtMatrixLayoutSetAttribute")) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) take(of(layout).batch, value, bytes, "BATCH_COUNT");
  if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    take(of(layout).batch_stride, value, bytes, "STRIDED_BATCH_OFFSET");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  if (fails("cublasLtMatmulPreferenceCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(make<Preference>(kPreferences));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return give_back(reinterpret_cast<Preference*>(preference), kPreferences);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  if (fails("cublasLtMatmulPreferenceSetAttribute")) return CUBLAS_STATUS_INVALID_VALUE;
  constexpr std::array kOrder = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                 CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                 CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (std::size_t i = 0; i < kOrder.size(); ++i) {
    if (kOrder[i] == attribute)
      take(reinterpret_cast<Preference*>(preference)->alignments[i], value, bytes, "MIN_ALIGNMENT");
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* result, int* found) {
  if (fails("cublasLtMatmulAlgoGetHeuristic")) return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {};
  const Alignments& alignments = reinterpret_cast<Preference*>(preference)->alignments;
  static_assert(sizeof alignments <= sizeof result->algo);
  std::memcpy(&result->algo, alignments.data(), sizeof alignments);
  result->wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t*, cublasLtMatmulAlgoConfigAttributes_t,
                                                    void* value, std::size_t bytes, std::size_t* written) {
  if (fails("cublasLtMatmulAlgoConfigGetAttribute")) return CUBLAS_STATUS_NOT_SUPPORTED;
  std::memset(value, 0, bytes);
  static_cast<char*>(value)[0] = 1;
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void*, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void*, const void*, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* chosen, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t handle) {
  if (fails("cublasLtMatmul")) return CUBLAS_STATUS_EXECUTION_FAILED;
  const Lock lock(gpu().mutex);
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const auto& how = *reinterpret_cast<const Description*>(description);
  check_shapes(how, of(a_layout), of(b_layout), of(d_layout));
  Alignments alignments;
  std::memcpy(alignments.data(), chosen, sizeof alignments);
  enqueue(*stream, kProduct);
  note_operands(a, of(a_layout), b, of(b_layout));
  check_operand(*stream, a, of(a_layout), alignments[0], false);
  check_operand(*stream, b, of(b_layout), alignments[1], false);
  check_operand(*stream, d, of(d_layout), alignments[3], true);
  if (how.bias != nullptr && !on_device(how.bias, of(d_layout).width()))
    complain("a product's bias is not on the device");
  if (!on_device(workspace, workspace_bytes)) complain("a product's workspace goes beyond an allocation of the device");
  access(*stream, "a product's workspace", workspace, workspace_bytes, true);
  return CUBLAS_STATUS_SUCCESS;
}
}
