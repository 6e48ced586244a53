#include "models/base/quantity.h"

#include <charconv>
#include <cmath>

namespace orrery {
namespace {

enum class Kind : unsigned char { bytes, rate, time, power, count };

struct Unit {
  std::string_view name;
  Kind kind;
  double factor;  // number of bytes, bytes per second, seconds or watts in one of this unit
};

constexpr double kKi = 1024;

constexpr Unit kUnits[] = {
    {"B", Kind::bytes, 1},
    {"kB", Kind::bytes, 1e3},
    {"KB", Kind::bytes, 1e3},
    {"MB", Kind::bytes, 1e6},
    {"GB", Kind::bytes, 1e9},
    {"TB", Kind::bytes, 1e12},
    {"KiB", Kind::bytes, kKi},
    {"MiB", Kind::bytes, kKi* kKi},
    {"GiB", Kind::bytes, kKi* kKi* kKi},
    {"TiB", Kind::bytes, kKi* kKi* kKi* kKi},
    {"MB/s", Kind::rate, 1e6},
    {"MBps", Kind::rate, 1e6},
    {"GB/s", Kind::rate, 1e9},
    {"GBps", Kind::rate, 1e9},
    {"TB/s", Kind::rate, 1e12},
    {"TBps", Kind::rate, 1e12},
    {"GiB/s", Kind::rate, kKi* kKi* kKi},
    {"Mb/s", Kind::rate, 1e6 / 8},
    {"Mbps", Kind::rate, 1e6 / 8},
    {"Gb/s", Kind::rate, 1e9 / 8},
    {"Gbps", Kind::rate, 1e9 / 8},
    {"Gbit/s", Kind::rate, 1e9 / 8},
    {"Tb/s", Kind::rate, 1e12 / 8},
    {"Tbps", Kind::rate, 1e12 / 8},
    {"ns", Kind::time, 1e-9},
    {"us", Kind::time, 1e-6},
    {"ms", Kind::time, 1e-3},
    {"s", Kind::time, 1},
    {"min", Kind::time, 60},
    {"h", Kind::time, 3600},
    {"hours", Kind::time, 3600},
    {"days", Kind::time, 86400},
    {"W", Kind::power, 1},
    {"kW", Kind::power, 1e3},
    {"MW", Kind::power, 1e6},
    {"", Kind::count, 1},
    {"k", Kind::count, 1e3},
    {"K", Kind::count, 1e3},
    {"M", Kind::count, 1e6},
    {"G", Kind::count, 1e9},
    {"T", Kind::count, 1e12},
    {"Ki", Kind::count, kKi},
    {"Mi", Kind::count, kKi* kKi},
    {"Gi", Kind::count, kKi* kKi* kKi},
    {"Ti", Kind::count, kKi* kKi* kKi* kKi},
};

const Unit* find_unit(std::string_view name) {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

}  // namespace

std::string_view unit_of_key(std::string_view key) {
  // Without a separator find_last_of() returns npos, and npos + 1 is 0: the complete key is taken
  const std::string_view last = key.substr(key.find_last_of("_.") + 1);
  const Unit* const unit = find_unit(last);
  return unit == nullptr || unit->kind == Kind::count ? "" : last;
}

std::optional<double> parse_quantity(std::string_view text, std::string_view unit) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  std::string_view written(rest, static_cast<std::size_t>(end - rest));
  while (!written.empty() && written.front() == ' ') written.remove_prefix(1);
  if (written.empty() || written == unit) return value;
  const Unit* from = find_unit(written);
  const Unit* to = find_unit(unit);
  if (from == nullptr || to == nullptr || from->kind != to->kind) return std::nullopt;
  return value * from->factor / to->factor;
}

}  // namespace orrery
