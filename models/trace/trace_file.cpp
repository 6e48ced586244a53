#include "models/trace/trace_file.h"

#include <bit>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/json_value.h"
#include "models/base/output_file.h"
#include "models/base/sensible.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "rank files are little-endian");

constexpr std::string_view kSchema = "orrery.rank/1";
constexpr std::size_t kMostHeader = 1 << 20;
// The greatest number of steps or of tasks that a file may state: the product of two such counts is still a 64-bit
// number.
constexpr std::int64_t kMostCount = std::int64_t{1} << 32;
// A MeasuredSpan, which is the three times of one task, is written to the file as it lies in memory
static_assert(sizeof(MeasuredSpan) == 3 * sizeof(Picoseconds), "spans are written as they lie in memory");

// Visits every figure in the memory section of the header of a rank's results once, for reading or for writing.
template <class Memory, class Visit>
void visit_memory(Memory& m, Visit visit) {
  visit("capacity_bytes", m.capacity);
  visit("first_step_peak_bytes", m.first_step_peak);
  visit("peak_bytes", m.peak);
  visit("peak_reserved_bytes", m.peak_reserved);
  visit("peak_device_bytes", m.peak_device);
  for (const MemoryTier tier : kTiersBeyond)
    visit(fmt::format("{}_peak_bytes", row_of(tier).name), m.tier_peak[index_of(tier)]);
  visit("peak_task", m.peak_task);
  visit("at_peak", m.at_peak);
}

// The figures of a row of logits, in the order of the file.
constexpr double LogitRow::*kLogitFigures[] = {&LogitRow::distance, &LogitRow::furthest,       &LogitRow::wide_largest,
                                               &LogitRow::wide_sum, &LogitRow::narrow_largest, &LogitRow::narrow_sum,
                                               &LogitRow::weighted};
constexpr double kMostLogit = 1e30;

template <class Run, class Visit>
void visit_texts(Run& r, Visit visit) {
  visit("source", r.source);
  visit("plan_hash", r.plan_hash);
  visit("rank", r.rank);
  visit("ranks", r.ranks);
  visit("device", r.device);
  visit("library", r.library);
  visit("link", r.link);
  visit("host", r.host);
  visit("note", r.note);
  visit("clock_offset_ps", r.clock_offset);
  visit("clock_uncertainty_ps", r.clock_uncertainty);
}

std::string header_of(const RankRun& run) {
  ordered_json header = {{"schema", kSchema}};
  visit_texts(run, [&](const char* key, const auto& value) { header[key] = value; });
  header["steps"] = run.steps.size();
  header["tasks"] = run.steps.empty() ? 0 : run.steps.front().spans.size();
  header["sizes"] = run.steps.empty() ? 0 : run.steps.front().sizes.size();
  header["losses"] = run.losses.size();
  ordered_json& memory = header["memory"] = ordered_json::object();
  visit_memory(run.memory, [&](const std::string& key, const auto& value) { memory[key] = value; });
  if (!run.unmarked.empty()) header["unmarked_ps"] = run.unmarked;
  for (const auto& [number, tokens] : run.texts) header["texts"].push_back({{"sequence", number}, {"tokens", tokens}});
  for (const LogitRow& row : run.logits) {
    ordered_json numbers = {row.sequence, row.position, row.columns, row.same_token ? 1 : 0};
    for (const double LogitRow::*figure : kLogitFigures) numbers.push_back(row.*figure);
    header["logits"].push_back(std::move(numbers));
  }
  if (run.conditions.known()) header["conditions"] = json_of(run.conditions);
  return header.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

[[noreturn]] void broken(const std::string& path, std::string_view what) {
  throw Error(fmt::format("{}: no whole result of a rank: {}", path, what), 1);
}

// The part of an open file that has not been read yet, as 64-bit words.
class Words {
 public:
  Words(std::istream& in, const std::string& path) : in_(in), path_(path) {}
  template <class T>
  void read(T* to, std::size_t count) {
    const auto bytes = static_cast<std::streamsize>(count * sizeof(T));
    in_.read(reinterpret_cast<char*>(to), bytes);
    if (in_.gcount() != bytes) broken(path_, "it is cut short");
  }

 private:
  std::istream& in_;
  const std::string& path_;
};

// The latest time that a file may have: the difference of two such times is still a 64-bit number.
constexpr Picoseconds kMostTime = INT64_MAX / 4;

void check_step(const std::string& path, const MeasuredStep& step) {
  const auto sensible_time = [](Picoseconds t) { return -kMostTime <= t && t <= kMostTime; };
  bool forward = step.begin <= step.end, sensible = sensible_time(step.begin) && sensible_time(step.end);
  for (const MeasuredSpan& s : step.spans) {
    forward = forward && s.issued <= s.entered && s.entered <= s.ended;
    sensible = sensible && sensible_time(s.issued) && sensible_time(s.ended);
  }
  if (!forward) broken(path, "a time runs backwards");
  for (const std::int64_t size : step.sizes) sensible = sensible && size >= 0 && size <= sensible::kMostElements;
  if (!sensible) broken(path, "a time or a size is absurd");
}

struct Counts {
  std::uint64_t steps = 0, tasks = 0, sizes = 0, losses = 0;
};

void take_figure(const OrderedJsonValue& from, std::string& to) { to = from.text(); }
void take_figure(const OrderedJsonValue& from, std::int64_t& to) { to = from.whole(-kMostTime, kMostTime); }
void take_figure(const OrderedJsonValue& from, TaskId& to) { to = static_cast<TaskId>(from.whole(0, UINT32_MAX)); }
void take_figure(const OrderedJsonValue& from, std::array<Bytes, kCategories>& to) {
  const std::vector<OrderedJsonValue> items = from.items();
  if (items.size() != to.size()) from.fail(fmt::format("has {} figures, not {}", items.size(), to.size()));
  for (std::size_t i = 0; i < to.size(); ++i) take_figure(items[i], to[i]);
}

Counts read_header(const std::string& path, const std::string& line, RankRun& run) try {
  const ordered_json file = parse_ordered_json("header", line, "run it again");
  const OrderedJsonValue header(file, "header");
  if (header.at("schema").text() != kSchema) header.fail(fmt::format("its schema is not {}", kSchema));
  visit_texts(run, [&](const char* key, auto& value) { take_figure(header.at(key), value); });
  const OrderedJsonValue memory = header.at("memory");
  visit_memory(run.memory, [&](const std::string& key, auto& value) { take_figure(memory.at(key), value); });
  if (const auto conditions = header.find("conditions")) run.conditions = conditions_of(*conditions);
  if (const auto unmarked = header.find("unmarked_ps")) {
    for (const OrderedJsonValue& step : unmarked->items()) run.unmarked.push_back(step.whole(0, kMostTime));
  }
  if (const auto logits = header.find("logits")) {
    for (const OrderedJsonValue& numbers : logits->items()) {
      LogitRow& row = run.logits.emplace_back();
      const std::vector<OrderedJsonValue> list = numbers.items();
      if (list.size() != 4 + std::size(kLogitFigures)) numbers.fail("it has not the figures of a row of logits");
      row.sequence = list[0].whole(0, kMostCount);
      row.position = list[1].whole(0, kMostCount);
      row.columns = list[2].whole(0, kMostCount);
      row.same_token = list[3].whole(0, 1) == 1;
      for (std::size_t i = 0; i < std::size(kLogitFigures); ++i)
        row.*kLogitFigures[i] = list[4 + i].number(-kMostLogit, kMostLogit);
    }
  }
  if (const auto texts = header.find("texts")) {
    for (const OrderedJsonValue& text : texts->items()) {
      std::vector<std::int64_t>& tokens = run.texts[text.at("sequence").whole(0, kMostCount)];
      for (const OrderedJsonValue& token : text.at("tokens").items()) tokens.push_back(token.whole(0, kMostCount));
    }
  }
  const auto count = [&](const char* key) {
    return static_cast<std::uint64_t>(header.at(key).whole(0, kMostCount - 1));
  };
  return {count("steps"), count("tasks"), count("sizes"), count("losses")};
} catch (const Error& e) {
  broken(path, e.what());
}

}  // namespace

std::string rank_file(const std::string& folder, std::int64_t rank) {
  return fmt::format("{}/rank_{}.run", folder, rank);
}

std::string snapshot_file(const std::string& folder, std::int64_t rank, std::int64_t step) {
  return fmt::format("{}/snapshot_{}.{}", folder, rank, step);
}

void write_rank_run(const std::string& path, const RankRun& run) {
  OutputFile file(path);
  const auto put = [&](const auto* values, std::size_t count) {
    file.write({reinterpret_cast<const char*>(values), count * sizeof *values});
  };
  file.write(header_of(run));
  for (const MeasuredStep& step : run.steps) {
    put(&step.begin, 1);
    put(&step.end, 1);
    put(step.spans.data(), step.spans.size());
    put(step.sizes.data(), step.sizes.size());
  }
  put(run.losses.data(), run.losses.size());
  file.commit();
}

RankRun parse_rank_run(std::istream& in, std::uint64_t size, const std::string& path) {
  std::string line;
  int next = in.get();
  for (; next != std::istream::traits_type::eof() && next != '\n' && line.size() < kMostHeader; next = in.get())
    line += static_cast<char>(next);
  if (next != '\n') broken(path, "it has no header");
  RankRun run;
  const Counts counts = read_header(path, line, run);
  __extension__ using Wide = unsigned __int128;
  const Wide expected = 8 * (static_cast<Wide>(counts.steps) * (2 + 3 * counts.tasks + counts.sizes) + counts.losses);
  if (size - (line.size() + 1) != expected) broken(path, "its length is not what its header says");
  Words words(in, path);
  run.steps.resize(counts.steps);
  for (MeasuredStep& step : run.steps) {
    words.read(&step.begin, 1);
    words.read(&step.end, 1);
    step.spans.resize(counts.tasks);
    words.read(step.spans.data(), step.spans.size());
    step.sizes.resize(counts.sizes);
    words.read(step.sizes.data(), step.sizes.size());
    check_step(path, step);
  }
  run.losses.resize(counts.losses);
  words.read(run.losses.data(), run.losses.size());
  return run;
}

RankRun read_rank_run(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!in || error) broken(path, "it cannot be read");
  return parse_rank_run(in, size, path);
}

}  // namespace orrery
