#include "models/base/natural_order.h"

#include <algorithm>
#include <cstddef>

namespace orrery {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

// Takes the digits from the beginning of a text, and returns them without leading zeros.
std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_decimal);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

}  // namespace

bool in_natural_order(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_decimal(a[0]) && is_decimal(b[0])) {
      const std::string_view number_a = take_digits(a), number_b = take_digits(b);
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
    } else {
      if (a[0] != b[0]) return a < b;
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() == b.empty() ? whole_a < whole_b : a.empty();
}

}  // namespace orrery
