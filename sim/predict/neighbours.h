#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "sim/predict/predict.h"

namespace orrery {

// A job that runs on the cluster at the same time as others (cluster.network.neighbours).
struct NeighbourJob {
  std::string path;  // of its spec
  Spec spec;         // with the other jobs' load on its uplinks (Network::load)
  Profile profile;
  std::vector<std::int64_t> nodes;  // of the cluster, in the order of the job's ranks
  double use = 0;                   // share of the rate of its uplinks that its transfers use, over its step
  Seconds step = 0, alone = 0;      // its step, and what it would be without the others
};

// The jobs of a cluster, the first of which is the one that is asked for. Each job's neighbours take from its uplinks
// the share that they use on average, where both have nodes below the same uplinks; jobs that meet have at least equal
// shares (max-min fairness). A job that is slowed uses less: shares are found in rounds until they stay the same. Jobs
// are not in step with each other, so that no more than averages can be said. What a job uses of its fullest level of
// uplinks is taken to be used on every level where it meets others.
//
// Jobs get nodes in their order: each the first ones that its own placement gives and that are left. All have the first
// job's switches and faults; neighbours of a neighbour are left out, and neighbours have built-in profiles. Throws
// Error for a job that the nodes left are too few for, or whose nodes are of another kind.
std::vector<NeighbourJob> neighbours_of(const Spec& spec, const Profile& profile,
                                        const std::atomic<bool>* stop = nullptr);

// Predicts a spec among its neighbours, with a remark on each job.
Prediction predict_among_neighbours(const Spec& spec, Profile profile, bool unfolded, const std::atomic<bool>* stop);

}  // namespace orrery
