#pragma once

#include <string>
#include <vector>

namespace orrery {

// `orrery --start-rank FOLDER PROGRAM ARGUMENT...`: what a launcher starts in place of a rank. Starts the rank, notes
// in the folder how it ended (models/run/rank_end.h), since launchers do not tell, and ends as it did. Each of the two
// dies with the one that started it.
inline constexpr char kStartRank[] = "--start-rank";
int start_rank(const std::string& folder, char** words);

// `rank` as a launcher shall start it; unchanged where no orrery program is beside this one.
std::vector<std::string> with_starter(const std::string& folder, const std::vector<std::string>& rank);

}  // namespace orrery
