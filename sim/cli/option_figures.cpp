#include "sim/cli/option_figures.h"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "models/base/names.h"
#include "models/base/quantity.h"
#include "models/base/sensible.h"

namespace orrery {
namespace {

std::string refused(const std::string& text, std::string_view what, const FigureRange& range) {
  return printable(
      fmt::format("'{}' is no {} above 0 and at most {:g}", text.substr(0, sensible::kLongestWord), what, range.most));
}

}  // namespace

std::string read_figure(std::string& text, const FigureRange& range) {
  const auto value = parse_quantity(text, range.unit);
  if (!value || !(*value > 0) || *value > range.most) return refused(text, range.name, range);
  text = fmt::format("{}", *value);
  return "";
}

std::string read_count(std::string& text, const FigureRange& range) {
  const auto value = parse_quantity(text, range.unit);
  const bool whole = value && *value >= 1 && *value <= range.most && *value == std::floor(*value);
  if (!whole) return refused(text, "whole number", range);
  text = fmt::format("{}", static_cast<std::int64_t>(*value));
  return "";
}

}  // namespace orrery
