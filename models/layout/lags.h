#pragma once

#include <vector>

#include "models/layout/draft.h"

namespace orrery {

// A list that describes how slow ranks affect one rank: its own slowdown, then the sorted slowdowns of slow ranks that
// use the same NIC. The slow ranks on the same NIC matter because transfers over a NIC that is shared with a slow rank
// overlap at other times than transfers over other NICs.
using Lag = std::vector<double>;

// Returns the Lag (list of slowdowns) of every rank. slow: the slowdown of every rank itself.
std::vector<Lag> lags_felt(const Cluster& c, const std::vector<double>& slow);

// Returns the factor by which the compute of a class of ranks is slowed down. A class may hold a complete tensor group
// of which only some ranks are slow (simplify_lags); it is as slow as the slowest.
double slowdown_of(const Spec& spec, const Plan& plan, const RankClass& ranks);

// Makes the Lag lists of many slow ranks equal, so that the plan of a large job stays small; the simulated step is then
// no longer equal to the unfolded step to the picosecond. First, all ranks of a tensor group get the group's largest
// list, because they wait for the slowest of them in every layer. Then only the `most` data-parallel replicas that are
// likely to be the slowest keep their slow ranks, and so do replicas whose ranks have the same lists as a kept one's.
// All other replicas are taken to have no slow ranks, because they only wait at the end of the step. A replica is
// ranked by the time of its pipeline's schedule with the costs of its stages' layers (order_length). Replicas in
// which some stage is slower than in every slower replica come first.
void simplify_lags(const Draft& draft, const GroupTable& tensor, std::size_t most, std::vector<Lag>& felt);

}  // namespace orrery
