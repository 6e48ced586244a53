#include "sim/advice/save_spec.h"

#include <fmt/format.h>

#include "models/base/output_file.h"

namespace orrery {

void save_spec(const std::string& path, const std::vector<std::string>& comment, const SpecText& spec,
               const std::vector<std::string>& overrides) {
  std::string text;
  for (const std::string& line : comment) text += fmt::format("# {}\n", line);
  OutputFile file(path);
  file.write(text + print_tree(overridden_tree(spec, overrides)));
  file.commit();
}

}  // namespace orrery
