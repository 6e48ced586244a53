#include "sim/explain/generation.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "models/generation/generation_plan.h"
#include "sim/generate/formats_text.h"
#include "sim/predict/generation_profile.h"
#include "sim/predict/predict.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

constexpr std::size_t kKernelRows = 10;

Section limits_section(const GenerationReport& r) {
  Table t;
  t.columns = {{"pass", "", Align::left}, {"time", "ms"}};
  for_limits(r.prefill.front().limits, [&](const char* name, double) { t.columns.push_back({name, "%"}); });
  const auto add = [&](const char* name, const GeneratedPass& pass) {
    std::vector<std::string> row = {name, fmt::format("{:.3f}", pass.period_s * 1e3)};
    for_limits(pass.limits, [&](const char*, double share) { row.push_back(fmt::format("{:.1f}", 100 * share)); });
    t.rows.push_back(std::move(row));
  };
  add("prefill", r.prefill.front());
  if (r.prefill.size() > 1) add("prefill, last", r.prefill.back());
  constexpr const char* kNames[] = {"decode, first", "decode, middle", "decode, last"};
  for (std::size_t i = 0; i < r.decode.size(); ++i) add(kNames[i], r.decode[i]);
  return {"What limits each pass", {}, t, {}};
}

// The kernels of the middle pass of one token on the first class of ranks.
Section kernels_section(const Spec& spec, const GenerationReport& r, const std::string& profile) {
  const GeneratedPass& shown = r.decode.empty() ? r.prefill.front() : r.decode[r.decode.size() / 2];
  const Profile rates = generation_profile(spec, profile_for(spec, profile));
  const Prediction p = predict(spec_of_pass(spec, {shown.tokens, shown.cached}), rates);
  std::map<std::string, std::pair<double, std::int64_t>> by_name;
  double sum = 0;
  const RankClass& slot = p.plan.classes.front();
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    const Span& span = p.trace.spans[t];
    auto& [time, count] = by_name[p.plan.op_of(t).name];
    time += seconds(span.ended - span.matched);
    sum += seconds(span.ended - span.matched);
    ++count;
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, of] : by_name) order.emplace_back(of.first, name);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  Table t;
  t.columns = {{"operation", "", Align::left}, {"calls"}, {"time", "ms"}, {"share", "%"}};
  for (std::size_t i = 0; i < std::min(kKernelRows, order.size()); ++i) {
    const auto& [time, name] = order[i];
    t.rows.push_back({name, fmt::format("{}", by_name[name].second), fmt::format("{:.3f}", time * 1e3),
                      fmt::format("{:.1f}", sum > 0 ? 100 * time / sum : 0)});
  }
  return {fmt::format("Operations of a pass with {} tokens cached, on {}", shown.cached, slot.name), {}, t, {}};
}

// No pass is faster than what its products and its attention read at the memory's bandwidth.
Section bound_section(const Spec& spec, const GenerationReport& r) {
  const double rate = spec.cluster.gpu.memory_GBps * 1e9;
  Section section{.title = "The least time of a pass of one token"};
  if (r.decode.empty() || rate <= 0) return section;
  const double weights = mean_of_decode(r, [](const GeneratedPass& p) { return p.reads.weights; });
  const double cache = mean_of_decode(r, [](const GeneratedPass& p) { return p.reads.cache; });
  section.lines = {fmt::format("reads weights of {} in {}, keys and values of {} in {}, at {} GB/s",
                               memory_text(weights), time_text(weights / rate), memory_text(cache),
                               time_text(cache / rate), grouped(spec.cluster.gpu.memory_GBps)),
                   fmt::format("together {}, simulated {}: {} of the bandwidth", time_text((weights + cache) / rate),
                               time_text(r.token_s), percent_text(r.bandwidth_share))};
  return section;
}

// The bytes of an element of the cache; codes of whole numbers have a scale and a zero point a head beside them.
std::string width_text(const Generation& g) {
  if (g.kv_precision == Precision::nvfp4) return fmt::format("(1/2 + 1/{} for its scale)", kNvfp4Block);
  if (!has_kv_scales(g)) return fmt::format("{}", kv_vector_bytes(g, 1));
  return fmt::format("{}, and {} for each vector's scale and zero point",
                     g.kv_precision == Precision::int8 ? "1" : "1/2", kKvScaleBytes);
}

Section cache_section(const Spec& spec, const GenerationReport& r) {
  const Model& m = spec.model;
  const Generation& g = *spec.generation;
  Bytes token = 0, states = 0;
  std::int64_t layers = 0;  // with attention
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    token += cached_bytes(spec, layer);
    states += recurrent_bytes(spec, layer).sum();
    layers += cached_bytes(spec, layer) > 0 ? 1 : 0;
  }
  std::string formula = m.mla ? fmt::format("L (kv_lora_rank + rope) w = {} x ({} + {}) x {}", layers,
                                            m.mla->kv_lora_rank, m.mla->qk_rope_head_dim, width_text(g))
                              : fmt::format("2 L max(g/t, 1) d w = 2 x {} x max({}/{}, 1) x {} x {}", layers,
                                            m.kv_heads, spec.strategy.tensor, m.head_dim, width_text(g));
  if (m.indexer) formula += fmt::format(", and {} x {} for the index's keys", layers, index_key_bytes(m));
  if (states > 0)
    formula += fmt::format("; {} bytes a sequence for the states of {} layers with a recurrence",
                           grouped(static_cast<double>(states)), m.layers - layers);
  return {"Keys and values",
          {fmt::format("{} bytes a token over all stages: {}", grouped(static_cast<double>(token)), formula),
           fmt::format("{} a sequence on the rank with the most, in blocks of {} tokens; {} sequences fit",
                       memory_text(static_cast<double>(r.memory.cache_a_sequence)), g.kv_block,
                       grouped(static_cast<double>(r.largest_batch)))},
          {},
          {}};
}

// A section on what the formats of weights and cache save against the spec with weights and cache as wide as
// activations.
Section formats_section(const Spec& spec, const GenerationReport& r, const std::string& profile) {
  Section section{.title = "What formats of few bits save and cost here, by simulation without them"};
  if (!is_quantised(spec)) return section;
  Spec wide = unquantised(spec);
  if (is_eight_bit(wide.strategy.precision)) wide.strategy.precision = Precision::bf16;
  const GenerationReport other = predict_batch(wide, profile_for(wide, profile));
  if (const std::string weights = formats_text(spec); !weights.empty()) section.lines.push_back("weights: " + weights);
  if (spec.generation->kv_precision != wide.generation->kv_precision)
    section.lines.push_back(fmt::format("keys and values: {}, else {}", name_of(spec.generation->kv_precision),
                                        name_of(wide.generation->kv_precision)));
  const Scale memory = memory_scale(static_cast<double>(other.memory.sum()));
  const Scale first = time_scale(std::max(r.first_token_s, other.first_token_s));
  const Scale each = time_scale(std::max(r.token_s, other.token_s));
  Table& t = section.table;
  t.columns = {{"", "", Align::left},
               {"first token", std::string(first.unit)},
               {"each token", std::string(each.unit)},
               {"weights", std::string(memory.unit)},
               {"keys and values", std::string(memory.unit)},
               {"in all", std::string(memory.unit)}};
  const auto add = [&](const char* name, const GenerationReport& of) {
    t.rows.push_back({name, number(of.first_token_s, first), number(of.token_s, each),
                      number(static_cast<double>(of.memory.weights), memory),
                      number(static_cast<double>(of.memory.cache), memory),
                      number(static_cast<double>(of.memory.sum()), memory)});
  };
  add("as it is", r);
  add("without them", other);
  return section;
}

}  // namespace

std::vector<Section> generation_sections(const Spec& spec, const GenerationReport& r, const std::string& profile) {
  return {limits_section(r), kernels_section(spec, r, profile), bound_section(spec, r), cache_section(spec, r),
          formats_section(spec, r, profile)};
}

}  // namespace orrery
