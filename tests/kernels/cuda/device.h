#pragma once

#include <cstring>
#include <vector>

#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include "kernels/common/float16.h"
#include "kernels/common/matrix.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/tensor.h"
#include "tests/kernels/random.h"

// Tensors on a device and the doubles that their references compute on, for the tests of kernels/cuda. The same tests
// run on a GPU (cuda_kernels_test) and on the emulated one (cuda_emulated_test); without a GPU the former skip.
namespace orrery::kernels::cuda {

struct OnDevice : testing::Test {
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
  }
};

constexpr Type kTypes[] = {Type::fp32, Type::bf16, Type::fp16};

// Half a unit in the last place: what storing a result once may change, relatively. bf16 has 8 significant bits,
// fp16 11.
inline double rounding_of(Type type) { return type == Type::fp32 ? 0x1p-24 : type == Type::bf16 ? 0x1p-8 : 0x1p-11; }
// Error limit for a kernel that computes in fp32 and rounds once.
inline double error_of(Type type) { return kFloatError + rounding_of(type); }

inline void put(Type type, float value, unsigned char* to) {
  if (type == Type::fp32) {
    std::memcpy(to, &value, 4);
  } else if (type == Type::bf16) {
    const Bf16 bf16 = to_bf16(value);
    std::memcpy(to, &bf16, 2);
  } else {
    const __half_raw fp16 = __float2half_rn(value);
    std::memcpy(to, &fp16.x, 2);
  }
}
inline float get(Type type, const unsigned char* from) {
  float value;
  Bf16 bf16;
  __half_raw fp16;
  if (type == Type::fp32) return std::memcpy(&value, from, 4), value;
  if (type == Type::bf16) return std::memcpy(&bf16, from, 2), to_float(bf16);
  std::memcpy(&fp16.x, from, 2);
  return __half2float(fp16);
}

// A block of device memory.
class Memory {
 public:
  explicit Memory(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    ORRERY_CHECK_CUDA(cudaMalloc(&data_, std::max<std::size_t>(bytes_, 16)));
  }
  template <class T>
  explicit Memory(const std::vector<T>& values) : Memory(static_cast<std::int64_t>(values.size() * sizeof(T))) {
    ORRERY_CHECK_CUDA(cudaMemcpy(data_, values.data(), bytes_, cudaMemcpyHostToDevice));
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  Workspace workspace() const { return {data_, static_cast<std::int64_t>(bytes_)}; }
  template <class T>
  std::vector<T> read() const {
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(nullptr));
    std::vector<T> values(bytes_ / sizeof(T));
    ORRERY_CHECK_CUDA(cudaMemcpy(values.data(), data_, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

inline std::vector<unsigned char> stored(Type type, const std::vector<float>& values) {
  std::vector<unsigned char> bytes(values.size() * bytes_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) put(type, values[i], bytes.data() + i * bytes_of(type));
  return bytes;
}

// A matrix of random numbers with unused elements after every row. `doubles` begin as what is stored; a reference
// computes on them, and error() compares all, so that a kernel that writes into the gaps is caught.
struct Operand {
  Operand(Type t, std::int64_t r, std::int64_t c, std::int64_t gap, std::uint64_t seed)
      : type(t),
        rows(r),
        columns(c),
        stride(c + gap),
        memory(stored(t, random_floats(r * stride, seed))),
        doubles(read()) {}
  std::vector<double> read() const {
    const auto bytes = memory.read<unsigned char>();
    std::vector<double> x(bytes.size() / bytes_of(type));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = get(type, bytes.data() + i * bytes_of(type));
    return x;
  }
  Matrix view() const { return {memory.as<void>(), type, rows, columns, stride}; }
  Array array() const { return {memory.as<void>(), type}; }
  kernels::Matrix<double> reference() { return {doubles.data(), rows, columns, stride}; }
  double error() const { return relative_error(read(), doubles); }

  Type type;
  std::int64_t rows, columns, stride;
  Memory memory;
  std::vector<double> doubles;
};

struct MatrixShape {
  std::int64_t rows, columns, gap;
};
// Shapes: odd sizes, sizes that allow wide accesses, and rows long enough for a whole block.
constexpr MatrixShape kShapes[] = {{1, 1, 0},   {3, 7, 2},     {17, 16, 0},  {40, 129, 5}, {33, 64, 8},
                                   {5, 768, 1}, {9, 1024, 16}, {3, 2056, 8}, {2, 3001, 0}};

// A type's name and a shape, for messages.
inline std::string name_of(Type type) { return type == Type::fp32 ? "fp32" : type == Type::bf16 ? "bf16" : "fp16"; }
inline std::string name_of(Type type, const MatrixShape& s) {
  return name_of(type) + " " + std::to_string(s.rows) + " x " + std::to_string(s.columns) + " + " +
         std::to_string(s.gap);
}

}  // namespace orrery::kernels::cuda
