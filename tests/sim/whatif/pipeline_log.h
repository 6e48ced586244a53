// A log of a pipeline's steps, as a program that times its ops writes it, made by the recurrence that its ops obey.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace orrery::test {

// All forwards, then all backwards (GPipe), of `batches` micro-batches over stages of several data ranks, followed by a
// reduction over the data ranks of each stage and an update. Seconds of a forward are 1, of a backward 2, of a transfer
// between stages 0.25, of a reduction 0.5, of an update 0.125. A stage receives when its pass before has ended.
struct PipelineLog {
  int ranks = 2, stages = 3, batches = 4;
  int slow_rank = -1, slow_stage = -1;  // the rank's stage on which forwards and backwards take `slower` times as long
  double slower = 1.5;
  std::vector<double> clocks;  // [rank]: seconds by which its clock is ahead
  double step_time = 0;        // of the log that csv() wrote last
  std::string text;            // that log

  std::string csv() {
    text = "dp_rank,stage,step,op,micro_batch,lane,start_s,duration_s\n";
    std::vector<std::vector<double>> free(ranks, std::vector<double>(stages, 0));
    for (int r = 0; r < ranks; ++r) {
      pass(r, free[r], "forward", 1, false);
      pass(r, free[r], "backward", 2, true);
    }
    step_time = 0;
    for (int s = 0; s < stages; ++s) {
      double ready = 0;
      for (int r = 0; r < ranks; ++r) ready = std::max(ready, free[r][s]);
      for (int r = 0; r < ranks; ++r) {
        row(r, s, "grads-reduce-scatter", -1, "dp-comm", free[r][s], ready + 0.5 - free[r][s]);
        row(r, s, "optimizer", -1, "compute", ready + 0.5, 0.125);
      }
      step_time = std::max(step_time, ready + 0.625);
    }
    return text;
  }

  void pass(int r, std::vector<double>& free, const std::string& name, double time, bool up) {
    for (int k = 0; k < batches; ++k) {
      double arrives = 0;
      for (int i = 0; i < stages; ++i) {
        const int s = up ? stages - 1 - i : i;
        const double begin = std::max(free[s], arrives);
        const double takes = time * (r == slow_rank && s == slow_stage ? slower : 1);
        row(r, s, name + "-compute", k, "compute", begin, takes);
        free[s] = begin + takes;
        if (i + 1 == stages) continue;
        const int next = up ? s - 1 : s + 1;
        const double sent = std::max(free[s], free[next]);
        row(r, s, name + "-send", k, "send " + name, sent, 0.25);
        row(r, next, name + "-recv", k, "recv " + name, sent, 0.25);
        arrives = sent + 0.25;
      }
    }
  }

  void row(int r, int s, const std::string& op, int batch, const std::string& lane, double begin, double time) {
    const double clock = clocks.empty() ? 0 : clocks[static_cast<std::size_t>(r)];
    text += fmt::format("{},{},0,{},{},{},{},{}\n", r, s, op, batch, lane, begin + clock, time);
  }
};

}  // namespace orrery::test
