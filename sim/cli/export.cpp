// `orrery export`: prints the options with which a training framework runs a spec's strategy.
#include <fmt/format.h>

#include "models/base/output_file.h"
#include "models/load/load_spec.h"
#include "sim/cli/commands.h"
#include "sim/launch/export.h"

namespace orrery {

Outcome export_command(const ExportOptions& options) {
  const Framework& framework = find_framework(options.to);
  const Spec spec = load_spec(options.spec, options.overrides);
  const Exported exported = export_options(values_of(spec), framework);
  std::vector<std::string> head = {fmt::format("{} of {}, by orrery export", framework.about, options.spec)};
  std::string log;
  for (const std::string& key : exported.unsaid) {
    head.push_back(fmt::format("not said: {}: orrery knows no option of {} for it", key, framework.about));
    log += head.back() + "\n";
  }
  const std::string text = launch_text(exported, framework.syntax, head);
  if (options.out.empty()) return {.text = text, .log = log, .verbatim = true};
  OutputFile file(options.out);
  file.write(text);
  file.commit();
  return {fmt::format("{}{} is written\n", log, options.out)};
}

}  // namespace orrery
