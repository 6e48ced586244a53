// Reads the output of all_reduce_perf -J: {"version", "args": [program, ...], "nccl_version", "config": {"nthreads",
// "ngpus", "devices": [{"hostname", "device_info"}]}, "results": [{"size", "out_of_place": {"time", "nwrong"},
// "in_place"}]}.
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/json_value.h"
#include "models/base/sensible.h"
#include "sim/calibrate/import.h"
#include "sim/engine/timing.h"

namespace orrery {
namespace {

constexpr std::int64_t kMostOfProcess = 65536;  // most devices that one process may list

// The measured time of one message size in microseconds: that of the out-of-place run if there was one, else of the
// in-place run; nullopt if there was neither. `wrong` is set if the test found a wrong value.
std::optional<double> tested_time(const JsonValue& result, bool& wrong) {
  std::optional<double> us;
  for (const char* place : {"out_of_place", "in_place"}) {
    const auto body = result.find(place);
    if (!body) continue;
    const auto time = body->find("time") ? body->find("time") : body->find("cpu_time");
    if (!time || !time->is_number())
      body->fail(fmt::format("'time' is {}, no figure; run the test again",
                             time ? time->raw().dump().substr(0, sensible::kLongestWord) : "missing"));
    const auto count = body->find("nwrong");
    wrong |= count && count->is_number() && count->whole(0, INT64_MAX) > 0;
    if (!us) us = time->number(-sensible::kMostMicroseconds, sensible::kMostMicroseconds);
  }
  return us;
}

// The number of ranks of a test, and their hosts. The file lists one device for each process, so the number of ranks is
// the length of that list times a process's threads and GPUs per thread.
struct TestedRanks {
  std::int64_t count = 0;
  std::set<std::string> hosts;
};

TestedRanks tested_ranks(const JsonValue& config, Imported& result) {
  TestedRanks ranks;
  const std::int64_t of_process =
      config.at("nthreads").whole(1, kMostOfProcess) * config.at("ngpus").whole(1, kMostOfProcess);
  for (const JsonValue& device : config.at("devices").items()) {
    ranks.count += of_process;
    ranks.hosts.insert(device.at("hostname").text());
    result.fingerprint.emplace("device", device.text_or("device_info", ""));
  }
  return ranks;
}

Imported read_nccl_tests(const JsonValue& root) {
  Imported result;
  const std::vector<JsonValue> words = root.at("args").items();
  if (words.empty()) root.at("args").fail("is empty: which collective this is is not said");
  const std::string kind = nccl_tests_kind(words[0].text());
  const TestedRanks ranks = tested_ranks(root.at("config"), result);
  if (const auto version = root.find("nccl_version")) result.fingerprint["nccl"] = version->raw().dump();
  if (const auto date = root.find("start_time")) result.fingerprint["date"] = date->text();
  const std::vector<JsonValue> rows = root.at("results").items();
  if (rows.empty()) root.at("results").fail("is empty; run the test again");
  for (const JsonValue& r : rows) {
    TransferRow row = nccl_tests_row(kind, ranks.count, std::ssize(ranks.hosts));
    row.bytes = r.at("size").whole(0, sensible::kMostBytes);
    bool wrong = false;
    const auto us = tested_time(r, wrong);
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

Imported import_nccl_tests_json(const std::string& path, std::string_view text) {
  const nlohmann::json file = parse_json(path, text);
  const JsonValue root(file, path);
  root.require_object();
  if (!root.find("args") || !root.find("results"))
    root.fail("is no output of nccl-tests -J (it lacks 'args' or 'results'); give one, or a Kineto trace");
  return read_nccl_tests(root);
}

}  // namespace orrery
