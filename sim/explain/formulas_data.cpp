// Textbook formulas for the bytes that data parallelism moves.
#include "sim/explain/formulas_data.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/schedule/schedules.h"
#include "models/spec/gradients.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

double figure(std::int64_t n) { return static_cast<double>(n); }

// The number of ranks, but for those of a second model's own.
double ranks_that_train(const Plan& plan) {
  double ranks = 0;
  for (const RankClass& c : plan.classes) ranks += c.second ? 0 : figure(c.multiplicity);
  return ranks;
}

// Mean over all ranks of an amount (such as the number of weights), which of_class returns for a rank of each class;
// where a second model has ranks of its own, over those of the model that trains.
// sent: takes only the share (n - 1) / n of each amount, which a rank sends in a ring of the n ranks that hold copies
// of the same weights.
template <class Amount>
double average(const Plan& plan, Dimension copies, bool sent, const Amount& of_class) {
  double sum = 0;
  for (std::size_t s = 0; s < plan.classes.size(); ++s) {
    if (plan.classes[s].second) continue;
    const double n = figure(group_size(plan, copies, s));
    sum += figure(of_class(s)) * figure(plan.classes[s].multiplicity) * (sent ? (n - 1) / n : 1);
  }
  return sum / ranks_that_train(plan);
}

// Mean number of trained weights (elements) on a rank.
double average_elements(const Plan& plan, Dimension copies, bool sent = false, bool again = false) {
  return average(plan, copies, sent, [&](std::size_t s) { return elements_of(plan, s, copies, again); });
}

// Mean bytes of the frozen (not trained) weights on a rank, in the number format in which they are gathered.
double average_frozen(const Spec& spec, const Plan& plan, Dimension copies, bool sent, bool again) {
  return average(plan, copies, sent, [&](std::size_t s) { return frozen_gathers(spec, plan, s, copies, again); });
}

bool holds_word_table(const Block& block) {
  const auto is_table = [](const LocalParameter& p) { return p.name.starts_with("embedding.word"); };
  return block.role == BlockRole::embedding && std::any_of(block.parameters.begin(), block.parameters.end(), is_table);
}

// Mean number of elements, over all ranks, of tied token embeddings on stages that have both ends of the model. There
// the embedding lookup of a micro-batch and its logits are far apart in time, so that the gradients of the embeddings'
// FSDP unit are reduced twice, once for the lookup and once for the logits.
double table_used_twice(const Spec& spec, const Plan& plan) {
  if (!spec.model.tied_embeddings || spec.strategy.pipeline == 1) return 0;
  // For each class of ranks: the elements of its token embeddings, and whether its stage computes logits.
  std::map<std::uint32_t, std::pair<std::int64_t, bool>> by_slot;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (block.role == BlockRole::output) by_slot[f.slot].second = true;
    if (!holds_word_table(block)) continue;
    by_slot[f.slot].first = 0;
    for (const LocalParameter& p : block.parameters) by_slot[f.slot].first += p.frozen ? 0 : p.out * p.in;
  }
  double sum = 0;
  for (const auto& [slot, table] : by_slot)
    sum += table.second ? figure(table.first) * figure(plan.classes[slot].multiplicity) / ranks_that_train(plan) : 0;
  return sum;
}

}  // namespace

// The sizes of the groups of ranks that hold the same weights, as text: "4", or "2, 1" where stages differ.
std::string group_sizes(const Plan& plan, Dimension copies) {
  std::vector<std::int64_t> sizes;
  for (std::size_t s = 0; s < plan.classes.size(); ++s) {
    if (!plan.classes[s].second) sizes.push_back(group_size(plan, copies, s));
  }
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return fmt::format("{}", fmt::join(sizes, ", "));
}

namespace {

// The quantities that the formulas of data parallelism are written in: N ranks that hold the same weights, R replicas
// of their shards, m micro-batches of a copy of the model (several copies in one pipeline share the micro-batches), g
// bytes a gradient, w bytes a parameter, and Ψ parameters of a rank (elements). `divided` counts the parameters that a
// rank sends in a ring, the share (N - 1) / N of Ψ, and `again` those of them that are gathered again for backward.
struct DataSymbols {
  double ranks = 1, replicas = 1, micro_batches = 1, gradient = 0, parameter = 0;
  double elements = 0, divided = 0, again = 0;
  bool eight_bit = false;  // whether gathers move 8 bits a parameter
};

DataSymbols data_symbols(const Spec& spec, const Plan& plan, Dimension copies) {
  const Strategy& s = spec.strategy;
  return {.ranks = figure(group_size(plan, copies)),
          .replicas = figure(group_size(plan, Dimension::replicate)),
          .micro_batches = figure(s.micro_batches()) / figure(model_copies(s.schedule)),
          .gradient = figure(storage_bytes(s.gradient_precision)),
          .parameter = figure(storage_bytes(s.precision)),
          .elements = average_elements(plan, copies),
          .divided = average_elements(plan, copies, true),
          .again = average_elements(plan, copies, true, true),
          .eight_bit = spec.software.communication.gathers_eight_bit && is_eight_bit(s.precision)};
}

// The bytes that a rank moves in reductions of gradients and gathers of weights. In a ring of N ranks a rank sends the
// share (N - 1) / N of a buffer; `bytes` include this factor, and data_volume() adds it to the formula's text.
Volume volume_of_all(const Spec& spec, const Plan& plan, const DataSymbols& d) {
  const ShardingRow& row = row_of(spec.strategy.sharding);
  const bool each = reduces_each_time(spec, row);
  const double m = d.micro_batches, g = d.gradient, gathered = d.eight_bit ? 1 : d.parameter;
  const std::string_view width = d.eight_bit ? "1" : "w";
  Volume v;
  if (!row.shards_optimizer) {
    const std::int64_t updates =
        each ? spec.strategy.micro_batches() : std::max<std::int64_t>(1, plan.step_micro_batches() / plan.update_every);
    v.formula = updates > 1 ? "2Ψ·g·m" : "2Ψ·g";
    v.bytes = 2 * g * figure(updates) * d.divided;
  } else if (!unit_gradients(spec, row)) {
    const bool whole = !scatters_gradients(row, spec.software.communication.shards_all_reduce) || each;
    v.formula = fmt::format("{}Ψ·g{} + Ψ·{}", whole ? "2" : "", each ? "·m" : "", width);
    v.bytes = ((whole ? 2 : 1) * (each ? m : 1) * g + gathered) * d.divided;
  } else if (!row.shards_parameters) {
    v.formula = fmt::format("mΨ·g + Ψ·{}", width);
    v.bytes = (m * g + gathered) * d.divided;
  } else {
    const double reductions = fresh_gradients(spec, row) ? m : 1;
    const std::string_view gathers = d.again == 0 ? "mΨ·w" : d.again == d.divided ? "2mΨ·w" : "m(Ψ+A)·w";
    v.formula = fmt::format("{}Ψ·g + {}", reductions > 1 ? "m" : "", gathers);
    v.bytes = reductions * g * d.divided + m * d.parameter * (d.divided + d.again);
  }
  return v;
}

}  // namespace

// The bytes that data parallelism moves, in reductions with g bytes per gradient and gathers with w bytes per
// parameter.
Volume data_volume(const Spec& spec, const Plan& plan, Dimension copies) {
  const ShardingRow& row = row_of(spec.strategy.sharding);
  const DataSymbols d = data_symbols(spec, plan, copies);
  const double m = d.micro_batches, g = d.gradient, n = d.ranks, r = d.replicas;
  Volume v = volume_of_all(spec, plan, d);
  v.what = std::string(name_of(copies));
  v.numbers = fmt::format("Ψ = {:.4g}, N = {}, m = {}, g = {} B, w = {} B", d.elements, group_sizes(plan, copies), m, g,
                          d.parameter);
  const bool some_again = v.formula.find('A') != std::string::npos;
  // Frozen weights have gathers of their own: one in forward, and one in backward if backward reads them.
  const double frozen = row.shards_parameters ? average_frozen(spec, plan, copies, true, false) : 0;
  if (frozen > 0) {
    v.formula += " + m(F+G)";
    v.bytes += m * (frozen + average_frozen(spec, plan, copies, true, true));
    v.numbers += fmt::format(", F = {:.4g} B of frozen weights, G of them gathered again",
                             average_frozen(spec, plan, copies, false, false));
  }
  if (some_again) v.numbers += fmt::format(", A = {:.4g} gathered again", average_elements(plan, copies, false, true));
  // Gradients that are kept whole until the last micro-batch are reduced once, those of both uses of the table
  // together.
  const bool tied = copies == Dimension::data && unit_gradients(spec, row) && fresh_gradients(spec, row);
  if (const double table = tied ? table_used_twice(spec, plan) : 0; table > 0) {
    v.formula += " + mT·g";
    v.bytes += m * table * g * (n - 1) / n;
    v.numbers += fmt::format(", T = {:.4g} of the tied table", table);
  }
  v.formula = fmt::format("({})(N-1)/N", v.formula);
  if (r > 1) {
    v.formula += " + 2(Ψ/N)·g·(R-1)/R";
    v.bytes += 2 * d.elements / n * g * (r - 1) / r;
    v.numbers += fmt::format(", R = {}", r);
  }
  return v;
}

// The bytes that a rank moves with torch's DataParallel. Weights go to every rank and gradients come back around a
// ring, in which every rank but one sends them on once. Token ids, logits and the gradients of the logits go between
// rank 0 and each other rank.
Volume master_volume(const Spec& spec, const Plan& plan) {
  const Strategy& s = spec.strategy;
  const double n = figure(group_size(plan, Dimension::data)), elements = average_elements(plan, Dimension::data);
  const double g = figure(storage_bytes(s.gradient_precision)), w = figure(storage_bytes(s.precision));
  const std::int64_t multiple = spec.software.layout.vocab_multiple;
  const double rows = figure(s.micro_batch * spec.sequence), m = figure(s.micro_batches());
  const double vocab = figure(ceil_div(spec.model.vocab, multiple) * multiple);
  return {.what = "data",
          .formula = "Ψ·w + Ψ·g + m·R·(8 + 2V·w)(N-1)/N",
          .numbers = fmt::format("Ψ = {:.4g}, N = {}, m = {}, R = {} tokens, V = {}, g = {} B, w = {} B", elements, n,
                                 m, rows, vocab, g, w),
          .bytes = (g + w) * elements + m * rows * (8 + 2 * vocab * w) * (n - 1) / n};
}

// The bytes that parameter servers move: every worker pushes gradients and pulls weights. If a chain of R servers holds
// each range of the weights, the summed gradients are also passed on from server to server R - 1 times.
Volume server_volume(const Spec& spec, const Plan& plan) {
  const Strategy& s = spec.strategy;
  const double g = figure(storage_bytes(s.gradient_precision)), w = figure(storage_bytes(s.precision));
  const double elements = average_elements(plan, Dimension::data), workers = figure(plan.workers());
  const double further = figure(plan.copies - 1), servers = figure(plan.ranges());
  const double each = (g + w) * workers + g * further;
  return {.what = "servers",
          .formula = plan.copies == 1 ? "Ψ·g + Ψ·w per worker, W/S of it through a server"
                                      : "Ψ·g + Ψ·w per worker; Ψ·((W+R-1)·g + W·w)/S through a server's machine",
          .numbers = fmt::format(
              "Ψ = {:.4g}, W = {} workers, S = {} servers{}, g = {} B, w = {} B; {:.3f} GB per server", elements,
              workers, servers, plan.copies == 1 ? "" : fmt::format(", R = {} copies", plan.copies), g, w,
              each * elements / servers / 1e9),
          .bytes = each * elements / workers};
}

}  // namespace orrery
