#include "sim/formulas.h"

#include <map>

#include <fmt/format.h>

#include "models/blocks.h"
#include "models/sharding.h"

namespace orrery {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

std::int64_t group_size(const Plan& plan, Dimension d) {
  const auto& groups = plan.dimensions[static_cast<std::size_t>(d)].groups;
  return groups.empty() ? 1 : static_cast<std::int64_t>(groups.front().size());
}

double simulated_bytes(const Report& report, std::initializer_list<Dimension> groups) {
  double sum = 0;
  for (const CommunicationRow& row : report.communication) {
    for (const Dimension d : groups) sum += row.group == name_of(d) ? row.bytes_per_gpu : 0;
  }
  return sum;
}

double average_elements(const Plan& plan) {
  double sum = 0;
  for (std::size_t s = 0; s < plan.slots.size(); ++s) {
    sum += real(elements_of(plan, s)) * real(plan.slots[s].multiplicity);
  }
  return sum / real(plan.ranks);
}

// What one micro-batch's hidden states take on a rank of the tensor group, before sequence parallelism cuts them.
double hidden_bytes(const Spec& spec) {
  const Strategy& s = spec.strategy;
  return real(s.micro_batch) * real(spec.sequence / s.context) * real(spec.model.hidden) *
         real(storage_bytes(s.precision));
}

// techniques of data parallelism by what they send: reductions in gradient width g, gathers in parameter width w.
Volume data_volume(const Spec& spec, const Plan& plan) {
  const Strategy& s = spec.strategy;
  const ShardingRow& row = row_of(s.sharding);
  const double n = real(group_size(plan, Dimension::data)), r = real(group_size(plan, Dimension::replicate));
  const double g = real(storage_bytes(s.gradient_precision)), w = real(storage_bytes(s.precision));
  const double m = real(s.micro_batches()), elements = average_elements(plan);
  Volume v{.what = "data"};
  double per_parameter = 0;
  if (!row.shards_optimizer) {
    v.formula = "2Ψ·g";
    per_parameter = 2 * g;
  } else if (!unit_gradients(spec, row)) {
    v.formula = "Ψ·g + Ψ·w";
    per_parameter = g + w;
  } else if (!row.shards_parameters) {
    v.formula = "mΨ·g + Ψ·w";
    per_parameter = m * g + w;
  } else {
    v.formula = row.reshards_after_forward ? "mΨ·g + 2mΨ·w" : "mΨ·g + mΨ·w";
    per_parameter = m * g + (row.reshards_after_forward ? 2 : 1) * m * w;
  }
  v.formula = fmt::format("({})(N-1)/N", v.formula);
  v.bytes = per_parameter * elements * (n - 1) / n;
  if (r > 1) {
    v.formula += " + 2(Ψ/N)·g·(R-1)/R";
    v.bytes += 2 * elements / n * g * (r - 1) / r;
  }
  v.numbers = fmt::format("Ψ = {:.4g}, N = {}, m = {}, g = {} B, w = {} B", elements, n, m, g, w);
  if (r > 1) v.numbers += fmt::format(", R = {}", r);
  return v;
}

// Megatron's collectives (Shoeybi et al. 2019, Korthikanti et al. 2022): a layer all-reduces S twice in forward and
// twice in backward, or as much in reduce-scatters and all-gathers; two more all-gathers where backward collects its
// inputs again; forward's once more under full recomputation. In fp8 what is gathered takes half.
Volume tensor_volume(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const double t = real(s.tensor), blocks = spec.model.parallel_block ? 1 : 2;
  const double gather = s.sequence_parallel && is_eight_bit(s.precision) ? 0.5 : 1;
  const double again = s.sequence_parallel && spec.software.regather_input ? blocks * gather : 0;
  const double full = s.recompute.layer && !s.recompute.layers ? (1 + gather) * blocks : 0;
  const double layers = real(spec.model.layers) / real(s.pipeline), m = real(s.micro_batches());
  const double per_layer = 2 * (1 + gather) * blocks + again + full;
  return {.what = "tensor (layers)",
          .formula = fmt::format("{}·S·m·(L/p)·(t-1)/t", per_layer),
          .numbers =
              fmt::format("S = s·b·h·w/c = {:.4g} B, m = {}, L/p = {:.4g}, t = {}", hidden_bytes(spec), m, layers, t),
          .bytes = per_layer * hidden_bytes(spec) * m * layers * (t - 1) / t};
}

// Each of the p·v - 1 boundaries passes S forward and its gradient back.
Volume pipeline_volume(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const double cut = s.sequence_parallel ? real(s.tensor) : 1;
  const double boundaries = real(s.pipeline * s.virtual_stages - 1), m = real(s.micro_batches());
  return {.what = "pipeline",
          .formula = s.sequence_parallel ? "2m·(S/t)·(p·v-1)/p" : "2m·S·(p·v-1)/p",
          .numbers =
              fmt::format("S = {:.4g} B, m = {}, p = {}, v = {}", hidden_bytes(spec), m, s.pipeline, s.virtual_stages),
          .bytes = 2 * m * hidden_bytes(spec) / cut * boundaries / real(s.pipeline)};
}

}  // namespace

double StateFormula::bytes(double elements) const {
  const auto part = [&](Bytes each, bool sharded) { return real(each) * elements / (sharded ? real(shards) : 1); };
  return part(parameters, shards_parameters) + part(gradients, shards_gradients) + part(optimizer, shards_optimizer);
}

StateFormula state_formula(const Spec& spec, const Plan& plan) {
  const Strategy& s = spec.strategy;
  const ShardingRow& row = row_of(s.sharding);
  const Bytes width = storage_bytes(s.precision);
  StateFormula f;
  f.parameters = row.fp32_shards ? s.optimizer.master_bytes : width;
  f.gradients = storage_bytes(s.gradient_precision);
  f.optimizer = s.optimizer.kind == OptimizerKind::sgd ? 0 : 2 * s.optimizer.moment_bytes;
  if (width < s.optimizer.master_bytes && !row.fp32_shards) f.optimizer += s.optimizer.master_bytes;
  f.shards_parameters = row.shards_parameters;
  f.shards_gradients = unit_gradients(spec, row);
  f.shards_optimizer = row.shards_optimizer;
  f.shards = row.shards_optimizer ? group_size(plan, Dimension::data) : 1;
  return f;
}

std::string term(Bytes per_parameter, bool sharded) { return fmt::format("{}Ψ{}", per_parameter, sharded ? "/N" : ""); }

std::string text_of(const StateFormula& f) {
  Bytes whole = 0, cut = 0;
  (f.shards_parameters ? cut : whole) += f.parameters;
  (f.shards_gradients ? cut : whole) += f.gradients;
  (f.shards_optimizer ? cut : whole) += f.optimizer;
  if (cut == 0) return term(whole, false);
  return whole == 0 ? term(cut, true) : term(whole, false) + " + " + term(cut, true);
}

std::int64_t elements_of(const Plan& plan, std::size_t slot) {
  std::map<std::uint32_t, std::int64_t> by_unit;  // a tied output shares the embedding's unit, which comes first
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    const bool weights = block.role != BlockRole::unit && !outlives_steps(block.role) && f.unit != kNone;
    if (f.slot == slot && weights && f.micro_batch == 0) by_unit.try_emplace(f.unit, block.parameter_elements);
  }
  std::int64_t sum = 0;
  for (const auto& [unit, elements] : by_unit) sum += elements;
  return sum;
}

Bytes states_in_plan(const Plan& plan, std::size_t slot) {
  Bytes sum = 0;
  for (const Frame& f : plan.frames) {
    if (f.slot != slot || plan.blocks[f.block].role != BlockRole::state) continue;
    for (const Slot& buffer : plan.blocks[f.block].slots)
      sum += buffer.category == Category::buffers ? 0 : buffer.bytes;
  }
  return sum;
}

std::vector<Volume> volumes(const Spec& spec, const Plan& plan, const Report& report) {
  std::vector<Volume> list;
  const auto add = [&](bool used, Volume v, std::initializer_list<Dimension> groups) {
    if (!used) return;
    v.simulated = simulated_bytes(report, groups);
    list.push_back(std::move(v));
  };
  const Strategy& s = spec.strategy;
  add(s.data * s.context > 1, data_volume(spec, plan), {Dimension::data, Dimension::replicate});
  add(s.tensor > 1, tensor_volume(spec), {Dimension::tensor});
  add(s.pipeline > 1, pipeline_volume(spec), {Dimension::pipeline});
  return list;
}

std::optional<Bubble> bubble_formula(const Strategy& strategy) {
  struct Row {
    std::string_view schedule, formula;
    double (*share)(double p, double m, double v);
  };
  // GPipe: Huang et al. 2019; 1F1B and interleaved: Narayanan et al. 2021, section 2.2, as a share of the whole step.
  static constexpr Row rows[] = {
      {"naive", "(p-1)/p", [](double p, double, double) { return (p - 1) / p; }},
      {"gpipe", "(p-1)/(m+p-1)", [](double p, double m, double) { return (p - 1) / (m + p - 1); }},
      {"1f1b", "(p-1)/(m+p-1)", [](double p, double m, double) { return (p - 1) / (m + p - 1); }},
      {"dapple", "(p-1)/(m+p-1)", [](double p, double m, double) { return (p - 1) / (m + p - 1); }},
      // Qi et al. 2024, where F, I and W take the same time.
      {"zb-h1", "(p-1)/(3m+p-1)", [](double p, double m, double) { return (p - 1) / (3 * m + p - 1); }},
      {"interleaved", "(p-1)/(vm+p-1)", [](double p, double m, double v) { return (p - 1) / (v * m + p - 1); }}};
  for (const Row& row : rows) {
    if (row.schedule != strategy.schedule) continue;
    return Bubble{std::string(row.formula),
                  row.share(real(strategy.pipeline), real(strategy.micro_batches()), real(strategy.virtual_stages))};
  }
  return std::nullopt;
}

}  // namespace orrery
