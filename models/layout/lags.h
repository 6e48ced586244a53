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

// Makes the Lag lists of many slow ranks equal, so that the plan of a large job stays small; the simulated time of a
// step is then no longer exact. First, all ranks of a tensor group get the group's largest list, because they wait for
// the slowest of them in every layer. Then at most `most` different data-parallel replicas keep their slow ranks, and
// with them all replicas whose ranks have the same lists. All other replicas are taken to have no slow ranks, because
// they only wait at the end of the step. Preferred are the replicas whose pipeline takes longest, computed from the
// schedule and the costs of the stages' layers (order_length); before all others come those in which some stage is
// slower than the same stage of every replica that takes longer.
void simplify_lags(const Draft& draft, const GroupTable& tensor, std::size_t most, std::vector<Lag>& felt);

}  // namespace orrery
