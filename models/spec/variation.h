#pragma once

namespace orrery {

// How much equal GPUs and equal kernels differ, as standard deviations of normal distributions. gpus: the time of
// matrix products and attention on one GPU of the cluster over the mean GPU's, which lasts for a whole job (GPUs of one
// kind sustain different clocks at the same power limit). kernels: the time of one run of a kernel over the mean of all
// runs.
struct Variation {
  double gpus = 0, kernels = 0;
};

}  // namespace orrery
