#!/usr/bin/env python3
"""A trace of many events, laid out as PyTorch's profiler lays out a step's:

  kineto_events.py FILE EVENTS [old]   writes FILE (gzipped where its name ends with .gz) with EVENTS events, or a few
                                       more; old: kernels name no operators, as those of PyTorch 1.13

Of the events are 36 % operators, 22 % calls of the CUDA runtime, 31 % arrows between them and what they launch, 11 %
kernels and copies, as in a recorded step of a convolutional network. Operators come first, as the profiler writes them.
Times scatter by nanoseconds, as measured ones do. It is made to measure `orrery trace summarize`: 10 million events
take 2.5 GB, or 0.2 GB gzipped.
"""
import gzip
import sys

OPERATORS = ("aten::linear", "aten::addmm", "aten::add_", "aten::native_layer_norm", "aten::mul", "aten::copy_",
             "autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0", "aten::mm", "aten::sum",
             "aten::gelu", "aten::_scaled_dot_product_flash_attention", "aten::transpose", "aten::empty", "aten::view")
KERNELS = ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn",
           "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
           "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3>)",
           "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, "
           "c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)",
           "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
           "cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)",
           "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
           "triton_poi_fused_add_gelu_3")
HOST, THREADS, STREAMS = 41_000, (41_000, 41_377), (7, 7, 7, 20)
PER_KERNEL = 9  # events for a kernel: the kernel, two calls, three arrows and three or four operators


def scatter(number):
    """Nanoseconds between 0 and 499, without order."""
    return (number * 2654435761 >> 7) % 500


def operator(number, thread, time, duration):
    time, duration = time + scatter(number), duration - scatter(number + 1)
    return (f'  {{\n    "ph": "X", "cat": "cpu_op", "name": "{OPERATORS[number % len(OPERATORS)]}", "pid": {HOST}, '
            f'"tid": {thread},\n    "ts": {time / 1000:.3f}, "dur": {duration / 1000:.3f},\n'
            f'    "args": {{\n      "External id": {number + 1},"Record function id": 0, '
            f'"Sequence number": {number // 3}, "Fwd thread id": 0, "Ev Idx": {number}\n    }}\n  }},\n')


def arrow(end, number, process, thread, time):
    bind = ', "bp": "e"' if end == "f" else ""
    return (f'  {{\n    "ph": "{end}", "id": {number}, "pid": {process}, "tid": {thread}, "ts": {time / 1000:.3f},\n'
            f'    "cat": "ac2g", "name": "ac2g"{bind}\n  }},\n')


def call(name, number, thread, time):
    duration = 5_000 + scatter(number + 2)
    return (f'  {{\n    "ph": "X", "cat": "cuda_runtime", "name": "{name}", "pid": {HOST}, "tid": {thread},\n'
            f'    "ts": {time / 1000:.3f}, "dur": {duration / 1000:.3f},\n    "args": {{\n      '
            f'"External id": {number + 1},\n      "cbid": 211, "correlation": {number + 1}\n    }}\n  }},\n')


def kernel(launch, operation, time, duration):
    stream = STREAMS[launch // 2 % len(STREAMS)]
    return (f'  {{\n    "ph": "X", "cat": "kernel", "name": "{KERNELS[launch // 2 % len(KERNELS)]}", "pid": 0, '
            f'"tid": {stream},\n    "ts": {time / 1000:.3f}, "dur": {duration / 1000:.3f},\n    "args": {{\n      '
            f'"External id": {operation + 1},      "queued": 0, "device": 0, "context": 1,      "stream": {stream}, '
            f'"correlation": {launch + 1},      "registers per thread": 32,      "shared memory": 0,      '
            f'"blocks per SM": 4.740741,      "warps per SM": 75.851852,      "grid": [512, 1, 1],      '
            f'"block": [512, 1, 1],      "est. achieved occupancy %": 75\n    }}\n  }},\n')


def operators(launch):
    """The operators around one launch, outermost first."""
    count = 3 + (launch % 4 == 0)
    first, time = launch * 13 // 4 + (launch % 4 > 0), launch * 20_000
    thread = THREADS[launch % 2]
    return "".join(operator(first + i, thread, time + 500 * i, 16_000 - 1000 * i) for i in range(count))


def device(launch, old):
    time, begin = launch * 20_000 + 2_000 + scatter(launch), launch * 20_000 + 9_000 + scatter(launch + 3)
    thread = THREADS[launch % 2]
    return (call("cudaLaunchKernel", 2 * launch, thread, time) + arrow("s", 2 * launch, HOST, thread, time)
            + kernel(2 * launch, 2 * launch if old else operators_last(launch), begin,
                     5_000 + launch % 7 * 2_000 + scatter(launch + 5))
            + arrow("f", 2 * launch, 0, STREAMS[launch % len(STREAMS)], begin)
            + call("cudaEventQuery", 2 * launch + 1, thread, time + 6_000)
            + arrow("f", 2 * launch + 1, HOST, thread, time + 6_000))


def operators_last(launch):
    return launch * 13 // 4 + (launch % 4 > 0) + 2 + (launch % 4 == 0)


def main():
    path, launches = sys.argv[1], max(int(sys.argv[2]) * 4 // (4 * PER_KERNEL + 1), 1)
    with (gzip.open(path, "wt", compresslevel=5) if path.endswith(".gz") else open(path, "w")) as out:
        out.write('{\n  "schemaVersion": 1,\n  "distributedInfo": {"rank": 0},\n  "deviceProperties": [\n    {\n'
                  '      "id": 0, "name": "NVIDIA A100-SXM4-80GB"\n    }\n  ],\n  "traceEvents": [\n')
        for begin in range(0, launches, 4096):
            out.write("".join(operators(i) for i in range(begin, min(begin + 4096, launches))))
        for begin in range(0, launches, 4096):
            out.write("".join(device(i, "old" in sys.argv[3:]) for i in range(begin, min(begin + 4096, launches))))
        out.write('  {\n    "name": "process_labels", "ph": "M", "ts": 0, "pid": 0, "tid": 0,\n    "args": {\n'
                  '      "labels": "GPU 0"\n    }\n  }\n  ]\n}\n')


if __name__ == "__main__":
    main()
