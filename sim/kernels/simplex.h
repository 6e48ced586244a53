#pragma once

#include <functional>
#include <vector>

namespace orrery {

// Returns numbers for which f is least nearby, by the simplex method of Nelder and Mead (The Computer Journal 7, 1965),
// which needs no derivatives. step: how far the first points are from `start`; calls: about how often f is called.
std::vector<double> least_by_simplex(const std::function<double(const std::vector<double>&)>& f,
                                     std::vector<double> start, double step, int calls);

}  // namespace orrery
