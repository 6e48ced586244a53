#include "sim/explain/formulas.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/layers/blocks.h"
#include "models/layers/expert_sizes.h"
#include "models/partition/rank_groups.h"
#include "models/schedule/schedule_file.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/explain/formulas_data.h"
#include "sim/explain/formulas_muon.h"

namespace orrery {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

double simulated_bytes(const Report& report, std::initializer_list<Dimension> groups, std::string_view but = "") {
  double sum = 0;
  for (const CommunicationRow& row : report.communication) {
    if (row.op == but) continue;
    for (const Dimension d : groups) sum += row.group == name_of(d) ? row.bytes_per_gpu : 0;
  }
  return sum;
}

// The passes whose transfers a formula counts: forward alone for a frozen model beside the one that trains.
enum class Passes : std::uint8_t { all, forward };

// For one dimension of parallelism: the bytes of collectives in recomputed parts of layers, as a multiple of the bytes
// of collectives in forward.
double run_again(const Plan& plan, Dimension group) {
  double forward = 0, again = 0;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (block.role != BlockRole::layer || block.second || f.micro_batch != 0) continue;
    const auto add = [&](const std::vector<std::uint32_t>& ops, bool recompute, double& sum) {
      for (const std::uint32_t op : ops) {
        const auto* c = std::get_if<Collective>(&plan.ops[op].work);
        if (c != nullptr && c->group == group && plan.ops[op].recompute == recompute)
          sum += real(c->bytes) * real(plan.classes[f.slot].multiplicity);
      }
    };
    add(block.forward, false, forward);
    add(block.backward, true, again);
  }
  return forward > 0 ? again / forward : 0;
}

// For one dimension of parallelism: the share of the layers with collectives in forward that also have collectives in
// backward. With frozen weights (LoRA), the layers before the first trained weight have no backward.
double run_back(const Plan& plan, Dimension group) {
  double forward = 0, back = 0;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (block.role != BlockRole::layer || block.second || f.micro_batch != 0) continue;
    const auto moves = [&](std::uint32_t op) {
      const auto* c = std::get_if<Collective>(&plan.ops[op].work);
      return c != nullptr && c->group == group && !plan.ops[op].recompute;
    };
    const double ranks = real(plan.classes[f.slot].multiplicity);
    forward += std::ranges::any_of(block.forward, moves) ? ranks : 0;
    back += std::ranges::any_of(block.backward, moves) ? ranks : 0;
  }
  return forward > 0 ? back / forward : 1;
}

// Bytes of the hidden states of one micro-batch on a tensor rank, before sequence parallelism divides them. A stage
// sends as many bytes for each of the model's residual streams.
double hidden_bytes(const Spec& spec) {
  const Strategy& s = spec.strategy;
  return real(s.micro_batch) * real(spec.sequence / s.context) * real(spec.model.hidden) *
         real(storage_bytes(s.precision));
}

// The bytes that Megatron's tensor parallelism moves (Shoeybi et al. 2019, Korthikanti et al. 2022): a layer
// all-reduces its hidden states (S bytes) twice in forward and twice in backward, or moves as many bytes in
// reduce-scatters and all-gathers. Two all-gathers are added where backward gathers its inputs again; full
// recomputation repeats the transfers of forward. In fp8 an all-gather moves half the bytes.
Volume tensor_volume(const Spec& spec, const Plan& plan, Passes passes = Passes::all) {
  const Strategy& s = spec.strategy;
  const double t = real(s.tensor), blocks = spec.model.parallel_block ? 1 : 2;
  const double gather = s.sequence_parallel && is_eight_bit(s.precision) ? 0.5 : 1;
  const double again = s.sequence_parallel && spec.software.communication.regather_input ? blocks * gather : 0;
  const double full = run_again(plan, Dimension::tensor) * (1 + gather) * blocks;
  // Each of r replicas of a stage computes 1/r of every micro-batch. For the mean over all ranks, p is therefore not
  // the number of stages but the number of replicas summed over all stages.
  const double layers = real(spec.model.layers + spec.model.mtp_layers) / real(s.places()), m = real(s.micro_batches());
  const double forward = (1 + gather) * blocks;
  const double per_layer = passes == Passes::forward ? forward : 2 * forward + again + full;
  return {.what = "tensor (layers)",
          .formula = fmt::format("{:.4g}·S·m·(L/p)·(t-1)/t", per_layer),
          .numbers = fmt::format("S = s·b·h·w/c = {:.4g} B, m = {}, L/p = {:.4g}, t = {}{}", hidden_bytes(spec), m,
                                 layers, t, spec.model.compressed_attention ? "; gathers of shared keys left out" : ""),
          .bytes = per_layer * hidden_bytes(spec) * m * layers * (t - 1) / t};
}

// The bytes that matrix products on a grid of ranks move. The formula's letters are bytes of blocks: X of the input, W
// of the weight, Z of the output, T of the token embeddings, Y of the logits, H of the hidden states. SUMMA (Optimus,
// algorithms 1 to 3) passes two of the three matrices of a product, panel by panel, in forward and for each of the two
// gradients; a cube passes all three, except for the part that a rank holds already. An embedding lookup passes the
// token embeddings twice. Full recomputation runs forward once more. Norms, loss and biases are left out.
Volume grid_volume(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Model& m = spec.model;
  const BlockContext c(spec, row_of(s.sharding));
  const double q = real(c.tensor), w = real(c.width), rows = real(c.rows), cube = c.cube ? q : 1;
  // number of key-value heads on all ranks; if ranks have copies of a head, each copy counts
  const std::int64_t kv_heads = std::max(m.kv_heads, c.tensor);
  const double heads = real(m.heads * m.head_dim), qkv = heads + real(2 * kv_heads * m.head_dim);
  const double up = real(m.feed_forward * (m.gated ? 2 : 1)), down = real(m.feed_forward), h = real(m.hidden);
  const double x = rows * (h + heads + h + down) / q * w, z = rows * (qkv + h + up + h) / q * w;
  const double weights = (h * qkv + heads * h + h * up + down * h) / (q * q * cube) * w;
  const double table = real(c.table_rows * c.hidden) * w, hidden = rows * real(c.hidden) * w;
  const double logits = rows * real(c.padded_vocab) / q * w;
  const double passes = s.recompute.all_layers() ? 4 : 3, layers = real(m.layers);
  const double per_micro_batch =
      c.cube ? (q - 1) * (passes * (x + weights + z) * layers + 5 * (table + hidden) + 3 * logits)
             : q * (passes * (x + weights) * layers + 5 * table + 3 * logits);
  const auto terms = [&](const char* of_layer, const char* times, const char* ends) {
    return fmt::format("({:.0f}{}·L + {})·{}·m/p", passes, of_layer, ends, times);
  };
  return {
      .what = "tensor (" + s.tensor_kind + ")",
      .formula = c.cube ? terms("(X + W + Z)", "(q-1)", "5(T + H) + 3Y") : terms("(X + W)", "q", "5T + 3Y"),
      .numbers = fmt::format("X = {:.4g}, W = {:.4g}, Z = {:.4g}, T = {:.4g}, H = {:.4g}, Y = {:.4g} B, L = {}, q = "
                             "{}, m = {}, p = {}",
                             x, weights, z, table, hidden, logits, m.layers, c.tensor, s.micro_batches(), s.pipeline),
      .bytes = per_micro_batch * real(s.micro_batches()) / real(s.pipeline)};
}

// The bytes that context parallelism moves. The sequence is cut into n blocks, each of which u ranks share (Ulysses). A
// ring passes a block's keys and values (K bytes) on n - 1 times in forward and n - 1 times in backward, and their
// gradients n times. An all-gather moves the keys and values of all blocks twice, and a reduce-scatter moves their
// gradients once. Among the u ranks of a block, queries, keys, values and results (A bytes) are exchanged once in each
// direction. Recomputed parts are moved once more, and layers without a backward move nothing in backward.
Volume context_volume(const Spec& spec, const Plan& plan, Passes counted = Passes::all) {
  const Strategy& s = spec.strategy;
  const bool gathers = s.context_kind == "allgather";
  const double n = real(s.context_ring), u = real(s.context_ulysses);
  const bool back_too = counted == Passes::all;
  const double again = back_too ? run_again(plan, Dimension::context) : 0,
               swapped_again = back_too ? run_again(plan, Dimension::ulysses) : 0;
  const std::int64_t heads = spec.model.heads / s.tensor,
                     kv = std::max<std::int64_t>(1, spec.model.kv_heads / s.tensor);
  const double head = real(s.micro_batch) * real(spec.sequence / s.context) * real(spec.model.head_dim) *
                      real(storage_bytes(s.precision));  // bytes of the queries of one head, for all tokens of a rank

  // With latent attention (MLA), ranks exchange keys and values that are expanded to all heads; a head's values have
  // fewer dimensions than its keys.
  const auto& mla = spec.model.mla;
  const double two = mla ? 1 + real(mla->v_head_dim) / real(spec.model.head_dim) : 2;
  const double block = two * real(std::max<std::int64_t>(1, (mla ? heads : kv) / s.context_ulysses)) * head * u;
  const double all = two * real(heads + std::max(mla ? heads : kv, s.context_ulysses)) * head;
  const double back = back_too ? run_back(plan, Dimension::context) : 0,
               swaps = 1 + (back_too ? run_back(plan, Dimension::ulysses) : 0) + swapped_again;
  const double passes = gathers ? (1 + 2 * back + again) * (n - 1)
                        : n > 1 ? (1 + again) * (n - 1) + back * (2 * n - 1)
                                : 0;
  const double layers = real(spec.model.layers + spec.model.mtp_layers) / real(s.pipeline), m = real(s.micro_batches());
  return {.what = "context",
          .formula = fmt::format("({:.4g}·K + {:.4g}·A·(u-1)/u)·m·L/p", passes, swaps),
          .numbers = fmt::format("K = {:.4g} B, A = {:.4g} B, ring {}, u = {}, m = {}, L/p = {:.4g}", block, all,
                                 s.context_ring, s.context_ulysses, m, layers),
          .bytes = (passes * block + swaps * all * (u - 1) / u) * m * layers};
}

// Number of boundaries between virtual stages that activations cross from one pipeline stage to another. If every stage
// has a part of the vocabulary, each stage also exchanges hidden states, embeddings and their gradients, which counts
// as two more boundaries.
std::int64_t crossings(const Strategy& s) {
  const ScheduleShape shape = {s.pipeline, s.micro_batches(), s.virtual_stages, {}};
  const Schedule schedule = s.schedule == "file" ? parse_schedule(s.schedule_text, s.schedule_file, shape)
                                                 : place_chunks(find_schedule(s.schedule).placement, shape);
  std::int64_t count = spreads_vocabulary(s.schedule) ? 2 * s.pipeline : 0;
  for (std::int64_t k = 0; k + 1 < schedule.virtual_stages(); ++k)
    count += hop(schedule, static_cast<std::size_t>(k)) != 0 ? 1 : 0;
  return count;
}

// Bytes of activations that a class of ranks lends to its partner stage for one micro-batch (BPipe), taken from the
// first such transfer in the plan.
double moved_bytes(const Plan& plan, const RankClass& slot) {
  std::int32_t first = -1;
  double bytes = 0;
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    const Op& op = plan.op_of(t);
    if (op.lane != LaneKind::send_partner || op.phase != Phase::forward) continue;
    const std::int32_t micro_batch = plan.frames[plan.tasks[t].frame].micro_batch;
    if (first < 0) first = micro_batch;
    if (micro_batch == first) bytes += real(std::get<Transfer>(op.work).bytes);
  }
  return bytes;
}

// Mean bytes of a micro-batch's activations that a stage lends to its partner (BPipe), over all such loans in a step. A
// mean is needed as stages may have different layers.
double mean_moved_bytes(const Plan& plan, const std::vector<Eviction>& moves) {
  std::map<std::int64_t, double> by_stage;
  for (const RankClass& slot : plan.classes) {
    if (!by_stage.contains(slot.stage)) by_stage[slot.stage] = moved_bytes(plan, slot);
  }
  double sum = 0;
  for (const Eviction& move : moves) sum += by_stage.at(move.stage);
  return moves.empty() ? 0 : sum / real(std::ssize(moves));
}

// The bytes that pipeline parallelism moves: over each boundary between stages, the residual streams (S bytes) in
// forward and their gradient in backward. With p stages of v virtual stages there are p·v - 1 boundaries if virtual
// stages are interleaved, and (p - 1)·v if they are placed in a V. Replicas of a stage share each micro-batch; two
// copies of the model share the number of micro-batches. Activations that stages lend each other (BPipe) are moved
// twice.
Volume pipeline_volume(const Spec& spec, const Plan& plan, Passes passes = Passes::all) {
  const Strategy& s = spec.strategy;
  const double cut = s.sequence_parallel || s.on_grid() ? real(s.tensor) : 1;
  const std::int64_t count = crossings(s);
  const double m = real(s.micro_batches()), p = real(s.places());
  const double sent = hidden_bytes(spec) * real(streams_of(spec.model));
  const bool both = passes == Passes::all;
  Volume v = {.what = "pipeline",
              .formula = fmt::format("{}m·{}·c/p", both ? "2" : "", cut > 1 ? "(S/t)" : "S"),
              .numbers = fmt::format("S = {:.4g} B, m = {}, p = {}, c = {} crossings between stages", sent, m,
                                     s.places(), count),
              .bytes = (both ? 2 : 1) * m * sent / cut * real(count) / p};
  const bool known = s.schedule != "file";
  if (known && find_schedule(s.schedule).moves != nullptr) {
    const std::vector<Eviction> moves = make_schedule(s.schedule, {s.pipeline, s.micro_batches(), 1, {}}).moves;
    const double bytes = mean_moved_bytes(plan, moves);
    v.formula += " + 2·A·n/p";
    v.numbers += fmt::format(", A = {:.4g} B of activations, left n = {} times", bytes, moves.size());
    v.bytes += 2 * bytes * real(std::ssize(moves)) / p;
  }
  return v;
}

// The bytes moved for a vocabulary that is split over ranks: for each row of logits, the ranks that hold parts of it
// all-reduce the row's maximum, then the sum of exponentials and the label's logit.
Volume vocabulary_volume(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const double rows = real(s.micro_batch * (spec.sequence / s.context)), n = real(s.pipeline * s.tensor);
  return {.what = "vocabulary",
          .formula = "24R·m·(n-1)/n",
          .numbers = fmt::format("R = {} rows, m = {}, n = p·t = {}", rows, s.micro_batches(), n),
          .bytes = 24 * rows * real(s.micro_batches()) * (n - 1) / n};
}

// The bytes that expert parallelism moves: the hidden state of each token is sent to the token's experts and back, in
// forward and in backward. With each hidden state sent to an expert goes the fp32 weight that the router gives the
// expert; in backward the gradient of that weight comes back.
Volume expert_volume(const Spec& spec, const Plan& plan, Passes passes = Passes::all) {
  const Strategy& s = spec.strategy;
  const Model& m = spec.model;
  const double cut = s.sequence_parallel ? real(s.tensor) : 1, e = real(s.expert);
  const double tokens = real(s.micro_batch) * real(spec.sequence / s.context) / cut;
  const bool predicts_with_experts = has_experts(m, m.layers - 1);  // MTP layers have experts if the last layer has
  double layers = predicts_with_experts ? real(m.mtp_layers) / real(s.pipeline) : 0, rows = 0;
  for (std::int64_t l = 0; l < m.layers; ++l) {
    if (!has_experts(m, l)) continue;
    layers += 1 / real(s.pipeline);
    const ExpertSizes sizes = expert_sizes(spec, l, static_cast<std::int64_t>(tokens));
    rows = std::max(rows, real(std::max(sizes.sent, sizes.received)));
  }
  // how often a micro-batch runs a layer's transfers of forward, or as many bytes in backward
  const double times = passes == Passes::forward ? 1 : 2 + run_again(plan, Dimension::expert);
  const double row = times * (2 * real(m.hidden) * real(storage_bytes(s.precision)) + 4);
  return {.what = "expert",
          .formula = fmt::format("R·({:.4g}h·w + {:.4g})·m·(L/p)·(e-1)/e", 2 * times, 4 * times),
          .numbers = fmt::format("R = {:.4g} rows, h = {}, m = {}, L/p = {:.4g}, e = {}", rows, m.hidden,
                                 s.micro_batches(), layers, s.expert),
          .bytes = rows * row * real(s.micro_batches()) * layers * (e - 1) / e};
}

// Adds to the bytes of the model that trains those of the forward of the frozen model beside it, if there is one. Bytes
// of ranks of its own are shared out to the ranks of the model that trains.
template <class Form>
Volume of_both(const Spec& spec, const Plan& plan, const Form& form) {
  Volume v = form(spec, plan, Passes::all);
  if (!spec.second) return v;
  const Volume second = form(second_spec(spec), plan, Passes::forward);
  const std::string_view name = name_of(spec.second->role);
  v.numbers += fmt::format("; the {}: {}", name, second.numbers);
  if (!has_second_apart(spec)) {
    v.formula += fmt::format(" + {} of the {}", second.formula, name);
    v.bytes += second.bytes;
    return v;
  }
  const std::int64_t own = spec.second->gpus, others = plan.workers() - own;
  v.formula += fmt::format(" + {}/{}·{} of the {}", own, others, second.formula, name);
  v.bytes += real(own) / real(others) * second.bytes;
  return v;
}

}  // namespace

std::vector<Volume> volumes(const Spec& spec, const Plan& plan, const Report& report) {
  std::vector<Volume> list;
  const auto add = [&](bool used, Volume v, std::initializer_list<Dimension> groups) {
    if (!used) return;
    // The report's bytes are means over all ranks, those of the formulas over the ranks of the model that trains.
    const std::int64_t all = plan.workers(), own = has_second_apart(spec) ? spec.second->gpus : 0;
    v.simulated = simulated_bytes(report, groups) * real(all) / real(all - own);
    list.push_back(std::move(v));
  };
  const Strategy& s = spec.strategy;
  // whether either of two models, which may be cut apart, has a degree above 1
  const auto any = [&](std::int64_t Strategy::*degree) {
    return s.*degree > 1 || (has_second_apart(spec) && *spec.second->strategy.*degree > 1);
  };
  const ShardingRow& row = row_of(s.sharding);
  add(row.servers, server_volume(spec, plan), {Dimension::world});
  add(row.master && s.data > 1, master_volume(spec, plan), {Dimension::data});
  const bool alike = !row.servers && !row.master;
  add((alike && group_sizes(plan, Dimension::data) != "1") || group_size(plan, Dimension::replicate) > 1,
      with_muon(spec, plan, Dimension::data, data_volume(spec, plan, Dimension::data)),
      {Dimension::data, Dimension::replicate});
  add(alike && elements_of(plan, 0, Dimension::embedding) > 0, data_volume(spec, plan, Dimension::embedding),
      {Dimension::embedding});
  if (has_experts(spec)) {
    add(group_size(plan, Dimension::expert_data) > 1 || group_size(plan, Dimension::expert_replicate) > 1,
        data_volume(spec, plan, Dimension::expert_data), {Dimension::expert_data, Dimension::expert_replicate});
    add(any(&Strategy::expert), of_both(spec, plan, expert_volume), {Dimension::expert});
  }
  if (s.on_grid()) {
    list.push_back(grid_volume(spec));
    list.back().simulated = simulated_bytes(
        report, {Dimension::tensor_row, Dimension::tensor_column, Dimension::tensor_depth}, "all_reduce");
  }
  add(any(&Strategy::tensor) && !s.on_grid(),
      with_muon(spec, plan, Dimension::tensor, of_both(spec, plan, tensor_volume)), {Dimension::tensor});
  add(s.context > 1, of_both(spec, plan, context_volume), {Dimension::context, Dimension::ulysses});
  if (any(&Strategy::pipeline)) add(true, of_both(spec, plan, pipeline_volume), {Dimension::pipeline});
  add(s.pipeline > 1 && spreads_vocabulary(s.schedule), vocabulary_volume(spec), {Dimension::vocabulary});
  return list;
}

}  // namespace orrery
