#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "viz/read/chrome_reader.h"
#include "viz/read/event_facts.h"

namespace orrery::traces {

// A layout of traces: the differences between versions of PyTorch's profiler. repeats: whether a kernel's "External id"
// repeats its correlation id (until 2.0). fractions: whether times have fractions of microseconds (from 2.2). drivers:
// whether kernels of torch.compile are launched by the driver (cuLaunchKernelEx).
struct Layout {
  const char* version;
  bool repeats, fractions, drivers;
};
inline constexpr std::array<Layout, 4> kLayouts = {{{"1.13", true, false, false},
                                                    {"2.0", true, false, true},
                                                    {"2.2", false, true, true},
                                                    {"2.10", false, true, true}}};

// A rank's training steps as the profiler writes them: in each step of 1000 us FSDP gathers parameters, a product and a
// kernel of torch.compile run, Megatron reduces over its tensor group, and the optimizer updates. Kernels begin 600 us
// after their launches, so that the last ones run after their step has ended on the host.
class TorchTrace {
 public:
  // slower: factor of the duration of matrix products.
  TorchTrace(const Layout& layout, int rank, double slower = 1) : layout_(layout), rank_(rank), slower_(slower) {}

  std::string text(int steps, int first_step = 5) {
    text_ = fmt::format(R"({{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": 2}},
"traceEvents": [{{"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {{"labels": "GPU 0"}}}})",
                        rank_);
    for (int s = 0; s < steps; ++s) step(first_step + s, 10'000 + 1000 * s);
    return text_ + "\n]}";
  }

 private:
  void event(std::string_view category, std::string_view name, std::string_view thread, double at, double lasts,
             std::string_view args) {
    text_ += fmt::format(
        ",\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", {}, \"ts\": {:.{}f}, \"dur\": {:.{}f}, "
        "\"args\": {{{}}}}}",
        category, name, thread, at, digits(), lasts, digits(), args);
  }
  int digits() const { return layout_.fractions ? 3 : 0; }
  static constexpr std::string_view kHostThread = R"("pid": 77, "tid": 77)";

  // An operator, the call in it that launches a kernel, and the kernel.
  void launch(std::string_view op, std::string_view dims, double at, std::string_view kernel, int stream, double lasts,
              std::string_view more = "") {
    const int id = ++external_, correlation = 9000 + id;
    event("cpu_op", op, kHostThread, at, 40, fmt::format(R"("External id": {}, "Ev Idx": {}{})", id, id, dims));
    const bool driver = layout_.drivers && kernel.starts_with("triton");
    event(driver ? "cuda_driver" : "cuda_runtime", driver ? "cuLaunchKernelEx" : "cudaLaunchKernel", kHostThread,
          at + 5, 10,
          fmt::format(R"("External id": {}, "cbid": 211, "correlation": {})", layout_.repeats ? correlation : id,
                      correlation));
    event("kernel", kernel, fmt::format(R"("pid": 0, "tid": {})", stream), at + 600, lasts,
          fmt::format(R"("External id": {}, "device": 0, "stream": {}, "correlation": {}{})",
                      layout_.repeats ? correlation : id, stream, correlation, more));
  }

  void step(int number, double at) {
    event("user_annotation", fmt::format("ProfilerStep#{}", number), kHostThread, at, 1000,
          fmt::format(R"("External id": {})", ++external_));
    event("user_annotation", "FullyShardedDataParallel.forward", kHostThread, at + 5, 300,
          fmt::format(R"("External id": {})", ++external_));
    launch(
        "nccl:_all_gather_base", "", at + 10, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20,
        30,
        R"(, "Collective name": "_allgather_base", "In msg nelems": 500, "Out msg nelems": 1000, "dtype": "BFloat16", "Group size": 2, "Process Group Description": "mesh_fsdp")");
    launch("aten::mm", R"(, "Input Dims": [[512, 256], [256, 1024]], "Input type": ["c10::BFloat16", "c10::BFloat16"])",
           at + 100, "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT", 7, 80 * slower_);
    launch("triton_poi_fused_gelu_0", "", at + 200, "triton_poi_fused_gelu_0", 7, 20);
    launch(
        "c10d::allreduce_", "", at + 300, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 24, 50,
        R"(, "Collective name": "allreduce", "In msg nelems": 4000, "Out msg nelems": 4000, "dtype": "BFloat16", "Group size": 2, "Process Group Description": "TENSOR_MODEL_PARALLEL_GROUP")");
    launch("Optimizer.step#AdamW.step", "", at + 900,
           "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>()", 7, 60);
  }

  Layout layout_;
  int rank_, external_ = 0;
  double slower_ = 1;
  std::string text_;
};

// Reads traces of ranks as one timeline; details come from the texts.
class TextDetails : public DetailSource {
 public:
  explicit TextDetails(std::string text) : text_(std::move(text)) {}
  const std::string& text() const { return text_; }
  Details details(std::uint64_t key) const override {
    JsonScan scan(text_, static_cast<std::size_t>(key));
    return members_of_object(scan.raw());
  }
  EventIds ids(std::uint64_t key) const override { return ids_of_event(text_, static_cast<std::size_t>(key)); }
  std::string shape(std::uint64_t key) const override {
    JsonScan scan(text_, static_cast<std::size_t>(key));
    return shape_of_event(scan.raw());
  }

 private:
  std::string text_;
};

inline Timeline read(const std::vector<std::string>& texts) {
  TimelineBuilder builder;
  std::optional<std::int64_t> origin;
  for (const std::string& text : texts) {
    const auto held = std::make_shared<TextDetails>(text);
    const std::uint64_t source = builder.add_source(held);
    ChromeReader(builder, held->text(), "trace", source, origin).read({});
  }
  return builder.finish();
}

// Returns the first event with a name; kNoEvent if there is none.
inline EventId event_named(const Timeline& t, std::string_view name) {
  for (EventId e = 0; e < t.events(); ++e) {
    if (t.name(e) == name) return e;
  }
  return kNoEvent;
}

}  // namespace orrery::traces
