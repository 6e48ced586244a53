#pragma once

#include <string>
#include <vector>

namespace orrery {

// `orrery --start-rank FOLDER PROGRAM ARGUMENT...`: the program that a launcher starts in place of a rank. It starts
// the rank, writes into the folder how the rank ended (models/run/rank_end.h), since launchers do not report that, and
// exits with the same status or signal. Both this program and the rank die with the process that started them.
inline constexpr char kStartRank[] = "--start-rank";
int start_rank(const std::string& folder, char** words);

// The command with which a launcher starts `rank` through that program; `rank` unchanged where there is no orrery
// program in the folder of this one.
std::vector<std::string> with_starter(const std::string& folder, const std::vector<std::string>& rank);

}  // namespace orrery
