#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/cluster.h"

namespace orrery {

// The nodes that a job's ranks lie on. Nodes, or NVLink domains that are larger than a node, are counted in sets of
// node_gpus GPUs.
class JobSeats {
 public:
  // The plan must outlive this object.
  JobSeats(const Plan& plan, const Cluster& cluster, std::int64_t node_gpus);

  std::int64_t node_gpus() const { return node_gpus_; }
  bool in_order() const { return places_.empty(); }  // whether the job has the cluster's first nodes
  const std::vector<std::int64_t>& places() const { return places_; }
  // the node of a rank, counted among the job's
  std::int64_t node_of(std::int64_t rank) const { return plan_.seat_of(rank) / node_gpus_; }
  // the node of a rank, counted among the cluster's
  std::int64_t place_of(std::int64_t rank) const;
  // the domain of `gpus` GPUs that a rank lies in
  std::int64_t domain_of(std::int64_t gpus, std::int64_t rank) const;

 private:
  const Plan& plan_;
  std::int64_t node_gpus_;
  std::vector<std::int64_t> places_;  // places_of() the job's nodes
};

// Returns for every worker a number of what its place has of its own: the site, if these are listed, and the rate of
// its NIC, if this alone is slow. The list is empty if no place has anything of the kind.
std::vector<std::int64_t> peculiar_places(const Plan& plan, const Cluster& cluster, const JobSeats& seats);

// Returns the number of GPUs of `sets` sets of `nodes` nodes each, at most a number above any cluster's.
std::int64_t gpus_of_sets(const Cluster& cluster, std::int64_t nodes, std::int64_t sets);

// Returns the sizes, in GPUs, of the sets of a cluster's GPUs beyond which links may be slower, farther or fuller than
// NICs are: pods, leaves, parts of the spine, groups of a dragonfly, sites of one size.
std::vector<std::int64_t> domain_sizes(const Cluster& cluster);

}  // namespace orrery
