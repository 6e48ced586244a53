#include "models/base/data.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"

namespace orrery {

std::string_view data_file(std::string_view name) {
  for (const DataFile& file : data_files()) {
    if (file.name == name) return file.text;
  }
  const std::string_view folder = name.substr(0, name.find('/'));
  throw Error(fmt::format("{}: no such built-in file; known: {}", name, fmt::join(data_names(folder), ", ")));
}

std::vector<std::string_view> data_names(std::string_view folder) {
  std::vector<std::string_view> names;
  for (const DataFile& file : data_files()) {
    const std::size_t slash = file.name.rfind('/');
    if (slash == std::string_view::npos || file.name.substr(0, slash) != folder) continue;
    const std::string_view base = file.name.substr(slash + 1);
    names.push_back(base.substr(0, base.size() - std::string_view(".json").size()));
  }
  return names;
}

}  // namespace orrery
