#include "viz/read/load.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/base/input_file.h"
#include "models/base/json_value.h"
#include "models/base/natural_order.h"
#include "models/load/load_spec.h"
#include "models/spec/spec.h"
#include "sim/print/text.h"
#include "viz/read/chrome_reader.h"
#include "viz/read/file_details.h"
#include "viz/timeline/align.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// number of bytes at the beginning of a file from which its format is recognised
constexpr std::size_t kHead = 1 << 20;
constexpr std::size_t kBytesPerEvent = 100;  // smallest number of bytes of a JSON event, for reserving address space
constexpr std::size_t kMostReserved = 1 << 26;

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Format format_of(const std::string& path) {
  if (ends_with(path, ".yaml") || ends_with(path, ".yml")) return Format::spec;
  const std::string head = beginning_of(path, kHead);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw Error(path + ": is empty");
  if (head[first] == '[' || head.find("\"traceEvents\"") != std::string_view::npos) return Format::trace;
  for (const char* schema : {"\"orrery.report/2\"", "\"orrery.report/1\"", "\"orrery.search/1\""}) {
    if (head.find(schema) != std::string_view::npos) return Format::report;
  }
  if (head.find("\"model\"") != std::string_view::npos || head[first] != '{') return Format::spec;
  throw Error(path + ": is no trace (it has no \"traceEvents\"), no report, no search and no spec");
}

bool is_trace_name(const std::string& name) { return ends_with(name, ".json") || ends_with(name, ".json.gz"); }

std::vector<std::string> expanded(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const std::size_t before = files.size();
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (is_trace_name(entry.path().string())) files.push_back(entry.path().string());
    }
    if (files.size() == before) throw Error(path + ": holds no trace (*.json, *.json.gz)");
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end(), in_natural_order);
  }
  return files;
}

Kind kind_of_share(std::string_view name) {
  static constexpr std::pair<std::string_view, Kind> rows[] = {
      {"compute", Kind::forward},       {"recompute", Kind::recompute},
      {"exposed_tensor", Kind::tensor}, {"exposed_context", Kind::context},
      {"exposed_expert", Kind::expert}, {"exposed_pipeline", Kind::pipeline},
      {"exposed_data", Kind::data},     {"offload", Kind::copy},
      {"optimizer", Kind::optimizer},   {"bubble", Kind::wait},
      {"imbalance", Kind::wait},        {"launch", Kind::host}};
  for (const auto& [row, kind] : rows) {
    if (row == name) return kind;
  }
  return Kind::other;
}

// Details of a report, shown when any bar of it is clicked.
class ReportDetails : public DetailSource {
 public:
  explicit ReportDetails(Details details) : details_(std::move(details)) {}
  Details details(std::uint64_t) const override { return details_; }

 private:
  Details details_;
};

constexpr std::int64_t kMostRanks = 10'000'000;
constexpr Bytes kMostBytes = Bytes{1} << 60;

// Adds a process with a memory counter for each class of ranks of a report. prefix: text before the names of the
// classes.
void add_report_memory(const OrderedJsonValue& memory, Picoseconds end, const std::string& prefix,
                       TimelineBuilder& builder) {
  const Bytes capacity = memory.at("capacity_bytes").whole(0, kMostBytes);
  for (const OrderedJsonValue& rank : memory.at("ranks").items()) {
    Process p;
    p.name = prefix + rank.at("name").text();
    p.ranks = rank.at("ranks").whole(0, kMostRanks);
    p.capacity = capacity;
    p.reserved = rank.at("peak_reserved_bytes").whole(0, kMostBytes);
    p.order = static_cast<std::int64_t>(builder.timeline().processes.size());
    Counter c{"memory", {}, {0, end}, {}};
    for (int copy = 0; copy < 2; ++copy) {
      for (const auto& [name, bytes] : rank.at("at_peak").members()) {
        if (copy == 0) c.series.push_back(name);
        c.values.push_back(bytes.number(0, static_cast<double>(kMostBytes)));
      }
    }
    p.counters.push_back(std::move(c));
    builder.add_process(std::move(p));
  }
}

// Adds a report to the timeline: a bar for each share of the step's time, one after the other, and the memory of each
// class of ranks (ranks that do the same).
void add_report(const OrderedJsonValue& report, const std::string& name, const std::string& prefix,
                TimelineBuilder& builder) {
  Details details;
  for (const auto& [key, value] : report.members()) {
    if (value.raw().is_primitive()) details.emplace_back(key, value.is_text() ? value.text() : value.raw().dump());
  }
  const std::uint64_t source = builder.add_source(std::make_shared<ReportDetails>(std::move(details)));
  Process all;
  all.name = name;
  all.order = static_cast<std::int64_t>(builder.timeline().processes.size());
  const auto process = static_cast<std::uint32_t>(builder.timeline().processes.size());
  builder.add_process(std::move(all));
  const std::uint32_t thread = builder.add_thread(process, "share of the step", 0);
  Picoseconds at = 0;
  for (const auto& [kind, share] : report.at("time_s").members()) {
    const Picoseconds end = at + picoseconds(share.number(0, kLongest));
    if (end > at) builder.add({at, end, thread, builder.label(kind, kind_of_share(kind)), source});
    at = end;
    if (at > INT64_MAX / 4) report.at("time_s").fail("is longer than a month");
  }
  add_report_memory(report.at("memory"), at, prefix, builder);
}

Document open_spec(const std::string& path, const SpecOptions& options) {
  return document_of(timeline_of(predict_step(load_spec(path, options.overrides), options)));
}

}  // namespace

Document document_of(StepTimeline s) {
  std::string name = s.timeline.title;
  return {std::move(name), std::move(s.timeline), std::move(s.step), std::move(s.event_of_task)};
}

std::string without_rank(const std::string& path) {
  const std::size_t name = path.find_last_of('/') + 1;
  const std::size_t at = path.rfind("rank");
  if (at == std::string::npos || at < name) return path;
  std::size_t end = at + 4;
  while (end < path.size() && (path[end] == '_' || path[end] == '-')) ++end;
  const std::size_t digits = end;
  while (end < path.size() && path[end] >= '0' && path[end] <= '9') ++end;
  return end == digits ? path : path.substr(0, at) + path.substr(end);
}

Document open_trace(const std::vector<std::string>& files, const LoadProgress& progress) {
  TimelineBuilder builder;
  std::optional<std::int64_t> origin;
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto part = [&](double share) {
      return !progress || progress((static_cast<double>(i) + share) / static_cast<double>(files.size()));
    };
    auto file = std::make_shared<MappedText>(files[i], [&](double share) { return part(share / 2); });
    const std::string name = fs::path(files[i]).filename().string();
    if (!file->damage().empty()) builder.timeline().remarks.push_back(name + ": " + file->damage());
    if (builder.events() == 0)
      builder.reserve(std::min(kMostReserved, files.size() * file->text().size() / kBytesPerEvent + 16));
    firsts.push_back(builder.events());
    const std::uint64_t source = builder.add_source(std::make_shared<FileDetails>(file));
    const bool whole = file->damage().empty();
    ChromeReader(builder, file->text(), name, source, origin).read(part);
    if (whole && !file->damage().empty()) builder.timeline().remarks.push_back(name + ": " + file->damage());
  }
  align_clocks(builder, firsts);
  Document d;
  d.name = fs::path(files.size() == 1 ? files[0] : without_rank(files[0])).filename().string();
  builder.timeline().title = d.name;
  d.timeline = builder.finish();
  if (d.timeline.source.empty()) d.timeline.source = "trace";
  if (d.timeline.events() == 0)
    throw Error(files[0] + ": holds no events with a time" +
                (d.timeline.remarks.empty() ? std::string() : " (" + d.timeline.remarks[0] + ")"));
  return d;
}

Document document_of_report(const std::string& path, std::string_view text) {
  constexpr const char* kAdvice = "a report of orrery.report/2 or orrery.search/1 is needed";
  if (text.size() > kMostMeasurements)
    throw Error(fmt::format("{}: is larger than {} MiB; {}", path, kMostMeasurements >> 20, kAdvice));
  const nlohmann::ordered_json file = parse_ordered_json(path, text, kAdvice);
  const OrderedJsonValue root(file, path, kAdvice);
  const bool search = root.at("schema").text() == "orrery.search/1";
  TimelineBuilder builder;
  Timeline& t = builder.timeline();
  t.title = fs::path(path).filename().string();
  t.source = search ? "search" : root.at("source").text() + " report";
  t.remarks.push_back("a report holds no timeline: bars show shares of the step, not when something happened");
  const auto strategies = search ? root.find("strategies") : std::nullopt;
  if (search && (!strategies || strategies->items().empty())) throw Error(path + ": this search shows no strategies");
  if (!search) add_report(root, "where the time goes", "", builder);
  int place = 0;
  for (const OrderedJsonValue& row : search ? strategies->items() : std::vector<OrderedJsonValue>()) {
    const std::string number = fmt::format("{}. ", ++place);
    add_report(row.at("report"), number + row.at("name").text(), number, builder);
  }
  Document d;
  d.name = t.title;
  d.timeline = builder.finish(0);
  return d;
}

std::vector<Input> inputs_of(const std::vector<std::string>& paths) {
  std::vector<Input> inputs;
  for (const std::string& path : expanded(paths)) {
    const Format format = format_of(path);
    const std::string key = without_rank(path);
    const auto same = std::find_if(inputs.begin(), inputs.end(), [&](const Input& input) {
      return format == Format::trace && input.format == format && key != path && without_rank(input.files[0]) == key;
    });
    if (same != inputs.end()) {
      same->files.push_back(path);
    } else {
      inputs.push_back({{path}, format});
    }
  }
  return inputs;
}

Document open_input(const Input& input, const SpecOptions& options, const LoadProgress& progress) {
  switch (input.format) {
    case Format::spec:
      return open_spec(input.files[0], options);
    case Format::report:
      return document_of_report(input.files[0], MappedText(input.files[0], progress).text());
    case Format::trace:
      break;
  }
  return open_trace(input.files, progress);
}

std::vector<Document> open_inputs(const std::vector<std::string>& paths, const SpecOptions& options,
                                  const LoadProgress& progress) {
  std::vector<Document> documents;
  for (const Input& input : inputs_of(paths)) documents.push_back(open_input(input, options, progress));
  return documents;
}

}  // namespace orrery
