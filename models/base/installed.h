#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// The folder of the program that runs, with links followed.
std::string program_folder();

// Folders in which files that belong to a program in `here` may lie, in the order in which they are looked at: beside
// it and in ../exec (a build folder), in ../lib/orrery (an installed one, under any prefix).
std::vector<std::string> companion_folders(const std::string& here);

// The path of a file that belongs to this program: "orrery-rank", "orrery-peers.so"; "" where there is none.
std::string companion(std::string_view name);

// Returns the path unchanged if a file with this path exists, or if no installed example has that name; otherwise
// returns the path of the installed example. "examples/a.yaml" and "a.yaml" both name an example a.yaml.
std::string or_installed_example(const std::string& path);

// The folder with specs that were installed beside the program, as in /usr/share/orrery/examples; "" where there is
// none.
std::string installed_examples();

}  // namespace orrery
