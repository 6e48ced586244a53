#pragma once

#include "models/load/features.h"

namespace orrery::feature {

// Each of these features says whether a spec's cluster has a property; combinations.cpp lists the options with which
// the property does not work.
inline constexpr Feature kStragglers = {"cluster.stragglers", "stragglers", [](S s) {
                                          return !s.cluster.stragglers.empty() || s.cluster.straggler_share > 0;
                                        }};
inline constexpr Feature kVariation = {"cluster.variation", "variation",
                                       [](S s) { return s.cluster.variation.has_value(); }};
inline constexpr Feature kNetwork = {"cluster.network", "network", [](S s) { return s.cluster.network.has_value(); }};
inline constexpr Feature kFailures = {"cluster.failures", "failures",
                                      [](S s) { return s.cluster.failures.has_value(); }};

}  // namespace orrery::feature
