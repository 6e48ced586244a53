#pragma once

#include <string>

#include "sim/predict/predict.h"

namespace orrery {

// PassLimits says what a pass of generation spends its time on, as shares of the time from one pass to the next, which
// sum to 1. In a pipeline, where passes follow each other while others run, transfers and launches of one pass alone
// may wait for longer than the time that compute leaves; they then share that time. A matrix
// product counts as reading weights if moving the bytes of the product takes longer, at the GPU's memory bandwidth,
// than the product's operations take at the peak rate of the precision; else as computing.
struct PassLimits {
  double weights = 0;   // products that wait for weights
  double cache = 0;     // attention that reads the cache of keys and values
  double products = 0;  // products that compute, and attention among new tokens
  double kernels = 0;   // all other kernels: norms, activations, copies
  double links = 0;     // transfers that compute waits for
  double launch = 0;    // waiting for the host to launch
  double host = 0;      // the host's work between two passes (software.step_us)
  double drafts = 0;    // proposing tokens for the next pass to check (generate.drafts)
  double idle = 0;      // waiting for other pipeline stages or ranks
};

// The limits of one simulated pass, a mean over its ranks. period_s: seconds from one pass to the next; host_s: those
// of the host's work between them; drafts_s: those of proposing tokens.
PassLimits pass_limits(const Spec& spec, const Prediction& pass, double period_s, double host_s, double drafts_s = 0);
// The largest shares, of at least a twentieth: "weights 61 %, links 19 %, keys and values 12 %".
std::string text_of(const PassLimits& limits);
// Calls f(name, share) for every share, in the order of the fields: the names that reports print.
template <class F>
void for_limits(const PassLimits& l, const F& f) {
  f("weights", l.weights);
  f("keys and values", l.cache);
  f("products", l.products);
  f("other kernels", l.kernels);
  f("links", l.links);
  f("launch", l.launch);
  f("host between passes", l.host);
  f("drafts", l.drafts);
  f("idle", l.idle);
}

// The bytes that one rank reads from GPU memory in a pass of generation: the weights of its matrix products, once for
// each micro-batch and without experts that no token chose, and the cached keys and values that its attention reads.
struct PassReads {
  double weights = 0, cache = 0;

  double sum() const { return weights + cache; }
};

// Returns the reads of the rank that reads the most.
PassReads pass_reads(const Plan& plan);

}  // namespace orrery
