#include "sim/page/explain.h"

#include "sim/page/document.h"
#include "sim/page/html.h"
#include "sim/page/summary.h"
#include "sim/page/words.h"
#include "sim/report/report_parts.h"

namespace orrery {

std::string explain_page(const Spec& spec, const Report& report, const std::vector<Section>& sections,
                         const SpecNotes& notes) {
  std::string summary = report.memory.fits ? "" : alarm_markup(fit_text(report));
  summary += step_cards(report) + time_bar(report) + lines_markup(strategy_words(spec));
  std::string body = part("Summary", summary);
  for (const Section& section : sections) body += section_markup(section);
  body += machine_part(spec, {}) + spec_part(spec, notes);
  return document(
      {"Explained: " + title_words(spec), {strategy_text(spec), batch_text(spec)}, notes.command, notes.version, body});
}

}  // namespace orrery
