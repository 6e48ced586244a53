// What all_reduce_perf -J writes: {"version", "args": [program, ...], "nccl_version", "config": {"nthreads", "ngpus",
// "devices": [{"hostname", "device_info"}]}, "results": [{"size", "out_of_place": {"time", "nwrong"}, "in_place"}]}.
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/error.h"
#include "sim/import.h"
#include "sim/timing.h"

namespace orrery {
namespace {

[[noreturn]] void refuse_nccl_tests(const std::string& path, const std::string& what) {
  throw Error(fmt::format("{}: {}", path, what));
}

// Out of place, where it was measured; nullopt where neither was. `wrong` becomes true where a result was.
std::optional<double> tested_time(const nlohmann::json& result, bool& wrong, const std::string& where) {
  std::optional<double> us;
  for (const char* place : {"out_of_place", "in_place"}) {
    const auto body = result.find(place);
    if (body == result.end() || body->is_null()) continue;
    const nlohmann::json time = body->value("time", body->value("cpu_time", nlohmann::json()));
    if (!time.is_number() || !std::isfinite(time.get<double>()))
      throw Error(fmt::format("{}.{}: 'time' is {}, no figure; run the test again", where, place, time.dump()));
    const nlohmann::json count = body->value("nwrong", nlohmann::json());
    wrong |= count.is_number() && count.get<double>() > 0;
    if (!us) us = time.get<double>();
  }
  return us;
}

// Each process writes down the first of its devices alone.
struct TestedRanks {
  std::int64_t count = 0;
  std::set<std::string> hosts;
};

TestedRanks tested_ranks(const nlohmann::json& config, Imported& result) {
  TestedRanks ranks;
  for (const nlohmann::json& device : config.at("devices")) {
    ranks.count += config.at("nthreads").get<std::int64_t>() * config.at("ngpus").get<std::int64_t>();
    ranks.hosts.insert(device.at("hostname").get<std::string>());
    result.fingerprint.emplace("device", device.value("device_info", ""));
  }
  return ranks;
}

Imported read_nccl_tests(const std::string& path, const nlohmann::json& root) {
  Imported result;
  const std::string program = root.at("args").at(0).get<std::string>();
  const std::string kind = nccl_tests_kind(program);
  const TestedRanks ranks = tested_ranks(root.at("config"), result);
  if (root.contains("nccl_version")) result.fingerprint["nccl"] = root.at("nccl_version").dump();
  if (root.contains("start_time")) result.fingerprint["date"] = root.at("start_time").get<std::string>();
  const nlohmann::json& rows = root.at("results");
  if (rows.empty()) refuse_nccl_tests(path, "'results' is empty; run the test again");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    TransferRow row = nccl_tests_row(kind, ranks.count, std::ssize(ranks.hosts));
    row.bytes = rows[i].at("size").get<Bytes>();
    bool wrong = false;
    const auto us = tested_time(rows[i], wrong, fmt::format("{}: results[{}]", path, i));
    const char* reason = kind.empty()        ? "the program measures nothing that a plan has"
                         : ranks.count < 2   ? "one rank alone moves nothing"
                         : wrong             ? "the result was wrong"
                         : row.bytes <= 0    ? "no bytes were moved"
                         : !us || *us <= 0.0 ? "no time was measured"
                                             : nullptr;
    if (reason != nullptr) {
      ++result.refused[reason];
      continue;
    }
    row.seconds = *us * kMicrosecond;
    result.transfers.push_back(std::move(row));
  }
  return result;
}

}  // namespace

Imported import_nccl_tests_json(const std::string& path, std::string_view text) try {
  return read_nccl_tests(path, parse_json(path, text));
} catch (const nlohmann::json::exception& e) {
  refuse_nccl_tests(path, fmt::format("is no output of nccl-tests -J ({}); give one, or a Kineto trace", e.what()));
}

}  // namespace orrery
