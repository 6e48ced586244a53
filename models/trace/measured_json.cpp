#include "models/trace/measured_json.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/sensible.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

constexpr double kMicro = 1e-6;

struct Figure {
  const char* key;
  double MeasuredTimes::*value;
  double unit;
  double least;
  bool may_lack = false;  // whether the key may be absent, in profiles that an earlier version wrote
};
constexpr Figure kFigures[] = {{"issue_us", &MeasuredTimes::issue, kMicro, 0},
                               {"gap_us", &MeasuredTimes::gap, kMicro, 0},
                               {"transfer_start_us", &MeasuredTimes::transfer_start, kMicro, 0},
                               {"wake_us", &MeasuredTimes::wake, kMicro, 0},
                               {"step_us", &MeasuredTimes::step, kMicro, 0},
                               {"compute_slowdown", &MeasuredTimes::compute_slowdown, 1, 1},
                               {"transfer_slowdown", &MeasuredTimes::transfer_slowdown, 1, 1},
                               {"beside_slowdown", &MeasuredTimes::beside_slowdown, 1, 1, true},
                               {"copy_slowdown", &MeasuredTimes::copy_slowdown, 1, 1, true},
                               {"sum_slowdown", &MeasuredTimes::sum_slowdown, 1, 1, true}};

OpSample op_sample(const JsonValue& s) {
  return {s.at("sizes").numbers(0, sensible::kMostSize), s.at("amount").positive(sensible::kMostAmount),
          s.at("us").positive(sensible::kMostMicroseconds) * kMicro, s.number_or("spread", 0, 0, sensible::kMostSpread),
          s.whole_or("count", 0, 0, sensible::kMostBytes)};
}

TransferSample transfer_sample(const JsonValue& s) {
  return {s.at("bytes").whole(0, sensible::kMostBytes), s.at("us").positive(sensible::kMostMicroseconds) * kMicro,
          s.number_or("spread", 0, 0, sensible::kMostSpread), s.whole_or("count", 0, 0, sensible::kMostBytes)};
}

template <class Table, class Read>
void read_samples(const JsonValue& from, Table& table, const Read& read) {
  for (const JsonValue& s : from.at("samples").items()) table.samples.push_back(read(s));
  if (table.samples.empty()) from.at("samples").fail(fmt::format("'{}' has no sample", table.kind));
}

OpTable op_table(const JsonValue& from) {
  OpTable table{from.at("kind").text(), {}};
  read_samples(from, table, op_sample);
  for (const OpSample& s : table.samples) {
    if (s.sizes.size() != table.samples.front().sizes.size())
      from.fail(fmt::format("'{}' has samples of {} and of {} sizes", table.kind, table.samples.front().sizes.size(),
                            s.sizes.size()));
  }
  std::sort(table.samples.begin(), table.samples.end(),
            [](const OpSample& a, const OpSample& b) { return a.sizes < b.sizes; });
  return table;
}

TransferTable transfer_table(const JsonValue& from) {
  TransferTable table{from.at("kind").text(),
                      from.at("ranks").whole(1, sensible::kMostMembers),
                      {},
                      from.whole_or("nodes", 0, 0, sensible::kMostMembers)};
  read_samples(from, table, transfer_sample);
  std::sort(table.samples.begin(), table.samples.end(),
            [](const TransferSample& a, const TransferSample& b) { return a.bytes < b.bytes; });
  for (std::size_t i = 1; i < table.samples.size(); ++i) {
    if (table.samples[i].bytes == table.samples[i - 1].bytes)
      from.fail(fmt::format("'{}' has two samples of {} bytes", table.kind, table.samples[i].bytes));
  }
  return table;
}

}  // namespace

ordered_json json_of(const MeasuredTimes& times) {
  ordered_json section;
  for (const Figure& f : kFigures) section[f.key] = times.*f.value / f.unit;
  section["ops"] = ordered_json::array();
  for (const OpTable& table : times.ops) {
    ordered_json samples = ordered_json::array();
    for (const OpSample& s : table.samples)
      samples.push_back({{"sizes", s.sizes},
                         {"amount", s.amount},
                         {"us", s.seconds / kMicro},
                         {"spread", s.spread},
                         {"count", s.count}});
    section["ops"].push_back({{"kind", table.kind}, {"samples", samples}});
  }
  section["transfers"] = ordered_json::array();
  for (const TransferTable& table : times.transfers) {
    ordered_json samples = ordered_json::array();
    for (const TransferSample& s : table.samples)
      samples.push_back({{"bytes", s.bytes}, {"us", s.seconds / kMicro}, {"spread", s.spread}, {"count", s.count}});
    ordered_json entry = {{"kind", table.kind}, {"ranks", table.ranks}};
    if (table.nodes > 0) entry["nodes"] = table.nodes;
    entry["samples"] = std::move(samples);
    section["transfers"].push_back(std::move(entry));
  }
  return section;
}

MeasuredTimes measured_of(const JsonValue& section) {
  MeasuredTimes times;
  for (const Figure& f : kFigures) {
    const auto found = f.may_lack ? section.find(f.key) : section.at(f.key);
    if (found)
      times.*f.value =
          found->number(f.least, f.unit < 1 ? sensible::kMostMicroseconds : sensible::kMostSlowdown) * f.unit;
  }
  for (const JsonValue& o : section.at("ops").items()) times.ops.push_back(op_table(o));
  for (const JsonValue& t : section.at("transfers").items()) times.transfers.push_back(transfer_table(t));
  return times;
}

}  // namespace orrery
