#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

namespace orrery {

// Returns "folder/lost", the name of the file in which the program that watches a run notes ranks that were lost, if
// the other ranks can continue without them.
std::string lost_file(const std::string& folder);
// Notes in the file of lost ranks that a rank is lost; throws Error if the file cannot be written.
void note_lost(const std::string& path, std::int64_t rank);

// A rank's view of the file of lost ranks. A rank that is in the file stays in it.
class LostRanks {
 public:
  // path: name of the file of lost ranks; "": there is no such file, and no rank counts as lost.
  explicit LostRanks(std::string path) : path_(std::move(path)) {}
  // Reads the file of lost ranks, at most once every few milliseconds; returns whether it has more ranks than at the
  // last call.
  bool look();
  bool has(std::int64_t rank) const { return ranks_.contains(rank); }
  bool any() const { return !ranks_.empty(); }

 private:
  std::string path_;
  std::set<std::int64_t> ranks_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace orrery
