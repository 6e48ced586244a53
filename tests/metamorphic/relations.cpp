#include "tests/metamorphic/relations.h"

namespace orrery::test {
namespace {

constexpr Relation kRelations[] = {{"sane", sane, 1},
                                   {"determinism", determinism, .15},
                                   {"unfolded", unfolded, .35},
                                   {"faster_links", faster_links, .5},
                                   {"faster_gpu", faster_gpu, .6},
                                   {"lower_latency", lower_latency, .3},
                                   {"more_work", more_work, .35},
                                   {"sharding_order", sharding_order, .2},
                                   {"recompute_order", recompute_order, .25},
                                   {"weak_scaling", weak_scaling, .4},
                                   {"flops", flops, .4},
                                   {"volumes", volumes_by_form, .4},
                                   {"formulas", formulas, .25},
                                   {"traced", traced, .12},
                                   {"pictured", pictured, .3},
                                   {"checkpoints", checkpoints, .15},
                                   {"two_models", two_models, 1}};

}  // namespace

std::span<const Relation> relations() { return kRelations; }

}  // namespace orrery::test
