#include "models/measured_json.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/error.h"

namespace orrery {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kMicro = 1e-6;

struct Figure {
  const char* key;
  double MeasuredTimes::*value;
  double unit;
  double least;
  bool may_lack = false;  // profiles written before there was offload
};
constexpr Figure kFigures[] = {{"issue_us", &MeasuredTimes::issue, kMicro, 0},
                               {"gap_us", &MeasuredTimes::gap, kMicro, 0},
                               {"transfer_start_us", &MeasuredTimes::transfer_start, kMicro, 0},
                               {"wake_us", &MeasuredTimes::wake, kMicro, 0},
                               {"step_us", &MeasuredTimes::step, kMicro, 0},
                               {"compute_slowdown", &MeasuredTimes::compute_slowdown, 1, 1},
                               {"transfer_slowdown", &MeasuredTimes::transfer_slowdown, 1, 1},
                               {"beside_slowdown", &MeasuredTimes::beside_slowdown, 1, 1, true},
                               {"copy_slowdown", &MeasuredTimes::copy_slowdown, 1, 1, true}};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(fmt::format("{}: measured.{}; write it with orrery calibrate", path, what));
}

double positive(const json& sample, const char* key, const std::string& path) {
  const double x = sample.at(key).get<double>();
  if (!(x > 0)) refuse(path, fmt::format("'{}' is {}, not above 0", key, x));
  return x;
}

OpSample op_sample(const json& s, const std::string& path) {
  return {s.at("sizes").get<std::vector<double>>(), positive(s, "amount", path), positive(s, "us", path) * kMicro,
          s.value("spread", 0.0), s.value("count", std::int64_t{0})};
}

TransferSample transfer_sample(const json& s, const std::string& path) {
  return {s.at("bytes").get<Bytes>(), positive(s, "us", path) * kMicro, s.value("spread", 0.0),
          s.value("count", std::int64_t{0})};
}

template <class Table, class Read>
void read_samples(const json& from, Table& table, const Read& read, const std::string& path) {
  for (const json& s : from.at("samples")) table.samples.push_back(read(s, path));
  if (table.samples.empty()) refuse(path, fmt::format("'{}' has no sample", table.kind));
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

MeasuredTimes measured_of(const json& section, const std::string& path) {
  MeasuredTimes times;
  for (const Figure& f : kFigures) {
    if (!section.contains(f.key) && f.may_lack) continue;
    if (!section.contains(f.key)) refuse(path, fmt::format("{} is missing", f.key));
    times.*f.value = section.at(f.key).get<double>() * f.unit;
    if (!(times.*f.value >= f.least * f.unit)) refuse(path, fmt::format("{} is below {}", f.key, f.least));
  }
  for (const json& o : section.at("ops")) {
    OpTable table{o.at("kind").get<std::string>(), {}};
    read_samples(o, table, op_sample, path);
    for (const OpSample& s : table.samples) {
      if (s.sizes.size() != table.samples.front().sizes.size())
        refuse(path, fmt::format("'{}' has samples of {} and of {} sizes", table.kind,
                                 table.samples.front().sizes.size(), s.sizes.size()));
    }
    std::sort(table.samples.begin(), table.samples.end(),
              [](const OpSample& a, const OpSample& b) { return a.sizes < b.sizes; });
    times.ops.push_back(std::move(table));
  }
  for (const json& t : section.at("transfers")) {
    TransferTable table{
        t.at("kind").get<std::string>(), t.at("ranks").get<std::int64_t>(), {}, t.value("nodes", std::int64_t{0})};
    read_samples(t, table, transfer_sample, path);
    std::sort(table.samples.begin(), table.samples.end(),
              [](const TransferSample& a, const TransferSample& b) { return a.bytes < b.bytes; });
    for (std::size_t i = 1; i < table.samples.size(); ++i) {
      if (table.samples[i].bytes == table.samples[i - 1].bytes)
        refuse(path, fmt::format("'{}' has two samples of {} bytes", table.kind, table.samples[i].bytes));
    }
    times.transfers.push_back(std::move(table));
  }
  return times;
}

}  // namespace orrery
