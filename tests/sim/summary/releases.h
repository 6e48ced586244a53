#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

// One training step, as traces of PyTorch's profiler of different releases describe it.
namespace orrery::releases {

// A release of PyTorch by what it writes. Sources: pull requests of pytorch/kineto, and the releases of PyTorch that
// have them.
struct Release {
  std::string_view name;
  // "Kernel", "Operator", "Runtime" and "external id" instead of "kernel", "cpu_op", "cuda_runtime" and "External id"
  bool old_words = false;
  // whether "External id" of kernels and calls repeats their correlation id instead of naming their operator
  bool repeats_ids = false;
  bool driver_calls = false;  // whether cuLaunchKernel is recorded, by which Triton launches its kernels
  bool collectives = false;   // whether a kernel of NCCL says which collective it is (821, October 2023)
  bool group_ranks = false;   // whether it also says whose ranks take part
  bool nanoseconds = false;   // whether times have three decimals and count from a base (890 and 928, spring 2024)
  bool base_first = false;    // whether that base stands before the events (1054, March 2025)
  bool fsdp2 = false;         // whether the program shards by fully_shard, not by FullyShardedDataParallel
  std::string_view nccl;      // how the name of a kernel of NCCL begins, and its parameters
  std::string_view parameters;
};

inline constexpr Release kReleases[] = {
    {.name = "1.12", .old_words = true, .repeats_ids = true, .nccl = "ncclKernel_", .parameters = "(ncclWorkElem)"},
    {.name = "1.13", .repeats_ids = true, .nccl = "ncclKernel_", .parameters = "(ncclWorkElem)"},
    {.name = "2.0", .nccl = "ncclKernel_", .parameters = "(ncclDevComm*, unsigned long, ncclWork*)"},
    {.name = "2.1",
     .driver_calls = true,
     .nccl = "ncclKernel_",
     .parameters = "(ncclDevComm*, unsigned long, ncclWork*)"},
    {.name = "2.2",
     .driver_calls = true,
     .collectives = true,
     .nccl = "ncclDevKernel_",
     .parameters = "(ncclDevComm*, unsigned long, ncclWork*)"},
    {.name = "2.4",
     .driver_calls = true,
     .collectives = true,
     .group_ranks = true,
     .nanoseconds = true,
     .fsdp2 = true,
     .nccl = "ncclDevKernel_",
     .parameters = "(ncclDevComm*, unsigned long, ncclWork*)"},
    {.name = "2.10",
     .driver_calls = true,
     .collectives = true,
     .group_ranks = true,
     .nanoseconds = true,
     .base_first = true,
     .fsdp2 = true,
     .nccl = "ncclDevKernel_",
     .parameters = "(ncclDevKernelArgsStorage<4096ul>)"}};

// Writes the events of one rank.
class StepWriter {
 public:
  StepWriter(const Release& release, int rank) : r_(release), rank_(rank) {}

  std::string text() {
    step();
    const std::string base = R"("baseTimeNanoseconds": 1760000000000000000, "displayTimeUnit": "ms")";
    std::string head = R"("schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], )";
    head += fmt::format(R"("distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": 2}}, )", rank_);
    if (r_.nanoseconds && r_.base_first) head += base + ", ";
    const std::string tail = r_.nanoseconds && !r_.base_first ? ", " + base : "";
    return "{" + head + "\"traceEvents\": [\n" + events_ +
           R"({"name": "process_labels", "ph": "M", "ts": 0, "pid": 0, )"
           R"("tid": 0, "args": {"labels": "GPU 0"}}], "traceName": "trace.json")" +
           tail + "}";
  }

 private:
  static constexpr int kHost = 4000, kMain = 4000, kBackward = 4100;

  std::string us(double time, bool begins) const {
    if (r_.nanoseconds) return fmt::format("{:.3f}", time + (begins ? 5'000'000'000.0 : 0));
    return fmt::format("{}", static_cast<long long>(time) + (begins ? 1'682'725'898'000'000LL : 0));
  }
  void event(std::string_view category, std::string_view name, int pid, int tid, double begin, double time,
             const std::string& arguments) {
    events_ += fmt::format(
        "{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": {}, \"dur\": {}, "
        "\"args\": {{{}}}}},\n",
        category, name, pid, tid, us(begin, true), us(time, false), arguments);
  }
  void annotation(std::string_view name, double begin, double end, int thread = kMain) {
    event("user_annotation", name, kHost, thread, begin, end - begin, fmt::format("\"External id\": {}", ++id_));
  }
  // An operator, which becomes the one that launches.
  void op(std::string_view name, double begin, double end, int thread = kMain, const std::string& more = "") {
    event(r_.old_words ? "Operator" : "cpu_op", name, kHost, thread, begin, end - begin,
          fmt::format("\"External id\": {}{}", ++id_, more));
    operator_ = id_;
  }
  void product(std::string_view name, double begin, double end, int thread, std::string_view dims) {
    op(name, begin, end, thread,
       fmt::format(R"(, "Input Dims": {}, "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])", dims));
  }
  // A kernel and the call that launches it. by_driver: whether the call is one of the driver.
  void kernel(std::string_view name, double launch, double begin, double time, int stream, int thread = kMain,
              const std::string& more = "", bool by_driver = false) {
    const int correlation = ++correlation_, external = r_.repeats_ids ? correlation : operator_;
    const std::string ids =
        fmt::format(R"("{}xternal id": {}, "correlation": {})", r_.old_words ? 'e' : 'E', external, correlation);
    if (!by_driver || r_.driver_calls)
      event(by_driver      ? "cuda_driver"
            : r_.old_words ? "Runtime"
                           : "cuda_runtime",
            by_driver ? "cuLaunchKernel" : "cudaLaunchKernel", kHost, thread, launch, 5, ids);
    event(r_.old_words ? "Kernel" : "kernel", name, 0, stream, begin, time,
          fmt::format(R"({}, "queued": 0, "device": 0, "stream": {}{})", ids, stream, more));
  }
  std::string collective(std::string_view name, int elements) const {
    if (!r_.collectives) return "";
    std::string text = fmt::format(
        R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "Group size": 2, "dtype": "BFloat16")",
        name, elements, 2 * elements);
    if (r_.group_ranks)
      text +=
          R"(, "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]")";
    else
      text += R"(, "Process Group Name": "0")";
    return text;
  }
  void nccl(std::string_view title, std::string_view name, std::string_view device_function, int elements,
            double launch, double begin, int thread) {
    op("record_param_comms", launch - 4, launch + 8, thread, collective(name, elements));
    annotation(title, launch - 2, launch + 6, thread);
    kernel(fmt::format("{}{}{}", r_.nccl, device_function, r_.parameters), launch, begin, 100, 20, thread,
           collective(name, elements));
  }

  void step() {
    annotation("ProfilerStep#3", 0, 1000);
    annotation(r_.fsdp2 ? "FSDP::pre_forward (layers.0)" : "FullyShardedDataParallel._pre_forward", 10, 200);
    op("c10d::_allgather_base_", 15, 55);
    nccl("nccl:_all_gather_base", "_allgather_base", "AllGather_RING_LL", 4096, 25, 40, kMain);
    op("aten::linear", 200, 260);
    product("aten::addmm", 205, 250, kMain, "[[512], [2048, 256], [256, 512]]");
    kernel("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn", 210, 220, 100, 7);
    op("CompiledFunction", 270, 330);
    op("triton_poi_fused_gelu_0", 280, 300);
    kernel("triton_poi_fused_gelu_0", 285, 330, 30, 7, kMain, "", true);
    op("LinearWithGradAccumulationAndAsyncCommunication", 340, 380);
    product("aten::mm", 345, 375, kMain, "[[2048, 512], [512, 128]]");
    kernel("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN", 350, 370, 60, 7);
    op("_LayerNormLinear", 400, 430);
    kernel(
        "void transformer_engine::normalization::ln_fwd_tuned_kernel<transformer_engine::normalization::Kernel_traits"
        "<float, float> >(transformer_engine::normalization::ForwardKernelParams)",
        410, 440, 20, 7);
    backward();
    annotation("Optimizer.step#AdamW.step", 800, 900);
    op("aten::_fused_adamw_", 810, 890);
    kernel(
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
        "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4> >()",
        820, 850, 50, 7);
  }
  void backward() {
    op("autograd::engine::evaluate_function: AddmmBackward0", 500, 600, kBackward);
    op("AddmmBackward0", 505, 595, kBackward, R"(, "Input Dims": [[2048, 512]], "Input type": ["c10::BFloat16"])");
    product("aten::mm", 510, 560, kBackward, "[[2048, 512], [512, 256]]");
    kernel("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nn", 520, 540, 100, 7, kBackward);
    annotation(r_.fsdp2 ? "FSDP::post_backward_reduce (layers.0)" : "FullyShardedDataParallel._post_backward_hook", 610,
               700, kBackward);
    nccl("nccl:_reduce_scatter_base", "_reduce_scatter_base", "ReduceScatter_Sum_bf16_RING_LL", 8192, 620, 645,
         kBackward);
  }

  const Release& r_;
  int rank_, id_ = 0, operator_ = 0, correlation_ = 9000;
  std::string events_;
};

inline std::string step_of(const Release& release, int rank) { return StepWriter(release, rank).text(); }

}  // namespace orrery::releases
