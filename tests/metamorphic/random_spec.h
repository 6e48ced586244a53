#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/spec/cluster.h"
#include "tests/metamorphic/draw.h"

namespace orrery::test {

using Json = nlohmann::json;

// A spec of names and rows that the program's own tables have, so that a new schedule, sharding, model, machine or
// stack is drawn without a change here. Most are valid; what is not must be refused in one line.
// schedules: if given, a pipeline's is one of these.
Json random_spec(Draw& draw, const std::vector<std::string>& schedules = {});

// Parts of a random spec.
Json random_model(Draw& draw);
Json random_cluster(Draw& draw, std::int64_t gpus);
Cluster cluster_of(const Json& cluster);  // the built-in hardware that the names stand for
bool is_predicted(const Gpu& gpu);        // `orrery list gpus` says so

// The spec with another value at a path ("strategy.tensor"); a name in the way becomes a map of its name. null takes
// the key away.
Json with(Json spec, std::string_view path, const Json& value);

// The spec with one of its boolean keys inverted, chosen among those in Spec::origins.
Json with_a_switch_turned(Draw& draw, const Json& spec);

}  // namespace orrery::test
