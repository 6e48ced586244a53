#include "exec/cuda/gpu_bench.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "exec/cuda/handles.h"
#include "exec/cuda/initial.h"
#include "exec/host/lanes.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/elementwise.h"
#include "models/trace/bench_shapes.h"
#include "models/trace/measured_json.h"

namespace orrery::cuda {
namespace {

namespace gpu = kernels::cuda;

constexpr int kWarmUp = 3, kRepetitions = 12;
// Largest interquartile distance of repeated measurements that is accepted, relative to their median.
constexpr double kMostSpread = 0.2;
constexpr int kLaunches = 2000;
constexpr Bytes kWidth = kBenchWidth;
// Bytes of the memory through which each operand moves, so that no call finds its operand in the L2 cache: no GPU's is
// larger than 126 MB (B200; chipsandcheese.com, "Nvidia's B200: Keeping the CUDA Juggernaut Rolling"). The largest
// result takes 1.65 GB.
constexpr Bytes kRing = Bytes{2} << 30;

// Allocates device memory filled with random normal bf16 numbers of standard deviation 0.02.
Memory noise(Bytes bytes) {
  constexpr std::int64_t kRow = 1 << 20;
  Memory memory(Memory::Place::device, bytes);
  const std::int64_t n = bytes / kWidth;
  std::vector<std::int64_t> rows, columns(kRow);
  for (std::int64_t r = 0; r * kRow < n; ++r) rows.push_back(r * kRow);
  std::iota(columns.begin(), columns.end(), std::int64_t{0});
  initial_on_cuda({.to = memory.data(),
                   .width = kWidth,
                   .count = n,
                   .in = kRow,
                   .key = 3,
                   .deviation = 0.02,
                   .rows = rows,
                   .columns = columns},
                  nullptr);
  return memory;
}

// Device memory of which every call takes another part, so that operands are read from memory and not from a cache.
class Ring {
 public:
  explicit Ring(Memory memory) : memory_(std::move(memory)) {}

  const Memory& memory() const { return memory_; }
  // The next part of `bytes` bytes, aligned to 256 bytes as allocations are; it starts again at the begin of the memory
  // if it would pass the end.
  std::byte* next(Bytes bytes) {
    if (at_ + bytes > memory_.bytes()) at_ = 0;
    std::byte* part = memory_.data() + at_;
    at_ = (at_ + bytes + 255) / 256 * 256;
    return part;
  }

 private:
  Memory memory_;
  Bytes at_ = 0;
};

struct Timed {
  Seconds median = 0;
  double spread = 0;
};

class Bench {
 public:
  explicit Bench(bool quick) : quick_(quick) {
    for (int i = 0; i <= kWarmUp + kRepetitions; ++i) marks_.emplace_back(true);
  }

  GpuBench run() {
    products();
    attention();
    copies();
    launches();
    slowdowns();
    for (auto& [kind, table] : tables_) result_.times.ops.push_back(table);
    return std::move(result_);
  }

 private:
  Timed time_once(const std::function<void()>& enqueue) {
    ORRERY_CHECK_CUDA(cudaEventRecord(marks_[0].get(), stream_.get()));
    for (std::size_t i = 1; i < marks_.size(); ++i) {
      enqueue();
      ORRERY_CHECK_CUDA(cudaEventRecord(marks_[i].get(), stream_.get()));
    }
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(stream_.get()));
    std::vector<Seconds> times;
    for (std::size_t i = kWarmUp + 1; i < marks_.size(); ++i) {
      float ms = 0;
      ORRERY_CHECK_CUDA(cudaEventElapsedTime(&ms, marks_[i - 1].get(), marks_[i].get()));
      times.push_back(static_cast<double>(ms) * 1e-3);
    }
    std::sort(times.begin(), times.end());
    const std::size_t n = times.size();
    return {times[n / 2], (times[n * 3 / 4] - times[n / 4]) / std::max(times[n / 2], 1e-9)};
  }

  // Median time of the work that `enqueue` enqueues; measured again if the repetitions scatter too much.
  Timed time(const std::function<void()>& enqueue) {
    const Timed first = time_once(enqueue);
    if (first.spread <= kMostSpread) return first;
    const Timed second = time_once(enqueue);
    return second.spread < first.spread ? second : first;
  }

  bool add(const Work& work, const Timed& t) {
    if (t.spread > kMostSpread) {
      ++result_.refused;
      return false;
    }
    const WorkShape shape = shape_of(work, kWidth);
    OpTable& table = tables_[shape.kind];
    table.kind = shape.kind;
    table.samples.push_back({shape.sizes, shape.amount, t.median, t.spread, kRepetitions});
    return true;
  }

  void products() {
    Ring a(noise(kRing)), b(noise(kRing)), c(Memory(Memory::Place::device, kRing));
    ORRERY_CHECK_CUDA(cudaMemsetAsync(c.memory().data(), 0, static_cast<std::size_t>(kRing), stream_.get()));
    for (const Gemm& work : bench_products(quick_)) product(work, a, b, c);
  }

  // C(m, n) of A(m, k) and B(k, n), stored as the role has them; each call uses other parts of the rings.
  void product(const Gemm& work, Ring& a, Ring& b, Ring& c) {
    constexpr auto bf16 = gpu::Type::bf16;
    const auto [m, n, k] = std::array{work.m, work.n, work.k};
    const bool weights = work.role == Gemm::Role::weight_gradient, output = work.role == Gemm::Role::output;
    const auto next = [&] {
      gpu::Product p;
      p.transposed = {weights, output};
      p.a = gpu::matrix(gpu::ConstArray{a.next(m * k * kWidth), bf16}, weights ? k : m, weights ? m : k);
      p.b = gpu::matrix(gpu::ConstArray{b.next(k * n * kWidth), bf16}, output ? n : k, output ? k : n);
      p.c = gpu::matrix(gpu::Array{c.next(m * n * work.result_bytes), work.result_bytes == 4 ? gpu::Type::fp32 : bf16},
                        m, n);
      p.beta = work.accumulate ? 1 : 0;
      return p;
    };
    const Timed t = time([&] { products_.multiply(next(), stream_.get()); });
    if (!add(work, t)) return;
    result_.products.push_back({shape_of(work, kWidth).kind, m, n, k, t.median, products_.algorithm(next())});
  }

  void attention() {
    Ring qkv(noise(kRing)), dy(noise(kRing)), y(noise(kRing)), d(Memory(Memory::Place::device, kRing));
    const Memory lse(Memory::Place::device, kBenchRows * 32 * 4);
    for (const FlashAttention& a : bench_attention(quick_)) attend(a, qkv, dy, y, d, lse);
  }

  void attend(FlashAttention a, Ring& qkv, Ring& dy, Ring& y, Ring& d, const Memory& lse) {
    const std::int64_t rows = a.batch * a.query, packed = (a.heads + 2 * a.kv_heads) * a.head_dim;
    const std::int64_t flat = a.heads * a.head_dim;
    const auto heads = [&](std::byte* data, std::int64_t columns, std::int64_t first, std::int64_t count) {
      return heads_of(gpu::matrix(gpu::Array{data, gpu::Type::bf16}, rows, columns), a.batch, first, count, a.head_dim);
    };
    struct Packed {
      gpu::Heads q, k, v;
    };
    const auto parts = [&](Ring& ring) {
      std::byte* data = ring.next(rows * packed * kWidth);
      return Packed{heads(data, packed, 0, a.heads), heads(data, packed, a.heads, a.kv_heads),
                    heads(data, packed, a.heads + a.kv_heads, a.kv_heads)};
    };
    const auto whole = [&](Ring& ring) { return heads(ring.next(rows * flat * kWidth), flat, 0, a.heads); };
    const float scale = 1.0F / std::sqrt(static_cast<float>(a.head_dim));
    auto* saved = reinterpret_cast<float*>(lse.data());
    add(a, time([&] {
          const Packed in = parts(qkv);
          gpu::attention(in.q, in.k, in.v, scale, {}, whole(y), saved, stream_.get());
        }));
    const Packed any = parts(qkv);
    const Memory workspace(Memory::Place::device, gpu::attention_gradient_workspace(any.q, any.k));
    a.direction = Direction::backward;
    add(a, time([&] {
          const Packed in = parts(qkv), gradient = parts(d);
          gpu::attention_gradient({in.q, in.k, in.v, whole(y), saved}, whole(dy), scale, {}, gradient.q, gradient.k,
                                  gradient.v, {workspace.data(), workspace.bytes()}, stream_.get());
        }));
  }

  void copies() {
    constexpr Bytes kMost = Bytes{256} << 20;
    const Memory host(Memory::Place::host, kMost), a(Memory::Place::device, kMost), b(Memory::Place::device, kMost);
    for (Bytes bytes = 64 << 10; bytes <= kMost; bytes *= quick_ ? 64 : 4) {
      const auto copy = [&](const char* kind, const Memory& to, const Memory& from, cudaMemcpyKind way) {
        const Timed t = time([&] {
          ORRERY_CHECK_CUDA(
              cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(bytes), way, stream_.get()));
        });
        result_.copies.push_back({kind, bytes, t.median});
      };
      copy("host to device", a, host, cudaMemcpyHostToDevice);
      copy("device to host", host, a, cudaMemcpyDeviceToHost);
      copy("device to device", b, a, cudaMemcpyDeviceToDevice);
    }
  }

  void launches() {
    const Memory memory(Memory::Place::device, 4);
    const auto launch = [&] { gpu::fill(1, 0, {memory.data(), gpu::Type::fp32}, stream_.get()); };
    for (int i = 0; i < kLaunches / 4; ++i) launch();
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(stream_.get()));
    const Picoseconds begin = host_now();
    for (int i = 0; i < kLaunches; ++i) launch();
    const Picoseconds enqueued = host_now();
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(stream_.get()));
    result_.launch_host = seconds(enqueued - begin) / kLaunches;
    result_.launch_device = seconds(host_now() - begin) / kLaunches;
  }

  // Measures how much longer matrix products take while another stream copies to the host, or sums arrays.
  void slowdowns() {
    constexpr std::int64_t kSide = 4096;
    const Memory a = noise(kSide * kSide * kWidth), c(Memory::Place::device, kSide * kSide * kWidth);
    const auto multiply = [&] {
      const gpu::Matrix x = gpu::matrix(gpu::Array{a.data(), gpu::Type::bf16}, kSide, kSide);
      products_.linear(x, x, {}, gpu::matrix(gpu::Array{c.data(), gpu::Type::bf16}, kSide, kSide), stream_.get());
    };
    constexpr Bytes kMoved = Bytes{512} << 20;
    const Memory host(Memory::Place::host, kMoved), device(Memory::Place::device, 2 * kMoved);
    Stream other;
    const Seconds alone = time(multiply).median;
    ORRERY_CHECK_CUDA(cudaMemcpyAsync(host.data(), device.data(), static_cast<std::size_t>(kMoved),
                                      cudaMemcpyDeviceToHost, other.get()));
    result_.slowdown_by_copy = time_once(multiply).median / alone;
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(other.get()));
    for (int i = 0; i < 40; ++i)
      gpu::accumulate(kMoved / 4, {device.data(), gpu::Type::fp32}, {device.data() + kMoved, gpu::Type::fp32},
                      other.get());
    result_.slowdown_by_sum = time_once(multiply).median / alone;
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(other.get()));
  }

  bool quick_;
  Stream stream_;
  std::vector<Event> marks_;
  gpu::Products products_;
  std::map<std::string, OpTable> tables_;
  GpuBench result_;
};

}  // namespace

GpuBench bench_gpu(bool quick) { return Bench(quick).run(); }

std::string to_json(const GpuBench& bench) {
  using nlohmann::ordered_json;
  ordered_json products = ordered_json::array(), copies = ordered_json::array();
  for (const ChosenProduct& p : bench.products) {
    const kernels::cuda::Algorithm& a = p.algorithm;
    products.push_back({{"kind", p.kind},
                        {"m", p.m},
                        {"n", p.n},
                        {"k", p.k},
                        {"us", p.seconds * 1e6},
                        {"algorithm", a.id},
                        {"tile", a.tile},
                        {"tile_rows", a.tile_rows},
                        {"tile_columns", a.tile_columns},
                        {"stages", a.stages},
                        {"split_k", a.split_k},
                        {"cluster", a.cluster},
                        {"waves", a.waves}});
  }
  for (const CopySample& c : bench.copies)
    copies.push_back({{"kind", c.kind}, {"bytes", c.bytes}, {"us", c.seconds * 1e6}});
  return ordered_json{{"schema", "orrery.gpu_bench/1"},
                      {"launch_host_us", bench.launch_host * 1e6},
                      {"launch_device_us", bench.launch_device * 1e6},
                      {"slowdown_by_copy", bench.slowdown_by_copy},
                      {"slowdown_by_sum", bench.slowdown_by_sum},
                      {"refused", bench.refused},
                      {"copies", copies},
                      {"products", products},
                      {"measured", json_of(bench.times)}}
             .dump(1) +
         '\n';
}

}  // namespace orrery::cuda
