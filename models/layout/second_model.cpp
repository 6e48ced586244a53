#include "models/layout/second_model.h"

#include "models/partition/layers_of_stages.h"

namespace orrery {

SecondContext::SecondContext(const BlockContext& trained)
    : spec(second_spec(trained.spec)), context(spec, trained.sharding), layers_of(stage_layers(spec)) {
  context.second = true;
  context.ends_meet = trained.ends_meet;
  context.ends_interleave = trained.ends_interleave;
  std::int64_t first = 0;
  for (const std::int64_t n : layers_of) {
    first_layer.push_back(first);
    first += n;
  }
}

}  // namespace orrery
