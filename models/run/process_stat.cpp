#include "models/run/process_stat.h"

#include <fstream>
#include <string>

#include <fmt/format.h>

namespace orrery {

// Parses /proc/PID/stat: fields are separated by spaces; the second field is the name in parentheses, which may contain
// any characters.
std::optional<ProcessStat> process_stat(std::istream& file) {
  std::string text;
  // Unlike an istreambuf_iterator, getline turns a failed read into a state of the stream
  std::getline(file, text, '\0');
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return {};
  return ProcessStat{.state = text[name_end + 2], .parent = std::stoi(text.substr(name_end + 4))};
}

std::optional<ProcessStat> process_stat(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  return process_stat(file);
}

}  // namespace orrery
