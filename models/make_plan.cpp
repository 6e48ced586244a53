#include "models/make_plan.h"

#include <fmt/format.h>

#include "models/check_plan.h"
#include "models/error.h"
#include "models/groups.h"
#include "models/plan_builder.h"
#include "models/schedule_file.h"
#include "models/stages.h"

namespace orrery {
namespace {

// Where a key was given: "spec.yaml:12: ", or "" when it was not.
std::string place_of(const Spec& spec, std::string_view key) {
  for (const Origin& o : spec.origins) {
    if (o.key.starts_with(key) && o.from.find(':') != std::string::npos) return o.from + ": ";
  }
  return "";
}

struct NotBuilt {
  bool asked;
  std::string_view key;
  std::string_view what = "";  // beyond the key itself
};

// What later versions will plan or price. Better a clear line than a prediction that silently leaves it out.
void refuse_what_is_not_built(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Recompute& r = s.recompute;
  const Cluster& c = spec.cluster;
  const std::vector<NotBuilt> features = {
      {spec.model.moe.has_value(), "model.moe"},
      {spec.model.mla.has_value(), "model.mla"},
      {spec.model.mtp_layers > 0, "model.mtp_layers"},
      {spec.model.parallel_block && spec.model.post_norms, "model.post_norms", " with parallel_block"},
      {s.context > 1, "strategy.context", " above 1"},
      {s.expert > 1 || s.expert_tensor > 1, "strategy.expert"},
      {s.tensor_kind != "1d", "strategy.tensor_kind", " other than 1d"},
      {s.offload.any() || s.offload.tiling > 1, "strategy.offload"},
      {s.partition_activations, "strategy.partition_activations"},
      {s.overlap.tensor && s.tensor > 1 && !s.sequence_parallel, "strategy.overlap.tensor",
       " without sequence_parallel"},
      {r.moe || r.moe_activation || r.mla_up_proj, "strategy.recompute", " of experts and latent attention"},
      {!c.stragglers.empty(), "cluster.stragglers"},
      {c.failures.has_value(), "cluster.failures"},
  };
  for (const NotBuilt& f : features) {
    if (!f.asked) continue;
    const std::string place = place_of(spec, f.key);
    const std::string model = place_of(spec, "model");
    if (place.empty() && f.key.starts_with("model."))
      throw Error(fmt::format("{}model: {} has {}{}, not built yet; choose another", model, spec.model.name,
                              f.key.substr(6), f.what));
    throw Error(fmt::format("{}{}{}: not built yet; leave it out", place, f.key, f.what));
  }
  const bool chunked = s.schedule == "file" || find_schedule(s.schedule).chunked;
  if (s.virtual_stages > 1 && (!chunked || s.pipeline == 1)) {
    throw Error(
        fmt::format("strategy.virtual_stages: {} needs a pipeline of several stages and a schedule with chunks, "
                    "e.g. interleaved; not pipeline: {} with {}",
                    s.virtual_stages, s.pipeline, s.schedule));
  }
  row_of(s.sharding);
}

}  // namespace

PlanBuilder::PlanBuilder(const Spec& spec)
    : spec_(spec),
      row_(row_of(spec.strategy.sharding)),
      context_(spec_, row_),
      layers_of_(stage_layers(spec)),
      gradient_width_(storage_bytes(spec.strategy.gradient_precision)),
      unit_gradients_(unit_gradients(spec, row_)) {
  std::int64_t first = 0;
  for (const std::int64_t n : layers_of_) {
    first_layer_.push_back(first);
    first += n;
  }
  plan_.ranks = spec.strategy.gpus();
  plan_.micro_batches = spec.strategy.micro_batches();
  plan_.element_bytes = context_.width;
  plan_.dimensions = make_groups(spec.strategy, row_.shards_optimizer, row_.hybrid, context_.kv_copies);
  if (row_.shards_optimizer) shards_ = group_size(Dimension::data);
  choose_schedule();
}

void PlanBuilder::choose_schedule() {
  const Strategy& s = spec_.strategy;
  ScheduleShape shape = {s.pipeline, s.micro_batches(), s.virtual_stages, {}};
  if (s.schedule == "file") {
    schedule_ = read_schedule(s.schedule_file, shape);
    context_.splits_backward = splits_backward(schedule_);
  } else {
    context_.splits_backward = find_schedule(s.schedule).splits;
    if (context_.splits_backward) shape.times = phase_times();
    schedule_ = make_schedule(s.schedule, shape);
  }
  if (context_.splits_backward && unit_gradients_)
    throw Error(
        fmt::format("{}strategy.sharding: {} reduces gradients micro-batch by micro-batch, but {} makes those of "
                    "weights later; choose zero1 or none",
                    place_of(spec_, "strategy.sharding"), row_.name, s.schedule));
  turns_ = order_transfers(schedule_);
}

std::int64_t PlanBuilder::group_size(Dimension d) const {
  return static_cast<std::int64_t>(plan_.dimensions[static_cast<std::size_t>(d)].groups.front().size());
}

Plan PlanBuilder::build() {
  for (std::int64_t stage = 0; stage < spec_.strategy.pipeline; ++stage) {
    slot_ = static_cast<std::uint32_t>(stage);
    lay_out(stage);
    emit_stage(stage);
  }
  plan_.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size())});
  link_matches();
  return std::move(plan_);
}

Plan make_plan(const Spec& spec) {
  refuse_what_is_not_built(spec);
  Plan plan = PlanBuilder(spec).build();
  check_plan(plan);
  return plan;
}

}  // namespace orrery
