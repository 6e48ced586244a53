#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/output_file.h"
#include "models/layers/blocks.h"
#include "models/load/load_spec.h"
#include "models/load/open_spec.h"
#include "models/partition/layers_of_stages.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "models/spec/vision.h"
#include "sim/cli/commands.h"
#include "sim/explain/formulas.h"
#include "sim/explain/group_routes.h"
#include "sim/explain/techniques.h"
#include "sim/page/explain.h"
#include "sim/picture/picture.h"
#include "sim/predict/predict.h"
#include "sim/print/section.h"
#include "sim/published/from_steps.h"
#include "sim/report/critical_path.h"
#include "sim/report/report_parts.h"
#include "sim/report/report_text.h"
#include "sim/report/validated_rows.h"

namespace orrery {
namespace {

constexpr std::size_t kCriticalRows = 10, kValidatedRows = 5, kProposals = 5;

double as_double(std::int64_t n) { return static_cast<double>(n); }

// A text which says that a key of the spec has no effect with this strategy, and why; "" if the key has an effect.
std::string_view idle(const Spec& spec, const std::string& key) {
  const bool of_units = key == "strategy.prefetch_units" || key == "strategy.units_in_flight";
  return of_units && !row_of(spec.strategy.sharding).shards_parameters ? "; no effect: no units are gathered" : "";
}

Section origins(const Spec& spec) {
  Table t;
  t.columns = {{"key", "", Align::left}, {"value", "", Align::left}, {"from", "", Align::left}};
  for (const Origin& o : spec.origins) {
    const bool cut = o.key == "strategy.stage_layers" && spec.strategy.stage_layers.empty();
    const std::string value = cut ? fmt::format("[{}]", fmt::join(stage_layers(spec), ", ")) : o.value;
    std::string from = cut && plans_stages(spec.strategy)
                           ? fmt::format("schedule {}: DAPPLE's planner", spec.strategy.schedule)
                           : o.from;
    if (!o.asked.empty()) from += fmt::format(" ({})", o.asked);
    t.rows.push_back({o.key, value.empty() ? "-" : value, from + std::string(idle(spec, o.key))});
  }
  return {"Values and where they come from", {}, t, {}};
}

// The formula for the bytes of a rank's model states (parameters, gradients, optimizer) with numbers as its symbols:
// "2·2.18e+09 + 4·2.18e+09 + 12·2.18e+09/2".
std::string with_numbers(const StateFormula& f, double elements) {
  const auto part = [&](Bytes each, bool sharded) {
    return fmt::format("{}·{:.4g}{}", each, elements, sharded ? fmt::format("/{}", f.shards) : "");
  };
  return fmt::format("{} + {} + {}", part(f.parameters, f.shards_parameters), part(f.gradients, f.shards_gradients),
                     part(f.optimizer + f.copies, f.shards_optimizer));
}

// A text about offloaded states: the memory tiers that hold them, and the bytes that a rank copies in a step.
std::string offloaded(const Spec& spec, const Prediction& p, const StateFormula& f) {
  const Offload& o = spec.strategy.offload;
  std::string text;
  for (const auto& [name, device] : {std::pair("parameters", o.parameters), std::pair("gradients", o.gradients),
                                     std::pair("optimizer", o.optimizer), std::pair("activations", o.activations)})
    text += fmt::format("{}: {}; ", name, name_of(device));
  if (f.copies > 0) text += fmt::format("gradients for the host's update: {}; ", term(f.copies, f.shards_optimizer));
  std::map<std::pair<MemoryTier, MemoryTier>, Bytes> copied;
  for (TaskId t = p.plan.classes[0].begin; t < p.plan.classes[0].end; ++t) {
    const auto* c = std::get_if<PlaceCopy>(&p.plan.op_of(t).work);
    if (c != nullptr && c->from != c->to) copied[{c->from, c->to}] += c->bytes;
  }
  text += "copied in a step by a rank:";
  for (const auto& [way, bytes] : copied)
    text += fmt::format(" {} to {} {}", name_of(way.first), name_of(way.second), volume_text(as_double(bytes)));
  return text;
}

// A text about the snapshots that parameter servers write for a restart, which hold weights and optimizer states.
std::string snapshots(const Spec& spec, const Prediction& p) {
  const auto& servers = spec.strategy.parameter_server;
  if (!servers || servers->snapshot_every == 0) return "";
  const StateFormula f = of_slot(state_formula(spec, p.plan), p.plan, p.plan.classes.size() - 1);
  const double bytes = static_cast<double>(f.parameters + f.optimizer) *
                       as_double(elements_of(p.plan, p.plan.classes.size() - 1)) / as_double(p.plan.servers);
  return fmt::format("every {} steps each server writes {:.3f} GB ({}Ψ/S); a lost rank costs the steps since then",
                     servers->snapshot_every, bytes / 1e9, f.parameters + f.optimizer);
}

Section states(const Spec& spec, const Prediction& p) {
  // Dimensions of parallelism over which weights of experts and token embeddings are sharded, unlike other weights.
  constexpr Dimension kOthers[] = {Dimension::expert_data, Dimension::embedding};
  const StateFormula f = of_slot(state_formula(spec, p.plan), p.plan, 0);
  const double largest = as_double(p.report.memory.peak);
  const Scale scale = memory_scale(largest);
  const std::string unit(scale.unit);
  Section section{.title = fmt::format("Model states per rank: {} bytes", text_of(f))};
  section.lines.push_back(
      fmt::format("parameters {}, gradients {}, optimizer {}; N = {} rank{} share{} a set of shards",
                  term(f.parameters, f.shards_parameters), term(f.gradients, f.shards_gradients),
                  term(f.optimizer, f.shards_optimizer), f.shards, f.shards == 1 ? "" : "s", f.shards == 1 ? "s" : ""));
  for (const auto& [of, copies] :
       {std::pair{"experts", kOthers[0]}, {"the embedding table at both ends", kOthers[1]}}) {
    if (copies == Dimension::embedding ? elements_of(p.plan, 0, copies) > 0 : spec.model.moe.has_value())
      section.lines.push_back(fmt::format("of {}: N = {}", of, state_formula(spec, p.plan, copies).shards));
  }
  if (spec.strategy.offload.any()) section.lines.push_back(offloaded(spec, p, f));
  if (const std::string line = snapshots(spec, p); !line.empty()) section.lines.push_back(line);
  Table& t = section.table;
  t.columns = {{"rank class", "", Align::left}, {"ranks"},         {"Ψ"},
               {"in numbers", "", Align::left}, {"formula", unit}, {"plan", unit},
               {"activations", unit},           {"peak", unit}};
  for (std::size_t s = 0; s < p.plan.classes.size(); ++s) {
    const SlotMemory& m = p.report.memory.ranks[s].memory;
    double elements = 0, bytes = 0;
    std::string numbers;
    const auto add = [&](StateFormula kept, Dimension copies) {
      const double n = as_double(elements_of(p.plan, s, copies));
      if (n == 0 && copies != Dimension::data) return;
      // An asynchronous schedule keeps several versions of the weights, which all count as parameters.
      kept.parameters *= p.plan.classes[s].versions;
      elements += n;
      bytes += kept.bytes(n);
      numbers += (numbers.empty() ? "" : " + ") + with_numbers(kept, n);
    };
    add(of_slot(state_formula(spec, p.plan, Dimension::data, s), p.plan, s), Dimension::data);
    for (const Dimension copies : kOthers) add(state_formula(spec, p.plan, copies, s), copies);
    if (const double frozen = frozen_bytes(spec, p.plan, s); frozen > 0) {
      bytes += frozen;
      numbers += fmt::format(" + {:.4g} of what is frozen", frozen);
    }
    t.rows.push_back({p.plan.classes[s].name, fmt::format("{}", p.plan.classes[s].multiplicity), count_text(elements),
                      numbers, number(bytes, scale), number(as_double(states_in_plan(p.plan, s)), scale),
                      number(as_double(m.at_peak[static_cast<std::size_t>(Category::activations)]), scale),
                      number(as_double(m.peak), scale)});
  }
  return section;
}

Section traffic(const Spec& spec, const Prediction& p) {
  const std::vector<Volume> list = volumes(spec, p.plan, p.report);
  Table t;
  t.columns = {{"group", "", Align::left},
               {"formula", "", Align::left},
               {"with", "", Align::left},
               {"formula", "GB"},
               {"simulated", "GB"}};
  for (const Volume& v : list) {
    t.rows.push_back(
        {v.what, v.formula, v.numbers, fmt::format("{:.3f}", v.bytes / 1e9), fmt::format("{:.3f}", v.simulated / 1e9)});
  }
  return {"Bytes that leave a GPU per step", {}, t, {}};
}

Section bubble(const Spec& spec, const Report& report) {
  const Strategy& s = spec.strategy;
  Section section{.title = "Pipeline bubble"};
  if (s.pipeline == 1) return section;
  std::string line;
  if (const std::optional<Bubble> b = bubble_formula(s, spec.software.communication.post_update_validation)) {
    line = fmt::format("{}: {} = {} with p = {}, m = {}, v = {}; ", s.schedule, b->formula, percent_text(b->share),
                       s.pipeline, s.micro_batches(), s.virtual_stages);
  }
  section.lines.push_back(line + fmt::format("simulated {}", percent_text(report.bubble_fraction)));
  if (const std::string roll_back = roll_back_line(report); !roll_back.empty()) section.lines.push_back(roll_back);
  for (const WeightRow& w : report.weights) {
    section.lines.push_back(fmt::format("{}: {} version{} of its weights, gradients of weights {} update{} old", w.name,
                                        w.versions, w.versions == 1 ? "" : "s", w.staleness,
                                        w.staleness == 1 ? "" : "s"));
  }
  return section;
}

// A text on whether a step's gradient depends on how the batch is cut into micro-batches. It does so only if the model
// computes something over several samples, as the routers of experts do; norms are computed over one token.
Section coupling(const Spec& spec) {
  Section section{.title = "What micro-batches have in common"};
  if (spec.strategy.micro_batches() == 1) return section;
  const std::string& schedule = spec.strategy.schedule;
  const Updates updates = schedule == "file" ? Updates::flush : find_schedule(schedule).updates;
  if (updates == Updates::every_micro_batch) {
    section.lines = {"no weights: every micro-batch updates them, so their number and size change what is learnt"};
    return section;
  }
  const bool balances = spec.model.moe && spec.model.moe->aux_loss > 0;
  const auto has_capacity = [](const Model& m) { return m.moe && m.moe->capacity_factor; };
  const bool drops = has_capacity(spec.model) || (spec.second && has_capacity(spec.second->model));
  section.lines = {"no statistics of a batch: but for rounding the gradient is the same in micro-batches of any size"};
  if (balances || drops) {
    std::string line = "routers ";
    if (balances) line += "balance experts' load over the tokens of a micro-batch (auxiliary loss)";
    if (drops) line += fmt::format("{}drop tokens over capacity among those of a rank", balances ? " and " : "");
    section.lines = {line + ": the gradient is another where micro-batches have another size"};
  }
  if (updates == Updates::every_step) section.lines.emplace_back("all meet the same weights, which are not the newest");
  return section;
}

// A text on the critical path of the step: the kinds of ops on it, those that take the most time first.
Section critical(const Prediction& p) {
  std::map<std::string, Picoseconds> by_name;
  Picoseconds busy = 0, before = 0, late = 0;
  for (const TaskId t : critical_path(p.plan, p.trace)) {
    const Span& span = p.trace.spans[t];
    late += std::max<Picoseconds>(span.entered - before, 0);
    const Picoseconds time = span.ended - std::max(span.entered, before);
    by_name[p.plan.op_of(t).name] += time;
    busy += time;
    before = span.ended;
  }
  std::vector<std::pair<Picoseconds, std::string>> rows;
  rows.reserve(by_name.size() + 1);
  for (const auto& [name, time] : by_name) rows.emplace_back(time, name);
  if (late > 0) rows.emplace_back(late, "waiting for the host to launch");
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const Scale scale = time_scale(seconds(busy + late));
  Table t;
  t.columns = {{"on the critical path", "", Align::left}, {"time", std::string(scale.unit)}, {"share", "%"}};
  for (std::size_t i = 0; i < std::min(rows.size(), kCriticalRows); ++i) {
    const double share = as_double(rows[i].first) / as_double(busy + late);
    t.rows.push_back({rows[i].second, number(seconds(rows[i].first), scale), fmt::format("{:.1f}", 100 * share)});
  }
  return {"Critical path", {}, t, {}};
}

// A text on the bytes of a technique's transfers, and on their exposed time (in which the rank computes nothing): ";
// here 378.2 GB a step leave a GPU, 0.80 s of it exposed".
std::string spent_text(const Report& report, const std::string& group) {
  double bytes = 0, exposed = 0;
  for (const CommunicationRow& row : report.communication) {
    if (group.empty() || row.group != group) continue;
    bytes += row.bytes_per_gpu;
    exposed += row.exposed_s;
  }
  if (bytes == 0) return "";
  return fmt::format("; here {} a step leave a GPU, {} exposed", orrery::volume_text(bytes), time_text(exposed));
}

// A text on techniques (forms of parallelism, sharding, recomputation, ...): what those in use save and cost, what the
// step would be without each, and what each technique that is not in use would change.
Section technique_effects(const Spec& spec, const Prediction& p, unsigned threads) {
  Section section{.title = "What each technique saves and costs here, by simulation without it"};
  for (const Effect& e : effects(p.profile, p.report, techniques(spec), threads)) {
    const Technique& t = e.technique;
    if (t.used)
      section.lines.insert(section.lines.end(),
                           {t.name, "  saves: " + t.saves,
                            fmt::format("  costs: {}{}", t.costs, spent_text(p.report, t.group)), "  " + text_of(e)});
    else if (e.refused.empty())
      section.after.push_back("  " + text_of(e));
  }
  if (section.lines.empty()) section.lines = {"none is in use"};
  if (!section.after.empty()) section.after.insert(section.after.begin(), "not in use");
  return section;
}

std::string parameters_text(const Spec& spec) {
  const Model& m = spec.model;
  const auto count = [](const std::vector<Parameter>& list) {
    std::int64_t sum = 0;
    for (const Parameter& p : list) sum += elements(p);
    return as_double(sum);
  };
  double layers = 0;
  for (std::int64_t i = 0; i < m.layers; ++i) layers += count(layer_parameters(m, i));
  const std::string encoder =
      m.vision ? fmt::format(", and a vision encoder of {}", count_text(as_double(vision_parameter_count(m)))) : "";
  return fmt::format("{} parameters: {} layers {}, embedding {}, head {}{}",
                     grouped(as_double(parameter_count(m, spec.sequence))), m.layers, count_text(layers),
                     count_text(count(embedding_parameters(m, spec.sequence))), count_text(count(head_parameters(m))),
                     encoder);
}

// The sections on what decides the step time: the step's limit, its critical path, and what each technique saves and
// costs.
std::vector<Section> deciding(const Spec& spec, const Prediction& p, unsigned threads) {
  Section limit = {.title = "What limits the step"};
  limit.lines.push_back(fmt::format("step of {}: {}", time_text(p.report.step_time_s), p.report.limit));
  if (const std::string models = models_text(p.report); !models.empty()) limit.lines.push_back(models);
  if (p.report.variation) limit.lines.push_back(variation_line(p.report));
  if (p.report.hashes) limit.lines.push_back(hashes_line(p.report));
  return {limit, critical(p), technique_effects(spec, p, threads)};
}

std::vector<Section> rest(const Spec& spec, const Prediction& p) {
  return {origins(spec),
          states(spec, p),
          traffic(spec, p),
          group_routes(p),
          bubble(spec, p.report),
          coupling(spec),
          nearest_section(spec, kValidatedRows)};
}

std::string text_of(const std::vector<Section>& sections, const Style& style) {
  std::string text;
  for (const Section& section : sections) {
    if (!section.is_empty()) text += '\n' + text_of(section, style);
  }
  return text;
}

std::string counts_text(const Spec& spec) {
  const auto given = std::ranges::count_if(spec.origins, is_given);
  return fmt::format(
      "\n  --all shows the rest: {} values that are given and {} that are not, formulas of memory, traffic and "
      "bubble, where groups lie, published steps like this one\n",
      given, static_cast<std::ptrdiff_t>(spec.origins.size()) - given);
}

// The HTML page with all sections except that on the origins of values, which the page shows beside the spec.
std::string page_of_sections(const Spec& spec, const SpecText& text, const Report& report,
                             const std::vector<Section>& first, const std::vector<Section>& others,
                             const ExplainOptions& options, const Common& common) {
  std::vector<Section> sections = first;
  sections.insert(sections.end(), others.begin() + 1, others.end());
  return explain_page(spec, report, sections, {text, options.overrides, {}, common.command, common.version});
}

// Opens the file of the picture, if one is asked for, before anything is simulated, so that errors show at once.
std::optional<OutputFile> open_picture(const std::string& path) {
  if (path.empty()) return std::nullopt;
  check_picture_name(path);
  try {
    return OutputFile(path);
  } catch (const Error& e) {
    throw Error(e.what());
  }
}

}  // namespace

Outcome explain_command(const ExplainOptions& options, const Common& common) {
  std::optional<OutputFile> drawing = open_picture(options.picture);
  const SpecText file = read_spec_text(options.spec);
  const Spec spec = parse_spec(file.text, file.path, options.overrides);
  if (spec.generation && options.next_run)
    throw Error("--next-run: it proposes training steps to measure, and the spec generates text; leave it out");
  if (spec.generation) return explain_generation(spec, file, options, common);
  const Prediction p = predict(spec, false, options.profile);
  if (drawing) drawing->write(picture(spec, p.plan, p.report));
  if (drawing) drawing->commit();
  const bool all = options.all || common.style.columns == 0;
  const std::vector<Section> first = deciding(spec, p, common.threads);
  const std::vector<Section> others = all || common.page ? rest(spec, p) : std::vector<Section>{};
  Outcome outcome{title(spec, common.style) + fmt::format("  {}\n", parameters_text(spec)) +
                  text_of(first, common.style)};
  outcome.text += all ? text_of(others, common.style) : counts_text(spec);
  const StackStep step{
      .id = spec.name, .text = file.text, .path = file.path, .overrides = options.overrides, .spec = spec};
  if (options.next_run)
    outcome.text += next_runs_text(next_runs({step}, fit_of(p.profile.steps), kProposals, common.progress));
  if (common.page) outcome.page = page_of_sections(spec, file, p.report, first, others, options, common);
  return outcome;
}

}  // namespace orrery
