#pragma once

#include <string>

#include "sim/predict/predict.h"

namespace orrery {

// PassLimits says what a pass of generation spends its time on, as shares of the pass's time, which sum to 1. A matrix
// product counts as reading weights if moving the bytes of the product takes longer, at the GPU's memory bandwidth,
// than the product's operations take at the peak rate of the precision; else as computing.
struct PassLimits {
  double weights = 0;   // products that wait for weights
  double cache = 0;     // attention that reads the cache of keys and values
  double products = 0;  // products that compute, and attention among new tokens
  double kernels = 0;   // all other kernels: norms, activations, copies
  double links = 0;     // transfers that compute waits for
  double launch = 0;    // waiting for the host to launch
  double idle = 0;      // waiting for other pipeline stages or ranks
};

// The limits of one simulated pass, a mean over its ranks.
PassLimits pass_limits(const Spec& spec, const Prediction& pass);
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
  f("idle", l.idle);
}

}  // namespace orrery
