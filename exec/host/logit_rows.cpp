#include "exec/host/logit_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace orrery {
namespace {

const std::vector<std::int64_t>& text_of(const Execution& e, std::int64_t sequence) {
  return std::ranges::find(e.generated, sequence, &GeneratedSequence::number)->tokens;
}

LogitRow compared(const std::vector<float>& a, const std::vector<float>& b) {
  LogitRow row = {.columns = static_cast<std::int64_t>(a.size()),
                  .wide_largest = *std::ranges::max_element(a),
                  .narrow_largest = *std::ranges::max_element(b)};
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    row.distance += std::abs(difference);
    row.furthest = std::max(row.furthest, std::abs(difference));
    const double weight = std::exp(static_cast<double>(a[i]) - row.wide_largest);
    row.wide_sum += weight;
    row.weighted += weight * difference;
    row.narrow_sum += std::exp(static_cast<double>(b[i]) - row.narrow_largest);
  }
  return row;
}

}  // namespace

std::vector<LogitRow> logit_rows(const Execution& wide, const Execution& narrow) {
  std::map<std::pair<std::int64_t, std::int64_t>, const std::vector<float>*> kept;
  for (const KeptLogits& row : wide.logits) kept[{row.sequence, row.position}] = &row.values;
  std::vector<LogitRow> rows;
  for (const KeptLogits& row : narrow.logits) {
    const auto other = kept.find({row.sequence, row.position});
    if (other == kept.end() || row.values.empty()) continue;
    const std::vector<std::int64_t>&a = text_of(wide, row.sequence), &b = text_of(narrow, row.sequence);
    const auto at = static_cast<std::size_t>(row.position);
    LogitRow& made = rows.emplace_back(compared(*other->second, row.values));
    made.sequence = row.sequence;
    made.position = row.position;
    made.same_token = a[at] == b[at];
  }
  return rows;
}

}  // namespace orrery
