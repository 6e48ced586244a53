#pragma once

#include <fstream>
#include <string>
#include <string_view>

#include "tests/temporary_folder.h"

// Small traces in the layouts that profilers write, in files that are gone after the test.
namespace orrery::layouts {

class TraceFile {
 public:
  explicit TraceFile(std::string_view text, std::string_view name = "trace.json")
      : path_(folder_.path(std::string(name))) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  const std::string& path() const { return path_; }

 private:
  test::TemporaryFolder folder_;
  std::string path_;
};

// PyTorch 1.13 on an NVIDIA GPU: whole microseconds; "External id" of a kernel repeats its correlation id, so that a
// kernel's operator is the one that ran on the thread of the launch. The operator of that number is another one.
inline constexpr std::string_view kTorch113 = R"trace({
"schemaVersion": 1,
"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}],
"distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 4},
"traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 40, "tid": 40, "ts": 1000, "dur": 400, "args": {"External id": 1, "Ev Idx": 0}},
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 40, "tid": 40, "ts": 1010, "dur": 60, "args": {"External id": 2, "Ev Idx": 1}},
{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 40, "tid": 40, "ts": 1020, "dur": 40, "args": {"External id": 3, "Ev Idx": 2}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 40, "tid": 40, "ts": 1030, "dur": 10, "args": {"External id": 900, "cbid": 211, "correlation": 900}},
{"ph": "s", "id": 900, "pid": 40, "tid": 40, "ts": 1030, "cat": "ac2g", "name": "ac2g"},
{"ph": "X", "cat": "kernel", "name": "ampere_sgemm_32x32_sliced1x4_tn", "pid": 0, "tid": 7, "ts": 1050, "dur": 100, "args": {"External id": 900, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 900, "grid": [8, 1, 1]}},
{"ph": "f", "id": 900, "pid": 0, "tid": 7, "ts": 1050, "cat": "ac2g", "name": "ac2g", "bp": "e"},
{"ph": "X", "cat": "cpu_op", "name": "aten::of_another_number", "pid": 40, "tid": 41, "ts": 1020, "dur": 40, "args": {"External id": 900, "Ev Idx": 3}},
{"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "pid": 40, "tid": 40, "ts": 1080, "dur": 20, "args": {"External id": 4}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 40, "tid": 40, "ts": 1085, "dur": 5, "args": {"External id": 901, "cbid": 211, "correlation": 901}},
{"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
                                  "pid" : 0, "tid" : 20, "ts" : 1100, "dur" : 150, "args" : {
  "External id" : 901, "device" : 0, "stream" : 20, "correlation" : 901
}
},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)", "pid": 0, "tid": 7, "ts": 1300, "dur": 50, "args": {"External id": 902, "device": 0, "stream": 7, "correlation": 902, "bytes": 8}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 40, "tid": 40, "ts": 1280, "dur": 15, "args": {"External id": 902, "cbid": 41, "correlation": 902}},
{"name": "process_name", "ph": "M", "ts": 1000, "pid": 40, "tid": 0, "args": {"name": "python3"}},
{"name": "process_labels", "ph": "M", "ts": 1000, "pid": 40, "tid": 0, "args": {"labels": "CPU"}},
{"name": "process_name", "ph": "M", "ts": 1000, "pid": 0, "tid": 0, "args": {"name": "python3"}},
{"name": "process_labels", "ph": "M", "ts": 1000, "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
{"name": "process_labels", "ph": "M", "ts": 1000, "pid": 1, "tid": 0, "args": {"labels": "GPU 1"}},
{"ph": "X", "cat": "Trace", "ts": 1000, "dur": 500, "pid": "Spans", "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)", "args": {"Op count": 0}}
],
"traceName": "trace.json"
}
)trace";

// PyTorch 2.1 with memory events: the kernel's "External id" is its operator's.
inline constexpr std::string_view kTorch21 = R"trace({
  "schemaVersion": 1,
  "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 5, "tid": 5, "ts": 100, "dur": 9, "args": {"External id": 12, "Record function id": 0, "Ev Idx": 4}},
  {"ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)", "pid": 1, "tid": 7, "ts": 110, "dur": 6, "args": {
  "External id" : 12, "device" : 1, "stream" : 7, "correlation" : 33
}
},
  {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 5, "tid": 5, "ts": 101, "args": {"Total Reserved": 4096, "Total Allocated": 1024, "Bytes": 512, "Addr": 1, "Device Id": 1, "Device Type": 1, "Ev Idx": 5}},
  {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 5, "tid": 5, "ts": 102, "args": {"Total Reserved": 4096, "Total Allocated": 512, "Bytes": -512, "Addr": 1, "Device Id": 1, "Device Type": 1, "Ev Idx": 6}},
  {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 5, "tid": 5, "ts": 103, "args": {"Total Reserved": 0, "Total Allocated": 99999, "Bytes": 9, "Addr": 2, "Device Id": -1, "Device Type": 0, "Ev Idx": 7}}
]
}
)trace";

// PyTorch 2.10: nanoseconds, times from a base, distributedInfo after the events, a Triton kernel by cuLaunchKernelEx.
inline constexpr std::string_view kTorch210 = R"trace({
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA B200", "totalGlobalMem": 191000000000}],
  "baseTimeNanoseconds": 1760000000000000000,
  "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "Torch-Compiled Region: 0/0", "pid": 9, "tid": 9, "ts": 5000.123, "dur": 90.5, "args": {"External id": 77, "Record function id": 3, "Ev Idx": 0}},
  {"ph": "X", "cat": "cpu_op", "name": "triton_poi_fused_add_relu_0", "pid": 9, "tid": 9, "ts": 5010.5, "dur": 20.25, "args": {"External id": 78, "Record function id": 0, "kernel_backend": "triton", "Ev Idx": 1}},
  {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernelEx", "pid": 9, "tid": 9, "ts": 5012.000, "dur": 3.500, "args": {"External id": 78, "cbid": 652, "correlation": 6}},
  {"ph": "X", "cat": "kernel", "name": "triton_poi_fused_add_relu_0", "pid": 0, "tid": 7, "ts": 5020.001, "dur": 4.999, "args": {"External id": 78, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 6, "registers per thread": 16}},
  {"ph": "X", "cat": "kernel", "name": "nvjet_sm100_tst_128x256_64x4_2x1_2cta_v_bz_TNT", "pid": 0, "tid": 7, "ts": 5026.000, "dur": 10.000, "args": {"External id": 79, "device": 0, "stream": 7, "correlation": 7, "grid": [1, 2, 3]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 5016.0, "dur": 8, "args": {"External id": 79, "Ev Idx": 2}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 9, "tid": 9, "ts": 5018.000, "dur": 2.000, "args": {"External id": 79, "cbid": 430, "correlation": 7}},
  {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#2", "pid": 0, "tid": 7, "ts": 5020.001, "dur": 16, "args": {"External id": 1}}
  ],
  "distributedInfo": {"backend": "nccl", "rank": 11, "world_size": 16, "pg_count": 1, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]},
  "traceName": "rank11.json"
}
)trace";

// ROCm 6 with roctracer: correlation ids differ from ids of operators, arguments are texts, names are Tensile's.
inline constexpr std::string_view kRocm = R"trace({
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "AMD Instinct MI250X"}],
  "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 597913, "tid": 597913, "ts": 4203669603430.100, "dur": 100.5, "args": {"External id": 8, "Record function id": 1, "Ev Idx": 3}},
  {"ph": "X", "cat": "cuda_runtime", "name": "hipExtModuleLaunchKernel", "pid": 597913, "tid": 597913, "ts": 4203669603438.301, "dur": 10.204, "args": {"External id": 8, "stream": "0x0", "cid": 153, "correlation": 117, "kind": "1"}},
  {"ph": "X", "cat": "kernel", "name": "Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1_SN", "pid": 2, "tid": 0, "ts": 4203669603454.206, "dur": 22.441, "args": {"External id": 8, "device": 2, "stream": 0, "correlation": 117, "kind": "Dispatch Kernel"}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Host -> Device)",
                                  "pid" : 2, "tid" : 0, "ts" : 4203669603480.000, "dur" : 5, "args" : {
  "External id" : 8, "device" : 2, "stream" : 0, "correlation" : 118, "kind" : "HtoD"
}
},
  {"name": "process_name", "ph": "M", "ts": 0, "pid": 2, "tid": 0, "args": {"name": "python3"}},
  {"name": "process_labels", "ph": "M", "ts": 0, "pid": 2, "tid": 0, "args": {"labels": "GPU 2"}}
  ]
}
)trace";

}  // namespace orrery::layouts
