#include "exec/cuda/initial.h"

#include <machine.cuh>
#include "exec/cuda/handles.h"

namespace orrery::cuda {
namespace {

using namespace kernels::cuda;

constexpr unsigned kThreads = 256;

struct Places {
  const std::int64_t* rows;
  const std::int64_t* columns;
};

// Computes random words by the generator Philox4x32-10 of kernels/common/philox.h; the caller uses two of the four
// words.
__device__ void random_words(std::uint64_t place, std::uint64_t key, std::uint32_t (&c)[4]) {
  c[0] = static_cast<std::uint32_t>(place);
  c[1] = static_cast<std::uint32_t>(place >> 32);
  c[2] = c[3] = 0;
  auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    const std::uint32_t next[4] = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ low, static_cast<std::uint32_t>(b),
                                   static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ high, static_cast<std::uint32_t>(a)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
}

// Sets initial weights as initial_on_host() does, in double and rounded once; the last bit may differ from the host's.
__global__ void set_initial(InitialRun run, Places places) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= run.count) return;
  float value = run.constant;
  if (run.deviation != 0) {
    const std::int64_t e = run.first + i;
    std::uint32_t words[4];
    random_words(static_cast<std::uint64_t>(places.rows[e / run.in] + places.columns[e % run.in]), run.key, words);
    const double u = (words[0] + 0.5) / 4294967296.0, v = (words[1] + 0.5) / 4294967296.0;
    value = static_cast<float>(run.deviation * sqrt(-2 * log(u)) * cos(2 * 3.141592653589793238 * v));
  }
  if (run.width == 4)
    reinterpret_cast<float*>(run.to)[i] = value;
  else
    narrow(value, reinterpret_cast<Bf16Bits*>(run.to)[i]);
}

Memory on_device(std::span<const std::int64_t> values) {
  Memory memory(Memory::Place::device, static_cast<Bytes>(values.size_bytes()));
  if (!values.empty())
    ORRERY_CHECK_CUDA(cudaMemcpy(memory.data(), values.data(), values.size_bytes(), cudaMemcpyHostToDevice));
  return memory;
}

}  // namespace

void initial_on_cuda(const InitialRun& run, cudaStream_t stream) {
  if (run.count == 0) return;
  const Memory rows = on_device(run.rows), columns = on_device(run.columns);
  const Places places = {reinterpret_cast<const std::int64_t*>(rows.data()),
                         reinterpret_cast<const std::int64_t*>(columns.data())};
  const auto blocks = static_cast<unsigned>((run.count + kThreads - 1) / kThreads);
  launch("set_initial", set_initial, dim3{blocks, 1, 1}, kThreads, 0, stream, run, places);
  ORRERY_CHECK_CUDA(cudaStreamSynchronize(stream));
}

}  // namespace orrery::cuda
