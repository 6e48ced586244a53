#include "sim/page/axis.h"

#include <cmath>

#include <fmt/format.h>

namespace orrery {

double PageAxis::at(double value) const {
  const double part = logarithmic ? std::log(value / first) / std::log(last / first) : (value - first) / (last - first);
  return begin + part * (end - begin);
}

std::vector<double> ticks(const PageAxis& a, int count) {
  std::vector<double> result;
  if (!(a.last > a.first)) return result;
  if (a.logarithmic) {
    const auto low = static_cast<int>(std::floor(std::log10(a.first))),
               high = static_cast<int>(std::ceil(std::log10(a.last)));
    for (int power = low; power <= high; ++power) {
      for (const double part : {1.0, 2.0, 5.0}) {
        const double tick = part * std::pow(10, power);
        if (tick >= a.first && tick <= a.last && (part == 1 || a.last < 100 * a.first)) result.push_back(tick);
      }
    }
    constexpr std::size_t kFew = 3;
    if (result.size() >= kFew) return result;
    result.clear();  // fewer than kFew powers of ten (and multiples): marks the axis as a linear one instead
  }
  const double rough = (a.last - a.first) / count, power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
  for (auto n = static_cast<std::int64_t>(std::ceil(a.first / step));
       static_cast<double>(n) * step <= a.last * (1 + 1e-12); ++n)
    result.push_back(static_cast<double>(n) * step);
  return result;
}

std::string tick_text(double value) { return fmt::format("{:.6g}", value); }

}  // namespace orrery
