#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Names of hosts as Slurm writes them: "a[00-03,7],b1" is a00, a01, a02, a03, a7, b1; several brackets in a name give
// all combinations, the last one fastest, and numbers have as many digits as the first of their range (scontrol show
// hostnames). Names are divided by commas and white space.

// Returns the names of a list. Throws Error for a list that is none, or that has more than `most` names.
std::vector<std::string> host_names(std::string_view list, std::size_t most);

// Returns a list that host_names() reads back as these names in this order. Numbers that follow each other at the end
// of names that are alike otherwise are put into brackets.
std::string host_list(const std::vector<std::string>& names);

}  // namespace orrery
