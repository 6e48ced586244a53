#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

namespace orrery {

// "folder/lost": ranks of a run that were lost and that the other ranks can do without, as noted by the program that
// watches the run.
std::string lost_file(const std::string& folder);
void note_lost(const std::string& path, std::int64_t rank);  // throws Error where it cannot be written

// A rank's knowledge of lost ranks. A rank that is in the file stays there.
class LostRanks {
 public:
  explicit LostRanks(std::string path) : path_(std::move(path)) {}  // "": none is ever lost
  // Reads the file, at most every few milliseconds; returns whether more ranks were lost than the last time.
  bool look();
  bool has(std::int64_t rank) const { return ranks_.contains(rank); }
  bool any() const { return !ranks_.empty(); }

 private:
  std::string path_;
  std::set<std::int64_t> ranks_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace orrery
