#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/generate/formats_text.h"
#include "sim/generate/generate.h"
#include "sim/print/table.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

using json = nlohmann::ordered_json;

json pass_json(const GeneratedPass& pass) {
  json limits = json::object();
  for_limits(pass.limits, [&](std::string name, double share) {
    std::replace(name.begin(), name.end(), ' ', '_');
    limits[name] = share;
  });
  return {{"tokens", pass.tokens},
          {"cached", pass.cached},
          {"period_s", pass.period_s},
          {"limits", limits},
          {"step", json::parse(to_json(pass.report))}};
}

json passes_json(const std::vector<GeneratedPass>& passes) {
  json list = json::array();
  for (const GeneratedPass& pass : passes) list.push_back(pass_json(pass));
  return list;
}

std::string memory_line(const GenerationReport& r, const Style& style) {
  const GeneratedMemory& m = r.memory;
  const auto text = [](Bytes bytes) { return memory_text(static_cast<double>(bytes)); };
  const std::string states =
      m.states > 0 ? fmt::format(", recurrent states {} ({} a sequence)", text(m.states), text(m.states_a_sequence))
                   : "";
  const std::string needs =
      fmt::format("{} a GPU: weights {}, keys and values {} ({} a sequence){}, working memory {}", text(m.sum()),
                  text(m.weights), text(m.cache), text(m.cache_a_sequence), states, text(m.working));
  if (m.fits()) return needs + "; " + fit_text(m);
  const std::string largest =
      r.source == "simulated" ? fmt::format("; at most {} sequences", r.largest_batch) : std::string();
  return warning(fmt::format("{}: {}{}", fit_text(m), needs, largest), style);
}

}  // namespace

std::string fit_text(const GeneratedMemory& m) {
  const auto text = [](Bytes bytes) { return memory_text(static_cast<double>(bytes)); };
  std::string room = text(m.allowed);
  if (m.allowed < m.capacity)
    room += fmt::format(", {:.0f} % of {}", 100 * static_cast<double>(m.allowed) / static_cast<double>(m.capacity),
                        text(m.capacity));
  if (m.fits()) return fmt::format("fits: {} to spare of {}", text(m.allowed - m.sum()), room);
  return fmt::format("DOES NOT FIT: {} more than {}", text(m.sum() - m.allowed), room);
}

Table passes_table(const GenerationReport& r) {
  Table table{{{"pass", "", Align::left},
               {"tokens a", "sequence"},
               {"cached", "tokens"},
               {"time", "ms"},
               {"spent on", "", Align::left}},
              {}};
  const auto add = [&](const char* name, const GeneratedPass& pass) {
    std::string spent;
    for (int k = 0; k < kTimeKinds; ++k) {
      const double share = pass.report.time_s[static_cast<std::size_t>(k)] / pass.report.step_time_s;
      if (share >= .01)
        spent +=
            fmt::format("{}{} {}", spent.empty() ? "" : ", ", name_of(static_cast<TimeKind>(k)), percent_text(share));
    }
    std::replace(spent.begin(), spent.end(), '_', ' ');
    table.rows.push_back({name, fmt::format("{}", pass.tokens), fmt::format("{}", pass.cached),
                          fmt::format("{:.3f}", pass.period_s * 1e3), spent});
  };
  add("prefill", r.prefill.front());
  if (r.prefill.size() > 1) add("prefill, last", r.prefill.back());
  if (!r.decode.empty()) add("decode, first", r.decode.front());
  if (r.decode.size() > 2) add("decode, middle", r.decode[1]);
  if (r.decode.size() > 1) add("decode, last", r.decode.back());
  return table;
}

std::string limit_text(const GenerationReport& r) {
  const std::string prompts = "prompts: " + text_of(r.prefill.front().limits);
  return r.decode.empty() ? prompts : prompts + "; each token: " + text_of(r.decode[r.decode.size() / 2].limits);
}

std::string to_json(const Spec& spec, const GenerationReport& r) {
  const Generation& g = *spec.generation;
  const auto batch = static_cast<double>(g.batch), gpus = static_cast<double>(spec.gpus);
  const json root = {{"schema", "orrery.generation/1"},
                     {"source", r.source},
                     {"batch", g.batch},
                     {"input", g.input},
                     {"output", g.output},
                     {"tokens_per_pass", g.tokens_a_pass()},
                     {"ttft_s", r.first_token_s},
                     {"tpot_s", r.token_s},
                     {"total_s", r.total_s},
                     {"tokens_per_s", r.tokens_per_s},
                     {"tokens_per_s_per_gpu", r.tokens_per_s / gpus},
                     {"tokens_per_s_per_user", r.token_s > 0 ? 1 / r.token_s : 0},
                     {"prefill_tokens_per_s", batch * static_cast<double>(g.input) / r.first_token_s},
                     {"mfu", r.prompts_mfu},
                     {"mfu_decode", r.tokens_mfu},
                     {"mbu", r.bandwidth_share},
                     {"largest_batch", r.source == "simulated" ? json(r.largest_batch) : json()},
                     {"weights_format", text_of(spec.strategy.weights)},
                     {"weights_layers", name_in(kQuantisedLayers, spec.strategy.quantised_layers)},
                     {"bits_per_weight", bits_of_weights(spec)},
                     {"cache_format", name_of(g.kv_precision)},
                     {"memory",
                      {{"capacity_bytes", r.memory.capacity},
                       {"allowed_bytes", r.memory.allowed},
                       {"fits", r.memory.fits()},
                       {"weights_bytes", r.memory.weights},
                       {"cache_bytes", r.memory.cache},
                       {"cache_bytes_per_sequence", r.memory.cache_a_sequence},
                       {"states_bytes", r.memory.states},
                       {"states_bytes_per_sequence", r.memory.states_a_sequence},
                       {"working_bytes", r.memory.working}}},
                     {"prefill", passes_json(r.prefill)},
                     {"decode", passes_json(r.decode)}};
  return root.dump(2) + "\n";
}

std::string generation_text(const Spec& spec, const GenerationReport& r, const Style& style) {
  const Generation& g = *spec.generation;
  const auto gpus = static_cast<double>(spec.gpus), batch = static_cast<double>(g.batch);
  std::string text = fmt::format("{} generates {} x {} tokens from prompts of {} on {} x {}\n\n", spec.model.name,
                                 g.batch, g.output, g.input, spec.gpus, spec.cluster.gpu.name);
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<20} {}\n", name, value);
  };
  const auto mfu = [](double share) {
    return share > 0 ? fmt::format(", {} of the peak FLOP/s", percent_text(share)) : std::string();
  };
  line("first token", fmt::format("{} after {} tokens, {} a second", time_text(r.first_token_s),
                                  grouped(batch * static_cast<double>(g.input)),
                                  grouped(batch * static_cast<double>(g.input) / r.first_token_s)) +
                          mfu(r.prompts_mfu));
  if (r.token_s > 0)
    line("each further token",
         fmt::format("{}, {} tokens/s a sequence", time_text(r.token_s), grouped(1 / r.token_s)) +
             (r.bandwidth_share > 0 ? fmt::format(", {} of the memory bandwidth", percent_text(r.bandwidth_share))
                                    : "") +
             mfu(r.tokens_mfu));
  if (g.drafts > 0)
    line("each pass",
         fmt::format("checks {} proposed tokens and yields {:.2f} tokens on average", g.drafts, g.tokens_a_pass()));
  line("all", fmt::format("{}, {} tokens/s, {} a GPU", time_text(r.total_s), grouped(r.tokens_per_s),
                          grouped(r.tokens_per_s / gpus)));
  if (r.source == "simulated") line("limited by", limit_text(r));
  if (const std::string formats = formats_text(spec); !formats.empty()) line("weights", formats);
  line("memory", memory_line(r, style));
  if (r.source == "simulated")
    line("largest batch", fmt::format("{} sequences", grouped(static_cast<double>(r.largest_batch))));
  text += "\n" + print(passes_table(r), "  ", style.columns);
  for (const std::string& remark : r.prefill.front().report.remarks) text += fmt::format("  {}\n", remark);
  return text;
}

}  // namespace orrery
