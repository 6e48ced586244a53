#include "models/run/lost_ranks.h"

#include <fstream>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {

constexpr auto kBetweenLooks =
    std::chrono::milliseconds(5);  // pause between reads of the file; noticing a loss takes up to half a second anyway

std::string lost_file(const std::string& folder) { return folder + "/lost"; }

// Notes a lost rank as a line of the file with the rank's number. Readers read a number only when its line is complete.
void note_lost(const std::string& path, std::int64_t rank) {
  std::ofstream out(path, std::ios::app);
  out << fmt::format("{}\n", rank) << std::flush;
  if (!out) throw Error(fmt::format("{}: cannot be written", path), 1);
}

bool LostRanks::look() {
  const auto now = std::chrono::steady_clock::now();
  if (path_.empty() || now < next_) return false;
  next_ = now + kBetweenLooks;
  const std::size_t before = ranks_.size();
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line) && !in.eof();) ranks_.insert(std::stoll(line));
  return ranks_.size() > before;
}

}  // namespace orrery
