#include "sim/page/generate.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/generate/formats_text.h"
#include "sim/page/bars.h"
#include "sim/page/colours.h"
#include "sim/page/document.h"
#include "sim/page/html.h"
#include "sim/page/links.h"
#include "sim/page/summary.h"
#include "sim/page/timeline.h"
#include "sim/page/words.h"
#include "sim/print/text.h"
#include "sim/report/link_load.h"

namespace orrery {
namespace {

std::string memory_text_of(Bytes bytes) { return memory_text(static_cast<double>(bytes)); }

std::string generation_memory(const GenerationReport& r) {
  const GeneratedMemory& m = r.memory;
  const auto whole = static_cast<double>(std::max(m.allowed, m.sum()));
  std::vector<BarPart> parts;
  const auto add = [&](const char* name, Bytes bytes, std::string_view colour) {
    if (bytes > 0)
      parts.push_back({name, static_cast<double>(bytes) / whole, memory_text_of(bytes), std::string(colour)});
  };
  add("weights", m.weights, colour_of(Category::parameters));
  add("keys and values", m.cache, colour_of(Category::activations));
  add("recurrent states", m.states, colour_of(Category::optimizer));
  add("working memory", m.working, colour_of(Category::buffers));
  add("free", m.allowed - m.sum(), kIdleColour);
  return stacked_bar(parts, "memory of a GPU");
}

// A chart of the work of passes over time, and one of how full links are then. passes: the passes in one plan.
std::string passes_over_time(const Prediction& passes, const std::string& cut) {
  std::string content = timeline_markup(passes.plan, passes.trace);
  if (!cut.empty()) content += paragraph(cut, "class=\"note\"");
  if (const std::string links = links_markup(link_loads(passes.plan, passes.costs.timing, passes.trace, passes.cluster),
                                             passes.trace.step_time);
      !links.empty())
    content += element("h3", "How full links are over these passes") + '\n' + links;
  return content;
}

std::string generation_summary(const Spec& spec, const GenerationReport& r) {
  std::string summary = generation_cards(r, spec.gpus);
  summary += paragraph("limited by " + limit_text(r));
  if (const std::string weights = formats_text(spec); !weights.empty()) summary += paragraph("weights: " + weights);
  for (const std::string& remark : r.prefill.front().report.remarks) summary += paragraph("Note: " + remark);
  return part("Summary", summary);
}

std::string under_generation(const Spec& spec) {
  const Generation& g = *spec.generation;
  return fmt::format("generates {} x {} tokens from prompts of {}", g.batch, g.output, g.input);
}

}  // namespace

std::string generation_cards(const GenerationReport& r, std::int64_t gpus, std::string_view prefix) {
  const auto id = [&](const char* name) { return std::string(prefix) + name; };
  const GeneratedMemory& m = r.memory;
  const GeneratedPass& prompt = r.prefill.back();
  std::string cards = card_markup("first token", figure(id("ttft_s"), r.first_token_s, time_text(r.first_token_s)),
                                  {fmt::format("after prompts of {} tokens", prompt.cached + prompt.tokens)});
  if (r.token_s > 0) {
    std::vector<std::string> lines = {grouped(1 / r.token_s) + " tokens a second a sequence"};
    if (r.bandwidth_share > 0) lines.push_back(percent_text(r.bandwidth_share) + " of the memory bandwidth");
    cards += card_markup("each further token", figure(id("tpot_s"), r.token_s, time_text(r.token_s)), lines);
  }
  cards +=
      card_markup("tokens a second", figure(id("tokens_per_s"), r.tokens_per_s, grouped(r.tokens_per_s)),
                  {grouped(r.tokens_per_s / static_cast<double>(gpus)) + " per GPU", "all in " + time_text(r.total_s)});
  std::vector<std::string> room = {fit_text(m)};
  if (r.largest_batch > 0) room.push_back(fmt::format("at most {} sequences fit", r.largest_batch));
  cards += card_markup("memory of a GPU", escaped(memory_text_of(m.sum())), room, m.fits() ? "good" : "bad");
  return cards_markup(cards);
}

std::string generation_page(const Spec& spec, const GenerationReport& r, const Prediction& passes,
                            const std::string& cut, const SpecNotes& notes) {
  std::string body = generation_summary(spec, r);
  body += part("Passes", table_markup(passes_table(r)));
  body += part("The first pass over the prompts", time_bar(r.prefill.front().report));
  if (!r.decode.empty()) body += part("A pass of one token", time_bar(r.decode.front().report));
  body += part("The first passes over time", passes_over_time(passes, cut));
  body += part("Memory", generation_memory(r));
  body += machine_part(spec, {}) + defaults_part(spec, notes) + spec_part(spec, notes);
  return document({title_words(spec), {under_generation(spec)}, notes.command, notes.version, body});
}

std::string explained_generation_page(const Spec& spec, const GenerationReport& r, const std::vector<Section>& sections,
                                      const SpecNotes& notes) {
  std::string body = generation_summary(spec, r);
  for (const Section& section : sections) body += section_markup(section);
  body += part("Memory", generation_memory(r));
  body += machine_part(spec, {}) + spec_part(spec, notes);
  return document({"Explained: " + title_words(spec), {under_generation(spec)}, notes.command, notes.version, body});
}

}  // namespace orrery
