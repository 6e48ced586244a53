#pragma once

#include <string>
#include <vector>

namespace orrery {

// `orrery --start-rank FOLDER PROGRAM ARGUMENT...` is the command that a launcher starts instead of a rank. It starts
// the rank, writes into FOLDER how the rank ended (models/run/rank_end.h), since launchers do not report that, and
// exits with the rank's status or signal. Both this process and the rank die with the process that started them.
inline constexpr char kStartRank[] = "--start-rank";
int start_rank(const std::string& folder, char** words);

// The command with which a launcher starts the command `rank` through `orrery --start-rank`; `rank` itself where there
// is no program orrery in the folder of this program.
std::vector<std::string> with_starter(const std::string& folder, const std::vector<std::string>& rank);

}  // namespace orrery
