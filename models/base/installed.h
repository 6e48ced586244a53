#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Returns the folder that contains the executable of the running program, with symbolic links resolved.
std::string program_folder();

// Returns the folders to search, in this order, for files that belong to a program whose executable lies in `here`:
// that folder itself, then ../exec (for a build folder) and ../lib/orrery (for an installed program, under any prefix).
std::vector<std::string> companion_folders(const std::string& here);

// Returns the path of a file that was built or installed with this program, such as "orrery-rank" or "orrery-peers.so";
// "" if the file is in none of the companion_folders().
std::string companion(std::string_view name);

// Returns the path unchanged if a file with this path exists, or if no installed example has that name; otherwise
// returns the path of the installed example. "examples/a.yaml" and "a.yaml" both name an example a.yaml.
std::string or_installed_example(const std::string& path);

// Returns the folder of the example input files that were installed with the program, as in /usr/share/orrery/examples;
// "" if there is none.
std::string installed_examples();

}  // namespace orrery
