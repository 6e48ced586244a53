#include "sim/print/text.h"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace orrery {
namespace {

constexpr Scale kTimes[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
constexpr Scale kMemory[] = {{"GiB", kGiB}, {"MiB", 1048576.0}};
constexpr Scale kVolumes[] = {{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}};
constexpr Scale kCounts[] = {{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"K", 1e3}, {"", 1}};

int decimals_of(const Scale& scale, double value) {
  return scale.size == 1 && scale.unit != "s" ? 0 : value >= 99.95 ? 1 : 2;
}

// Chooses the largest unit that is no larger than the figure, else the smallest unit.
template <std::size_t N>
Scale choose(const Scale (&scales)[N], double largest) {
  Scale chosen = scales[N - 1];
  for (std::size_t i = N; i-- > 0;) {
    if (largest >= scales[i].size) chosen = scales[i];
  }
  chosen.decimals = decimals_of(chosen, largest / chosen.size);
  return chosen;
}

}  // namespace

Scale time_scale(double largest_s) { return choose(kTimes, largest_s); }
Scale memory_scale(double largest) { return choose(kMemory, largest); }
Scale volume_scale(double largest) { return choose(kVolumes, largest); }
Scale count_scale(double largest) { return choose(kCounts, largest); }

std::string number(double value, const Scale& scale) {
  return fmt::format("{:.{}f}", value / scale.size, scale.decimals);
}

std::string with_unit(double value, const Scale& scale) {
  return number(value, scale) + (scale.unit.empty() ? "" : " ") + std::string(scale.unit);
}

std::string time_text(double seconds) { return with_unit(seconds, time_scale(seconds)); }
std::string memory_text(double bytes) { return with_unit(bytes, memory_scale(bytes)); }
std::string volume_text(double bytes) { return with_unit(bytes, volume_scale(bytes)); }
std::string count_text(double count) { return with_unit(count, count_scale(count)); }
std::string percent_number(double share) { return fmt::format("{:.1f}", 100 * share); }

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string grouped(double value) {
  std::string digits = fmt::format("{}", std::llround(value));
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string heading(std::string_view text, const Style& style) {
  return style.colour ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}

std::string warning(std::string_view text, const Style& style) {
  return style.colour ? fmt::format("\x1b[31m{}\x1b[0m", text) : std::string(text);
}

}  // namespace orrery
