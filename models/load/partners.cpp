// The rules of keys that mean nothing without another one.
#include "models/load/reader.h"
#include "models/schedule/schedules.h"

namespace orrery {

Broken partner_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Model& m = spec.model;
  if (s.tensor_depth > 1 && s.tensor_kind != "2.5d")
    return broken("tensor_depth", "tensor_depth: {} needs tensor_kind: 2.5d, not {}", s.tensor_depth, s.tensor_kind);
  if ((s.recompute.moe || s.recompute.moe_activation) && !m.moe)
    return broken("recompute", "recompute: {} has no experts to run again; leave moe and moe_activation out", m.name);
  if (s.recompute.mla_up_proj && !m.mla)
    return broken("recompute", "recompute: {} has no latent attention; leave mla_up_proj out", m.name);
  if (s.overlap.expert && !(m.moe && m.moe->shared_feed_forward > 0))
    return broken("overlap.expert", "overlap.expert: needs shared experts to compute meanwhile; leave it out");
  if (s.overlap.micro_batches && !weaves_if_asked(s.schedule, s.pipeline))
    return broken(
        "overlap.micro_batches",
        "overlap.micro_batches: weaves the orders of schedule interleaved, or 1f1b without a pipeline, not {}",
        s.schedule);
  if (spec.software.validates_after_update && s.sharding != Sharding::none)
    return broken("sharding", "software.validates_after_update: needs strategy.sharding none, not {}",
                  name_of(s.sharding));
  if (s.parameter_server && s.parameter_server->staleness > 0 && s.parameter_server->mode != "ssp")
    return broken("parameter_server", "parameter_server.staleness: {} needs mode: ssp, not {}",
                  s.parameter_server->staleness, s.parameter_server->mode);
  if (s.offload.activation_layers && s.offload.activations == Device::none)
    return broken("offload.activations.layers", "offload.activations.layers: needs a device: cpu");
  return {};
}

}  // namespace orrery
