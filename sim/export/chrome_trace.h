#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"

namespace orrery {

struct ChromeTraceOptions {
  // Whether every class of ranks gets a trace file of its own (for out.json: out_rank0.json, out_rank8.json, ...), as
  // Holistic Trace Analysis needs.
  bool file_per_slot = false;
  std::string device;  // name of the GPU, for the trace's deviceProperties

  // How many times the simulated step is written to the trace, one after another. Memory samples must be given for all
  // of these repetitions.
  std::int64_t steps = 1;
  // The names of passes of equally many micro-batches, in order (generation: "prefill", "decode 1", ...), each of which
  // becomes an annotation of the host's thread, from its first task to its last; empty: none.
  std::vector<std::string> passes;
  // For each class of ranks, the bytes of keys and values in use during each of these passes, which become a counter;
  // empty: none.
  std::vector<std::vector<Bytes>> cache;
  // Further members of the trace's JSON object, as text: "\"name\": value". Not possible with file_per_slot (a file for
  // each class of ranks).
  std::string members;
};

// Writes a timeline in the JSON format of PyTorch's profiler, which chrome://tracing, the Perfetto UI and Holistic
// Trace Analysis read; if the path ends in .gz, the file is compressed. Each class of ranks is a process, named "stage
// 0 (ranks 0, 1, ... x16)", with a thread for each lane (stream) that has tasks and one for the host's launches. Each
// event is on one line; that of a task is
//
//   {"ph":"X","cat":"kernel","name":"qkv","pid":0,"tid":1,"ts":12.500,"dur":80.250,"args":{"device":0,"stream":1,
//    "correlation":3,"block":"layer","layer":4,"micro-batch":0,"chunk":0,"op":"qkv","phase":"forward","flops":...,
//    "bytes":...,"issued":6.500000,"entered":12.500000,"matched":12.500000,"ended":92.750000,"cause":"norm","cause
//    task":2}}
//
// correlation is the task's id, counted on from step to step. A transfer begins when its task has entered, as NCCL's
// kernels do; a slice inside it, until all ranks have entered (matched), names the rank that it waits for. cause is the
// task that the kernel waited for last, or "launch". Times are microseconds: ts and dur are rounded to nanoseconds
// (start and end each, so that neighbours touch and none overlap), those in args are exact. Arrows lead from launches
// to kernels and from sends to receives. Memory samples, sorted by class of ranks, become a counter for each process.
// A generation's trace has a list "orreryPasses" before its events: the name of each micro-batch's pass.
// Text is written piece by piece, so that memory stays bounded. Throws Error if a file cannot be written; OutputFile
// says what then remains of the file.
void write_chrome_trace(const std::string& path, const Plan& plan, const Trace& trace,
                        std::span<const MemorySample> samples = {}, const ChromeTraceOptions& options = {});

}  // namespace orrery
