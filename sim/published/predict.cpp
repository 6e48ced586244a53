#include "sim/published/predict.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/json_value.h"
#include "models/load/load_spec.h"
#include "sim/engine/simulate.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/published/stack.h"
#include "sim/report/flops.h"
#include "sim/report/stalls.h"

namespace orrery {
namespace {

// The choice of the fastest strategy is judged only in grids (a publication's strategies for one model on one number of
// GPUs) with at least this many measured steps: choosing among fewer says little.
constexpr std::size_t kSmallestGrid = 4;

// A fact about published runs that their specs leave out or state wrongly, and that certain words in the text of a
// published step imply (models/data/published_facts.json).
struct Fact {
  // The words that must all be in the text of a published step (notes, source, framework, ...) for the fact to hold.
  std::vector<std::string> says;
  // The keys that the fact sets where the spec is silent, such as "strategy.attention", and their values.
  std::vector<std::pair<std::string, nlohmann::json>> fills;
  // Corrections {"strategy.sharding": {"from": ..., "to": ...}}: the fact holds only for steps whose spec states the
  // value `from` for each such key, and changes it to `to`.
  nlohmann::json corrects;
};

std::vector<Fact> known_facts(PublishedFacts which) {
  std::vector<Fact> facts;
  const nlohmann::json file = nlohmann::json::parse(data_file("published_facts.json"));
  for (const nlohmann::json& f : file.at("facts")) {
    const nlohmann::json& says = f.at("says");
    facts.push_back(
        {says.is_array() ? says.get<std::vector<std::string>>() : std::vector<std::string>{says.get<std::string>()},
         {},
         f.value("corrects", nlohmann::json::object())});
    const nlohmann::json inferred = f.value("inferred_from", nlohmann::json::object());
    for (const auto& [key, value] : f.at("fills").items()) {
      if (which == PublishedFacts::all || !inferred.contains(key)) facts.back().fills.emplace_back(key, value);
    }
  }
  return facts;
}

// The text of a published step in which the words of facts are searched: id, notes, source, where, framework and model.
std::string words_of(const nlohmann::json& entry) {
  std::string words = text_in(entry, "id") + ' ' + text_in(entry, "notes") + ' ';
  for (const char* key : {"source", "where", "framework"}) words += entry.value(key, nlohmann::json()).dump() + ' ';
  const nlohmann::json model = entry.at("spec").value("model", nlohmann::json());
  return words + (model.is_object() ? text_in(model, "name") : model.dump());
}

// Sets a key ("section.name" or "section.part.name") in the spec of a published step. Nothing is set where the section
// lacks the part (such as experts in a dense model).
void fill(nlohmann::json& spec, const std::string& key, const nlohmann::json& value, bool unstated) {
  std::size_t begin = 0, dot = key.find('.');
  nlohmann::json* section = &spec[key.substr(0, dot)];
  if (section->is_string() && key.starts_with("software.")) *section = {{"profile", *section}};
  // A model or node that is given by its name has all its values from there, so that the fact sets none of them.
  if (!section->is_null() && !section->is_object()) return;
  for (begin = dot + 1; (dot = key.find('.', begin)) != std::string::npos; begin = dot + 1) {
    const std::string part = key.substr(begin, dot - begin);
    if (key.starts_with("model.") && !section->contains(part)) return;
    section = &(*section)[part];
    if (!section->is_null() && !section->is_object()) return;
  }
  const std::string name = key.substr(begin);
  if (unstated || !section->contains(name)) (*section)[name] = value;
}

// The JSON pointer to a key of a spec: "/strategy/sharding" for "strategy.sharding".
nlohmann::json::json_pointer path_of(std::string key) {
  std::replace(key.begin(), key.end(), '.', '/');
  return nlohmann::json::json_pointer('/' + key);
}

bool is_of(const Fact& fact, const std::string& words, const nlohmann::json& spec) {
  const auto said = [&](const std::string& text) { return words.find(text) != std::string::npos; };
  if (!std::all_of(fact.says.begin(), fact.says.end(), said)) return false;
  const auto stands = [&](const auto& change) {
    const auto path = path_of(change.key());
    return spec.contains(path) && spec.at(path) == change.value().at("from");
  };
  for (const auto& change : fact.corrects.items()) {
    if (!stands(change)) return false;
  }
  return true;
}

// A row whose spec is completed with the facts that the row's words imply.
nlohmann::json completed(const nlohmann::json& entry, const std::vector<Fact>& facts) {
  nlohmann::json filled = entry;
  name_stack(filled);
  const std::string words = words_of(entry);
  const nlohmann::json unstated = entry.value("unstated", nlohmann::json::array());
  for (const Fact& fact : facts) {
    if (!is_of(fact, words, filled.at("spec"))) continue;
    for (const auto& [key, change] : fact.corrects.items()) filled.at("spec").at(path_of(key)) = change.at("to");
    for (const auto& [key, value] : fact.fills) {
      const bool silent = std::find(unstated.begin(), unstated.end(), key) != unstated.end();
      fill(key.starts_with("measured.") ? filled : filled.at("spec"), key, value, silent);
    }
  }
  return filled;
}

constexpr double kMostSeconds = 1e9, kMostMemory = 1e18, kMostPrintedGB = 1e10;

std::optional<double> figure(const JsonValue& measured, const char* key, double most) {
  const auto found = measured.find(key);
  return found ? std::optional(found->positive(most)) : std::nullopt;
}

PublishedRow parse_row(const JsonValue& entry, const std::string& source, const std::vector<Fact>& facts,
                       const std::string& where) {
  for (const char* section : {"spec", "measured"}) entry.at(section).require_object();
  const nlohmann::json filled = completed(entry.raw(), facts);
  const JsonValue measured = JsonValue(filled, where).at("measured");
  PublishedRow row;
  row.id = entry.at("id").text();
  row.source = source;
  row.release = text_in(entry.raw().value("facts", nlohmann::json::object()), "release");
  row.spec = filled.at("spec").dump();
  if (const auto doubtful = entry.find("doubtful"))
    row.doubtful = doubtful->is_text() ? doubtful->text() : doubtful->raw().dump();
  row.step_time_s = figure(measured, "step_time_s", kMostSeconds);
  row.forward_s = figure(measured, "forward_s", kMostSeconds);
  row.backward_s = figure(measured, "backward_s", kMostSeconds);
  row.bubble_fraction = figure(measured, "bubble_fraction", 1);
  row.peak_memory_bytes = figure(measured, "peak_memory_bytes", kMostMemory);
  const auto printed = figure(measured, "bytes_of_printed_GB", kMostPrintedGB);
  if (row.peak_memory_bytes) *row.peak_memory_bytes *= printed.value_or(1e9) / 1e9;
  row.memory_kind = measured.text_or("peak_memory_kind", "unstated");
  row.out_of_memory = measured.flag_or("out_of_memory", false);
  row.composed = measured.flag_or("composed", false);
  return row;
}

// The peak bytes of the ranks, or of the first rank where the stack logs that, of the kind of memory that is asked for.
double memory_of(const std::vector<RankMemory>& ranks, const Software& software, const std::string& kind) {
  MemoryReport m;
  for (const RankMemory& rank : ranks) {
    add_rank(m, rank);
    if (software.log.logs_first_rank) break;
  }
  const Bytes reserved = software.log.logs_update ? m.update_reserved : m.peak_reserved;
  return static_cast<double>(kind == "reserved" ? reserved : kind == "device" ? m.peak_device : m.peak);
}

// Seconds that a pass (forward or backward) of micro-batch 0 takes in a layer in the middle of the first stage, from
// the begin of the pass's first task to the end of its last.
double layer_time(const Prediction& p, bool forward) {
  std::vector<std::uint32_t> layers;
  for (std::uint32_t f = 0; f < p.plan.frames.size(); ++f) {
    const Frame& frame = p.plan.frames[f];
    if (frame.layer >= 0 && frame.micro_batch == 0 && frame.slot == 0 &&
        p.plan.blocks[frame.block].role == BlockRole::layer)
      layers.push_back(f);
  }
  if (layers.empty()) return 0;
  const std::uint32_t middle = layers[layers.size() / 2];
  Picoseconds begin = p.trace.step_time, end = 0;
  for (TaskId t = p.plan.classes[0].begin; t < p.plan.classes[0].end; ++t) {
    const Op& op = p.plan.op_of(t);
    const bool is_forward = op.phase == Phase::forward && !op.recompute;
    if (p.plan.tasks[t].frame != middle || is_forward != forward) continue;
    begin = std::min(begin, p.trace.spans[t].entered);
    end = std::max(end, p.trace.spans[t].ended);
  }
  return seconds(end - begin);
}

const RankMemory& fullest(const MemoryReport& memory) {
  return *std::max_element(memory.ranks.begin(), memory.ranks.end(),
                           [](const RankMemory& a, const RankMemory& b) { return a.memory.peak < b.memory.peak; });
}

// The bubble fraction of the step, simulated again with launches, transfers and calls of cudaMalloc that take no time.
double bubble_of(Spec spec, const Prediction& p) {
  spec.software.host.segment_us = 0;
  Costs costs = p.costs;
  for (std::vector<OpTiming>& row : costs.timing.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i].issue = 0;
      if (moves(p.plan.ops[i])) row[i].duration = 0;
    }
  }
  return make_report(spec, p.plan, costs, simulate(p.plan, costs.timing), p.profile).bubble_fraction;
}

void fill(PublishedCase& c, const Spec& spec, const Report& r) {
  c.software = spec.software.name;
  c.architecture = name_of(spec.cluster.gpu.architecture);
  c.like = described(spec);
  c.techniques = techniques_in(spec);
  c.step_time_s = r.step_time_s;
  c.step_time_low_s = r.step_time_low_s;
  c.step_time_high_s = r.step_time_high_s;
  if (const auto stalled = stalled_step(spec, r.step_time_s)) c.stalled_step_s = stalled->step_time;
  if (c.row.memory_kind == "unstated") c.row.memory_kind = name_in(kLoggedMemories, spec.software.log.logged_memory);
  c.peak_memory_bytes = memory_of(r.memory.ranks, spec.software, c.row.memory_kind);
  c.stalled_memory_bytes = memory_of(r.memory.stalled, spec.software, c.row.memory_kind);
  c.fits = r.memory.fits;
  c.time_s = r.time_s;
  c.limit = r.limit;
  c.at_peak = fullest(r.memory).memory.at_peak;
  c.tokens = static_cast<double>(spec.strategy.global_batch * spec.sequence);
}

// Sets the predicted figures of a published step. The bubble fraction and the times of a layer, which are taken from
// the trace, are predicted only where the row has measured ones.
void fill_from_trace(PublishedCase& c, const Spec& spec, const Prediction& p) {
  fill(c, spec, p.report);
  if (c.row.bubble_fraction) c.bubble_fraction = bubble_of(spec, p);
  if (c.row.forward_s) c.forward_s = layer_time(p, true);
  if (c.row.backward_s) c.backward_s = layer_time(p, false);
}

// The null model, with which predictions are compared: a constant FLOP/s for each (publication, GPU model), the median
// over the measured steps.
std::map<std::pair<std::string, std::string>, double> null_rates(const std::vector<PublishedCase>& cases) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> rates;
  for (const PublishedCase& c : cases) {
    if (!c.reason.empty() || !c.row.step_time_s || !c.row.doubtful.empty()) continue;
    rates[{c.row.source, c.gpu}].push_back(c.model_flops / static_cast<double>(c.gpus) / *c.row.step_time_s);
  }
  std::map<std::pair<std::string, std::string>, double> result;
  for (auto& [key, list] : rates) {
    std::sort(list.begin(), list.end());
    result[key] = (list[(list.size() - 1) / 2] + list[list.size() / 2]) / 2;
  }
  return result;
}

}  // namespace

void name_models(std::vector<PublishedRow>& rows) {
  for (PublishedRow& row : rows) {
    try {
      const Model m = parse_spec(row.spec, row.id).model;
      row.model = fmt::format("hidden {}, heads {}/{}, feed_forward {}", m.hidden, m.heads, m.kv_heads, m.feed_forward);
      if (m.moe) row.model += fmt::format(", experts {} of {}", m.moe->experts, m.moe->feed_forward);
    } catch (const Error&) {
      row.model = row.id;  // a step that is refused is not predicted either
    }
  }
}

std::vector<PublishedRow> read_published(const std::string& path, PublishedFacts facts) {
  return parse_published(read_input(path, kMostTables), path, facts);
}

std::vector<PublishedRow> parse_published(std::string_view text, const std::string& path, PublishedFacts which) {
  constexpr const char* kAdvice = "a list of published measurements is needed";
  const nlohmann::json list = parse_json(path, text, kAdvice);
  const std::vector<JsonValue> entries = JsonValue(list, path, kAdvice).items();
  std::set<std::string> groups;
  for (const JsonValue& entry : entries) groups.insert(entry.is_object() ? entry.text_or("group", "") : "");
  std::vector<PublishedRow> rows;
  const std::vector<Fact> facts = known_facts(which);
  const std::string stem = std::filesystem::path(path).stem().string();
  for (const JsonValue& listed : entries) {
    const std::string where = fmt::format("{}: row {}", path, rows.size() + 1);
    const JsonValue entry(listed.raw(), where);
    rows.push_back(parse_row(entry, groups.size() > 1 ? entry.at("group").text() : stem, facts, where));
  }
  return rows;
}

PublishedCase predict_published(const PublishedRow& row, const std::string& profile) {
  PublishedCase c;
  c.row = row;
  try {
    const Spec spec = parse_spec(row.spec, row.id);
    c.gpu = spec.cluster.gpu.id;
    c.model = spec.model.name;
    c.gpus = spec.gpus;
    c.nodes = spec.cluster.nodes;
    c.model_flops = model_flops(spec, AttentionPairs::full);
    if (row.bubble_fraction || row.forward_s || row.backward_s)
      fill_from_trace(c, spec, predict(spec, false, profile));
    else
      fill(c, spec, predict_report(spec, profile_for(spec, profile)));
  } catch (const Error& e) {
    c.reason = e.what();
    for (const std::string& prefix : {row.id + ": ", row.id + ":1: "}) {
      if (c.reason.starts_with(prefix)) c.reason.erase(0, prefix.size());
    }
  }
  return c;
}

std::vector<Miss> misses(const std::vector<PublishedCase>& cases, Judged what, bool doubtful) {
  const auto rates = null_rates(cases);
  std::vector<Miss> result;
  const auto add = [&](const PublishedCase& c, double predicted, const std::optional<double>& measured) {
    if (measured) result.push_back({&c, predicted / *measured - 1, 0});
  };
  for (const PublishedCase& c : cases) {
    if (!c.reason.empty() || c.row.doubtful.empty() == doubtful) continue;
    if (what == Judged::memory) add(c, c.peak_memory_bytes, c.row.peak_memory_bytes);
    if (what == Judged::bubble && c.row.bubble_fraction)
      result.push_back({&c, c.bubble_fraction - *c.row.bubble_fraction, 0});
    if (what == Judged::layer) {
      add(c, c.forward_s, c.row.forward_s);
      add(c, c.backward_s, c.row.backward_s);
    }
    const bool stalled = c.stalled_step_s > 0 && c.row.doubtful.starts_with("stalled");
    if (what == Judged::stalled && stalled) add(c, c.stalled_step_s, c.row.step_time_s);
    if (what == Judged::stalled_memory && stalled) add(c, c.stalled_memory_bytes, c.row.peak_memory_bytes);
    if (what != Judged::step || !c.row.step_time_s) continue;
    add(c, c.step_time_s, c.row.step_time_s);
    const auto rate = rates.find({c.row.source, c.gpu});
    if (rate == rates.end()) continue;
    result.back().null_error = c.model_flops / static_cast<double>(c.gpus) / rate->second / *c.row.step_time_s - 1;
  }
  return result;
}

std::vector<GridRegret> regrets(const std::vector<PublishedCase>& cases) {
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::vector<const PublishedCase*>> grids;
  for (const PublishedCase& c : cases) {
    if (c.reason.empty() && c.row.doubtful.empty() && c.row.step_time_s)
      grids[{c.row.source, c.model, c.gpus}].push_back(&c);
  }
  std::map<std::string, GridRegret> by_source;
  for (const auto& [key, grid] : grids) {
    if (grid.size() < kSmallestGrid) continue;
    const auto rate = [](const PublishedCase* c) { return c->tokens / *c->row.step_time_s; };
    const auto best = *std::max_element(grid.begin(), grid.end(), [&](auto* a, auto* b) { return rate(a) < rate(b); });
    const auto picked = *std::max_element(grid.begin(), grid.end(), [](auto* a, auto* b) {
      return a->tokens / a->step_time_s < b->tokens / b->step_time_s;
    });
    GridRegret& r = by_source[std::get<0>(key)];
    const double regret = rate(best) / rate(picked) - 1;
    r.source = std::get<0>(key);
    ++r.grids;
    r.mean += regret;
    r.worst = std::max(r.worst, regret);
    r.right += best == picked ? 1 : 0;
  }
  std::vector<GridRegret> result;
  for (auto& [source, r] : by_source) {
    r.mean /= static_cast<double>(r.grids);
    r.right /= static_cast<double>(r.grids);
    result.push_back(r);
  }
  return result;
}

Coverage coverage(const std::vector<PublishedCase>& cases) {
  Coverage result;
  for (const PublishedCase& c : cases) {
    if (!c.reason.empty() || !c.row.step_time_s) continue;
    ++result.rows;
    if (c.step_time_low_s <= *c.row.step_time_s && *c.row.step_time_s <= c.step_time_high_s) ++result.inside;
  }
  return result;
}

std::vector<ValidatedRow> validated_rows(const std::vector<PublishedCase>& cases) {
  std::vector<ValidatedRow> result;
  for (const PublishedCase& c : cases) {
    if (!c.reason.empty() || !c.row.doubtful.empty() || !c.row.step_time_s) continue;
    result.push_back(c.like);
    result.back().source = c.row.source;
    result.back().id = c.row.id;
    result.back().error = c.step_time_s / *c.row.step_time_s - 1;
  }
  return result;
}

}  // namespace orrery
