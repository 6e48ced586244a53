#include "exec/cuda/gpu_bench.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>

#include <nlohmann/json.hpp>

#include "exec/cuda/handles.h"
#include "exec/cuda/stopwatch.h"
#include "exec/host/lanes.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/elementwise.h"
#include "models/trace/bench_shapes.h"
#include "models/trace/measured_json.h"

namespace orrery::cuda {
namespace {

namespace gpu = kernels::cuda;

// A measurement is kept only if the interquartile distance of its repetitions is at most this fraction of their median.
constexpr double kMostSpread = 0.2;
constexpr int kLaunches = 2000;
constexpr std::size_t kBlock = 16;  // number of measurements between two timings of a fixed matrix product
constexpr Bytes kWidth = kBenchWidth;
// Bytes of the memory from which successive calls take their operands, each call the next part, so that no call finds
// its operand in the L2 cache: no GPU has an L2 cache of more than 126 MB (B200; chipsandcheese.com, "Nvidia's B200:
// Keeping the CUDA Juggernaut Rolling"). The largest result of a call takes 1.65 GB.
constexpr Bytes kRing = Bytes{2} << 30;

// Device memory of which every call takes another part, so that no call finds its operands in the L2 cache.
class Ring {
 public:
  explicit Ring(Memory memory) : memory_(std::move(memory)) {}

  const Memory& memory() const { return memory_; }
  // Returns the next part of `bytes` bytes, aligned to 256 bytes as allocations are; begins again at the start of the
  // memory if the part would pass the end.
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

// One measurement. work: the op that is measured. enqueue: enqueues the op once on the bench's stream. algorithm: for a
// matrix product, returns the algorithm that cuBLASLt chose.
struct Item {
  Work work;
  std::function<void()> enqueue;
  std::function<gpu::Algorithm()> algorithm;
};

class Bench {
 public:
  Bench(bool quick, Sensors& sensors) : quick_(quick), sensors_(sensors), begun_(host_now()), watch_(sensors) {}

  GpuBench run() {
    products();
    attention();
    copies();
    launches();
    slowdowns();
    for (auto& [kind, table] : tables_) result_.times.ops.push_back(table);
    result_.drift = watch_.drift();
    result_.repeated = watch_.repeated();
    result_.conditions = sensors_.since(begun_, "bench");
    return std::move(result_);
  }

 private:
  bool add(const Work& work, const Timed& t) {
    if (t.spread > kMostSpread) {
      ++result_.refused;
      return false;
    }
    const WorkShape shape = shape_of(work, kWidth);
    OpTable& table = tables_[shape.kind];
    table.kind = shape.kind;
    table.samples.push_back({shape.sizes, shape.amount, t.median, t.spread, Stopwatch::kRepetitions});
    return true;
  }

  void measure(const std::vector<Item>& items) {
    for (std::size_t first = 0; first < items.size(); first += kBlock) {
      const std::span<const Item> block(&items[first], std::min(kBlock, items.size() - first));
      std::vector<Stopwatch::Work> works;
      for (const Item& item : block) works.push_back(item.enqueue);
      const std::vector<Timed> times = watch_.block(works);
      for (std::size_t i = 0; i < block.size(); ++i) keep(block[i], times[i]);
    }
  }

  void keep(const Item& item, const Timed& t) {
    if (!add(item.work, t) || !item.algorithm) return;
    const Gemm& g = std::get<Gemm>(item.work);
    result_.products.push_back({shape_of(item.work, kWidth).kind, g.m, g.n, g.k, t.median, item.algorithm(), t.sm_MHz});
  }

  void products() {
    Ring a(noise(kRing)), b(noise(kRing)), c(Memory(Memory::Place::device, kRing));
    ORRERY_CHECK_CUDA(cudaMemsetAsync(c.memory().data(), 0, static_cast<std::size_t>(kRing), watch_.stream()));
    std::vector<Item> items;
    for (const Gemm& work : bench_products(quick_)) items.push_back(product(work, a, b, c));
    measure(items);
  }

  // Describes the measurement of a matrix product C(m, n) = A(m, k) B(k, n). The op's role says which of A and B is
  // stored transposed. Each call takes the next parts of the memory of the rings a, b and c (class Ring).
  Item product(const Gemm& work, Ring& a, Ring& b, Ring& c) {
    const auto next = [&a, &b, &c, work] {
      constexpr auto bf16 = gpu::Type::bf16;
      const auto [m, n, k] = std::array{work.m, work.n, work.k};
      const bool weights = work.role == Gemm::Role::weight_gradient, output = work.role == Gemm::Role::output;
      gpu::Product p;
      p.transposed = {weights, output};
      p.a = gpu::matrix(gpu::ConstArray{a.next(m * k * kWidth), bf16}, weights ? k : m, weights ? m : k);
      p.b = gpu::matrix(gpu::ConstArray{b.next(k * n * kWidth), bf16}, output ? n : k, output ? k : n);
      p.c = gpu::matrix(gpu::Array{c.next(m * n * work.result_bytes), work.result_bytes == 4 ? gpu::Type::fp32 : bf16},
                        m, n);
      p.beta = work.accumulate ? 1 : 0;
      return p;
    };
    return {work, [this, next] { watch_.products().multiply(next(), watch_.stream()); },
            [this, next] { return watch_.products().algorithm(next()); }};
  }

  void attention() {
    Ring qkv(noise(kRing)), dy(noise(kRing)), y(noise(kRing)), d(Memory(Memory::Place::device, kRing));
    const Memory lse(Memory::Place::device, kBenchRows * 32 * 4);
    auto* const saved = reinterpret_cast<float*>(lse.data());
    Bytes scratch = 0;
    std::vector<Item> items;
    std::vector<FlashAttention> all = bench_attention(quick_);
    for (const FlashAttention& a : all) {
      const Packed any = parts(a, qkv);
      scratch = std::max<Bytes>(scratch, gpu::attention_gradient_workspace(any.q, any.k));
    }
    const Memory workspace(Memory::Place::device, scratch);
    for (FlashAttention a : all) {
      const float scale = 1.0F / std::sqrt(static_cast<float>(a.head_dim));
      items.push_back({a,
                       [&, a, scale, saved] {
                         const Packed in = parts(a, qkv);
                         gpu::attention(in.q, in.k, in.v, scale, {}, whole(a, y), saved, watch_.stream());
                       },
                       {}});
      a.direction = Direction::backward;
      items.push_back({a,
                       [&, a, scale, saved] {
                         const Packed in = parts(a, qkv), gradient = parts(a, d);
                         gpu::attention_gradient({in.q, in.k, in.v, whole(a, y), saved}, whole(a, dy), scale, {},
                                                 gradient.q, gradient.k, gradient.v,
                                                 {workspace.data(), workspace.bytes()}, watch_.stream());
                       },
                       {}});
    }
    measure(items);
  }

  struct Packed {
    gpu::Heads q, k, v;
  };
  static gpu::Heads heads(const FlashAttention& a, std::byte* data, std::int64_t columns, std::int64_t first,
                          std::int64_t count) {
    const gpu::Matrix all = gpu::matrix(gpu::Array{data, gpu::Type::bf16}, a.batch * a.query, columns);
    return heads_of(all, a.batch, first, count, a.head_dim);
  }
  // Returns queries, keys and values of an attention, packed in the next part of a ring's memory (class Ring).
  static Packed parts(const FlashAttention& a, Ring& ring) {
    const std::int64_t packed = (a.heads + 2 * a.kv_heads) * a.head_dim;
    std::byte* data = ring.next(a.batch * a.query * packed * kWidth);
    return {heads(a, data, packed, 0, a.heads), heads(a, data, packed, a.heads, a.kv_heads),
            heads(a, data, packed, a.heads + a.kv_heads, a.kv_heads)};
  }
  static gpu::Heads whole(const FlashAttention& a, Ring& ring) {
    const std::int64_t flat = a.heads * a.head_dim;
    return heads(a, ring.next(a.batch * a.query * flat * kWidth), flat, 0, a.heads);
  }

  void copies() {
    constexpr Bytes kMost = Bytes{256} << 20;
    const Memory host(Memory::Place::host, kMost), a(Memory::Place::device, kMost), b(Memory::Place::device, kMost);
    for (Bytes bytes = 64 << 10; bytes <= kMost; bytes *= quick_ ? 64 : 4) {
      const auto copy = [&](const char* kind, const Memory& to, const Memory& from, cudaMemcpyKind way) {
        const Timed t = watch_.time([&] {
          ORRERY_CHECK_CUDA(
              cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(bytes), way, watch_.stream()));
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
    const auto launch = [&] { gpu::fill(1, 0, {memory.data(), gpu::Type::fp32}, watch_.stream()); };
    for (int i = 0; i < kLaunches / 4; ++i) launch();
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(watch_.stream()));
    const Picoseconds begin = host_now();
    for (int i = 0; i < kLaunches; ++i) launch();
    const Picoseconds enqueued = host_now();
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(watch_.stream()));
    result_.launch_host = seconds(enqueued - begin) / kLaunches;
    result_.launch_device = seconds(host_now() - begin) / kLaunches;
  }

  // Measures how much longer matrix products take while another stream copies to the host, or sums arrays.
  void slowdowns() {
    const auto multiply = [this] { watch_.multiply_reference(); };
    constexpr Bytes kMoved = Bytes{512} << 20;
    const Memory host(Memory::Place::host, kMoved), device(Memory::Place::device, 2 * kMoved);
    Stream other;
    const Seconds alone = watch_.time(multiply).median;
    ORRERY_CHECK_CUDA(cudaMemcpyAsync(host.data(), device.data(), static_cast<std::size_t>(kMoved),
                                      cudaMemcpyDeviceToHost, other.get()));
    result_.slowdown_by_copy = watch_.time_once(multiply).median / alone;
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(other.get()));
    for (int i = 0; i < 40; ++i)
      gpu::accumulate(kMoved / 4, {device.data(), gpu::Type::fp32}, {device.data() + kMoved, gpu::Type::fp32},
                      other.get());
    result_.slowdown_by_sum = watch_.time_once(multiply).median / alone;
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(other.get()));
  }

  bool quick_;
  Sensors& sensors_;
  Picoseconds begun_;
  Stopwatch watch_;
  std::map<std::string, OpTable> tables_;
  GpuBench result_;
};

}  // namespace

GpuBench bench_gpu(bool quick, Sensors& sensors) { return Bench(quick, sensors).run(); }

std::string to_json(const GpuBench& bench, const std::vector<std::pair<std::string, std::string>>& fingerprint) {
  using nlohmann::ordered_json;
  ordered_json products = ordered_json::array(), copies = ordered_json::array();
  for (const ChosenProduct& p : bench.products) {
    const kernels::cuda::Algorithm& a = p.algorithm;
    products.push_back({{"kind", p.kind},
                        {"m", p.m},
                        {"n", p.n},
                        {"k", p.k},
                        {"us", p.seconds * 1e6},
                        {"sm_MHz", p.sm_MHz},
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
  ordered_json device = ordered_json::object();
  for (const auto& [key, value] : fingerprint) device[key] = value;
  return ordered_json{{"schema", "orrery.gpu_bench/1"},
                      {"fingerprint", device},
                      {"conditions", json_of(bench.conditions)},
                      {"drift", bench.drift},
                      {"repeated_blocks", bench.repeated},
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
