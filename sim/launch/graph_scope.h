#pragma once

#include <string>
#include <vector>

#include "sim/launch/spec_values.h"

namespace orrery {

// Translates what a launch file of Megatron-Core says of CUDA graphs (launch.graph_impl: none, local,
// transformer_engine or full_iteration; launch.graph_scope: names of parts of a layer) into software.cuda_graphs and
// software.cuda_graph_scope. Graphs of no named part hold whole layers; a scope alone asks for no graphs. What is not
// modelled is remarked on.
void resolve_graphs(SpecValues& v, std::vector<std::string>& remarks);

}  // namespace orrery
