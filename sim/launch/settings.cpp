#include "sim/launch/settings.h"

#include <algorithm>

namespace orrery {
namespace {

struct SyntaxSuffix {
  std::string_view end;
  Settings (*read)(std::string_view, const std::string&);
};
constexpr SyntaxSuffix kSyntaxSuffixes[] = {{".toml", read_toml},    {".json", read_tree}, {".yaml", read_tree},
                                            {".yml", read_tree},     {".sh", read_shell},  {".slurm", read_shell},
                                            {".sbatch", read_shell}, {".bash", read_shell}};

// Whether some line of the text begins with `start`, after any blanks.
bool has_line(std::string_view text, std::string_view start) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t word = text.find_first_not_of(" \t", at);
    if (word < end && text.substr(word).starts_with(start)) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

const Setting* Settings::find(std::string_view name) const {
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const Setting& s) { return s.name == name; });
  return found == all.rend() ? nullptr : &*found;
}

Settings read_settings(std::string_view text, const std::string& path) {
  for (const SyntaxSuffix& suffix : kSyntaxSuffixes) {
    if (path.ends_with(suffix.end)) return suffix.read(text, path);
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return read_tree(text, path);
  if (text.starts_with("#!") || has_line(text, "--") || text.find(" --") != std::string_view::npos)
    return read_shell(text, path);
  return has_line(text, "[") ? read_toml(text, path) : read_tree(text, path);
}

}  // namespace orrery
