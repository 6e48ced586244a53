// Writes the page of a spec that generates text.
#include <fmt/format.h>

#include "sim/generate/formats_text.h"
#include "sim/page/bars.h"
#include "sim/page/colours.h"
#include "sim/page/document.h"
#include "sim/page/html.h"
#include "sim/page/simulate.h"
#include "sim/page/spec_parts.h"
#include "sim/page/summary.h"
#include "sim/page/words.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

std::string memory_text_of(Bytes bytes) { return memory_text(static_cast<double>(bytes)); }

std::string generation_cards(const Spec& spec, const GenerationReport& r) {
  const GeneratedMemory& m = r.memory;
  std::string cards = card_markup("first token", figure("ttft_s", r.first_token_s, time_text(r.first_token_s)),
                                  {fmt::format("after prompts of {} tokens", spec.generation->input)});
  if (r.token_s > 0)
    cards += card_markup("each further token", figure("tpot_s", r.token_s, time_text(r.token_s)),
                         {grouped(1 / r.token_s) + " tokens a second a sequence",
                          percent_text(r.bandwidth_share) + " of the memory bandwidth"});
  cards += card_markup(
      "tokens a second", figure("tokens_per_s", r.tokens_per_s, grouped(r.tokens_per_s)),
      {grouped(r.tokens_per_s / static_cast<double>(spec.gpus)) + " per GPU", "all in " + time_text(r.total_s)});
  cards += card_markup(
      "memory of a GPU", escaped(memory_text_of(m.sum())),
      {m.fits() ? fmt::format("fits {} of {}", memory_text_of(m.allowed), memory_text_of(m.capacity))
                : fmt::format("DOES NOT FIT {} of {}", memory_text_of(m.allowed), memory_text_of(m.capacity)),
       fmt::format("at most {} sequences fit", r.largest_batch)},
      m.fits() ? "good" : "bad");
  return cards_markup(cards);
}

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

}  // namespace

std::string generation_page(const Spec& spec, const GenerationReport& r, const SpecNotes& notes) {
  const Generation& g = *spec.generation;
  std::string summary = generation_cards(spec, r);
  summary += paragraph("limited by " + limit_text(r));
  if (const std::string weights = formats_text(spec); !weights.empty()) summary += paragraph("weights: " + weights);
  for (const std::string& remark : r.prefill.front().report.remarks) summary += paragraph("Note: " + remark);
  std::string body = part("Summary", summary);
  body += part("Passes", table_markup(passes_table(r)));
  body += part("The first pass over the prompts", time_bar(r.prefill.front().report));
  if (!r.decode.empty()) body += part("A pass of one token", time_bar(r.decode.front().report));
  body += part("Memory", generation_memory(r));
  body += machine_part(spec, {}) + defaults_part(spec, notes) + spec_part(spec, notes);
  const std::string under = fmt::format("generates {} x {} tokens from prompts of {}", g.batch, g.output, g.input);
  return document({title_words(spec), {under}, notes.command, notes.version, body});
}

}  // namespace orrery
