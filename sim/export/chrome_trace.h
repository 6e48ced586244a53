#pragma once

#include <span>
#include <string>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

struct ChromeTraceOptions {
  // Whether every class of ranks gets a file of its own (out_rank0.json, out_rank8.json, ... for out.json), as Holistic
  // Trace Analysis needs.
  bool file_per_slot = false;
  std::string device;  // name of the GPU, for the trace's deviceProperties

  // Number of times that the trace's step is written, one after the other; memory samples are given for all these
  // steps.
  std::int64_t steps = 1;
  std::string members;  // further members of the JSON object of the trace: "\"name\": value"; not with file_per_slot
};

// Writes a timeline in the JSON of PyTorch's profiler, which chrome://tracing, the Perfetto UI and Holistic Trace
// Analysis read; a path that ends in .gz is compressed. One process per class of ranks, named "stage 0 (ranks 0, 1, ...
// x16)", with one thread per lane (stream) that has tasks and one for the host's launches. An event per line, a task as
//
//   {"ph":"X","cat":"kernel","name":"qkv","pid":0,"tid":1,"ts":12.500,"dur":80.250,"args":{"device":0,"stream":1,
//    "correlation":3,"block":"layer","layer":4,"micro-batch":0,"chunk":0,"op":"qkv","phase":"forward","flops":...,
//    "bytes":...,"issued":6.500000,"entered":12.500000,"matched":12.500000,"ended":92.750000,"cause":"norm","cause
//    task":2}}
//
// correlation is the task's id, counted on from step to step. A transfer's kernel begins when it has entered, as NCCL's
// does; until all ranks have entered (matched) a slice inside it names the rank for which it waits. cause is the task
// for which the kernel waited last, or "launch". Times are microseconds: ts and dur rounded to nanoseconds (start and
// end each, so that neighbours touch and none overlap), those in args exact. Arrows lead from launches to kernels and
// from sends to receives. Memory samples, sorted by class of ranks, become one counter per rank. The writer's own
// memory stays bounded: text goes out in pieces. Throws Error when a file cannot be written; OutputFile says what
// remains of it.
void write_chrome_trace(const std::string& path, const Plan& plan, const Trace& trace,
                        std::span<const MemorySample> samples = {}, const ChromeTraceOptions& options = {});

}  // namespace orrery
