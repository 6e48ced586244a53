#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/cli/commands.h"
#include "sim/explain/generation.h"
#include "sim/page/generate.h"

namespace orrery {
namespace {

Section values_section(const Spec& spec) {
  Table t;
  t.columns = {{"key", "", Align::left}, {"value", "", Align::left}, {"from", "", Align::left}};
  for (const Origin& o : spec.origins) t.rows.push_back({o.key, o.value.empty() ? "-" : o.value, o.from});
  return {"Values and where they come from", {}, t, {}};
}

}  // namespace

Outcome explain_generation(const Spec& spec, const SpecText& text, const ExplainOptions& options,
                           const Common& common) {
  if (!options.picture.empty())
    throw Error(with_place(spec, "spec: workload: generate has no --picture yet; leave it out"));
  const GenerationReport report = predict_generation(spec, profile_for(spec, options.profile));
  Outcome outcome{generation_text(spec, report, common.style)};
  std::vector<Section> sections = generation_sections(spec, report, options.profile);
  if (common.page)
    outcome.page = explained_generation_page(spec, report, sections,
                                             {text, options.overrides, {}, common.command, common.version});
  if (options.all || common.style.columns == 0) sections.push_back(values_section(spec));
  for (const Section& section : sections) {
    if (!section.is_empty()) outcome.text += '\n' + text_of(section, common.style);
  }
  return outcome;
}

}  // namespace orrery
