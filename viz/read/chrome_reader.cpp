#include "viz/read/chrome_reader.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/summary/kernel_name.h"
#include "viz/read/event_scan.h"
#include "viz/timeline/event_kind.h"

namespace orrery {
namespace {

constexpr std::size_t kReportEvery = 1 << 16;  // number of events read between two reports of progress
// Smallest text, in bytes, for which reading ahead in a second thread is worth its cost.
constexpr std::size_t kReadAhead = 1 << 22;
// Greatest duration of a trace in microseconds, about 46 days. It is limited because the times, in picoseconds, of a
// longer trace could overflow.
constexpr std::int64_t kLongestTrace = 4'000'000'000'000;
// greatest number of threads of a trace; limited because a damaged file may name a new thread in every event
constexpr std::size_t kMostThreads = 1 << 16;
constexpr std::size_t kMostSeries = 64;

// Returns the class of kernels of an event; `other` for a host's work.
KernelClass op_class_of(const RawEvent& raw, Kind kind) {
  if (kind == Kind::host || kind == Kind::wait) return KernelClass::other;
  if (communicates(kind)) return KernelClass::collective;
  if (kind == Kind::copy) return KernelClass::copy;
  return class_of_kernel(demangled(unescaped(raw.name)), raw.args.kind);
}

std::uint64_t mix(std::string_view text, std::uint64_t h) {
  h ^= text.size() * 0x9e3779b97f4a7c15ULL;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, text.data() + i, 8);
    h = (h ^ word) * 0xff51afd7ed558ccdULL;
    h ^= h >> 32;
  }
  for (; i < text.size(); ++i) h = (h ^ static_cast<unsigned char>(text[i])) * 0x100000001b3ULL;
  return h ^ (h >> 29);
}

}  // namespace

ChromeReader::ChromeReader(TimelineBuilder& builder, std::string_view text, std::string name, std::uint64_t source,
                           std::optional<std::int64_t>& origin)
    : builder_(builder), scan_(text), text_(text), name_(std::move(name)), source_(source), origin_(origin) {}

void ChromeReader::read(const LoadProgress& progress) {
  if (scan_.peek() == '[') {
    read_events(progress);
  } else {
    read_top_level(progress);
  }
  for (auto& [thread, events] : open_) {
    count_.unfinished += events.size();
  }
  name_ranks();
  for (const auto& [stream, lane] : annotations_) builder_.put_below(lane, stream, " annotations");
  add_remarks();
}

// Names processes by their rank, because profilers call the process of every rank "python". A rank has several
// processes in a trace: one for its threads, and one for the streams of its device.
void ChromeReader::name_ranks() {
  std::map<std::int64_t, int> of_rank;
  for (const auto& [pid, process] : processes_) {
    Process& p = builder_.process(process);
    if (rank_ >= 0 && p.rank < 0) p.rank = rank_;
    if (rank_ >= 0 && p.rank == rank_ && p.name.find("rank") == std::string::npos)
      p.name += " (rank " + std::to_string(rank_) + ")";
    if (p.rank >= 0) ++of_rank[p.rank];
  }
  std::map<std::string, int> of_name;
  for (const auto& [pid, process] : processes_) {
    Process& p = builder_.process(process);
    p.shares_rank = p.rank >= 0 && of_rank[p.rank] > 1;
    ++of_name[p.name];
  }
  for (const auto& [pid, process] : processes_) {
    Process& p = builder_.process(process);
    if (p.shares_rank && of_name[p.name] > 1) p.name += ", process " + unescaped(pid);
  }
}

void ChromeReader::read_top_level(const LoadProgress& progress) {
  if (!scan_.take('{')) {
    count_.skipped = 1;
    return;
  }
  while (scan_.peek() == '"') {
    const std::string_view key = scan_.string();
    if (!scan_.take(':')) break;
    if (key == "traceEvents" && scan_.peek() == '[') {
      read_events(progress);
    } else if (key == "distributedInfo" && scan_.peek() == '{') {
      read_rank(scan_.raw());
    } else if (key == "orreryPasses" && scan_.peek() == '[') {
      passes_.read(scan_.raw(), builder_.timeline());
    } else if (key == "orreryView" && scan_.peek() == '{') {
      builder_.timeline().saved_view = std::string(scan_.raw());
    } else {
      scan_.skip();
    }
    if (!scan_.take(',')) break;
  }
  if (!scan_.take('}')) count_.truncated = true;
}

void ChromeReader::read_rank(std::string_view object) {
  rank_ = number_in<std::int64_t>(detail_named(members_of_object(object, true), "rank"), -1);
}

void ChromeReader::read_events(const LoadProgress& progress) {
  EventScan events(scan_, text_);
  std::size_t taken = 0;
  const auto take_one = [&](const RawEvent& raw) {
    if (taken++ % kReportEvery == 0 && progress &&
        !progress(static_cast<double>(raw.position) / static_cast<double>(text_.size())))
      throw Cancelled{};
    take(raw);
  };
  if (text_.size() < kReadAhead) {
    take_events(events, take_one);
  } else {
    take_events_ahead(events, take_one);
  }
  count_.skipped += events.skipped();
  count_.unclosed = !events.closed();
}

void ChromeReader::take(const RawEvent& raw) {
  // PyTorch's profiler writes how long it ran as an event of a process of its own, which is no work.
  if (raw.category == "Trace" && raw.name.starts_with("PyTorch Profiler")) return;
  switch (raw.phase.size() == 1 ? raw.phase[0] : '\0') {
    case 'X':
      return take_complete(raw);
    case 'B':
      return take_begin(raw);
    case 'E':
      return take_end(raw);
    case 'C':
      return take_counter(raw);
    case 'M':
      return take_name(raw);
    case 's':
      return take_flow(raw, true);
    case 'f':
      return take_flow(raw, false);
    default:
      ++count_.other;
  }
}

bool ChromeReader::time_of(std::string_view text, Picoseconds& time) {
  ExactTime exact;
  if (!parse_time(text, exact)) return false;
  if (!origin_) origin_ = exact.microseconds;
  const std::int64_t since = exact.microseconds - *origin_;
  if (since > kLongestTrace || since < -kLongestTrace) return false;
  time = since * 1'000'000 + exact.picoseconds;
  return true;
}

std::uint32_t ChromeReader::process_of(std::string_view pid) {
  const auto [found, added] = processes_.try_emplace(std::string(pid), 0);
  if (added) {
    Process p;
    p.name = pid.empty() ? name_ : "process " + unescaped(pid);
    p.rank = rank_;
    p.order = static_cast<std::int64_t>(builder_.timeline().processes.size()) + 1;
    found->second = builder_.add_process(std::move(p));
  }
  return found->second;
}

std::uint32_t ChromeReader::thread_of(const RawEvent& raw) {
  const std::uint64_t key = mix(raw.tid, mix(raw.pid, 1)) | 1;
  if (key == last_thread_key_) return last_thread_;
  const auto found = threads_.find(key);
  if (found != threads_.end()) {
    last_thread_ = found->second;
  } else if (threads_.size() < kMostThreads) {
    last_thread_ = builder_.add_thread(process_of(raw.pid), "thread " + unescaped(raw.tid),
                                       static_cast<std::int64_t>(threads_.size()) + (1 << 20));
    threads_.emplace(key, last_thread_);
  }
  last_thread_key_ = key;
  return last_thread_;
}

// Returns the lane of the annotations that a profiler repeats on a device's stream, around the kernels launched within
// them. On the stream's own lane they would push kernels onto rows below.
std::uint32_t ChromeReader::annotations_of(const RawEvent& raw) {
  const std::uint32_t stream = thread_of(raw);
  const auto [found, added] = annotations_.try_emplace(stream, 0);
  if (added) found->second = builder_.add_thread(process_of(raw.pid), "", 0);
  return found->second;
}

std::uint32_t ChromeReader::label_of(const RawEvent& raw, Kind& kind) {
  const std::string_view shown = raw.args.op.empty() ? raw.name : raw.args.op;
  const std::int8_t phase = passes_.phase_of(raw.args.micro_batch);
  std::uint64_t key = mix(raw.name, 2 + static_cast<std::uint64_t>(phase - kNoPhase) * 8);
  key = mix(raw.category, mix(raw.args.op, key));
  key = mix(raw.args.group, mix(raw.args.phase, mix(raw.args.kind, key)));
  const auto [found, added] = labels_.try_emplace(key, 0);
  if (added) {
    const Kind made = kind_of_event({raw.name, raw.category, raw.args.phase, raw.args.group, raw.args.kind});
    found->second = builder_.label(unescaped(shown), made, op_class_of(raw, made), phase);
  }
  kind = builder_.timeline().labels[found->second].kind;
  return found->second;
}

// Sets a rank's coordinate in one form of parallelism (data, tensor, ...) to the rank's index in the list of ranks of a
// group. The list is read from the first event of every lane, since a lane serves one group. The data coordinate is the
// index among all ranks that share one set of shards, including those of a context-parallel group.
void ChromeReader::place_rank(const RawEvent& raw, std::uint32_t thread) {
  if (thread >= placed_.size()) placed_.resize(thread + 1);
  if (placed_[thread]) return;
  placed_[thread] = true;
  const int coordinate = group_coordinate(raw.args.group);
  Process& process = builder_.process(process_of(raw.pid));
  if (coordinate < 0 || process.rank < 0) return;
  std::int64_t& place = process.coordinates[static_cast<std::size_t>(coordinate)];
  if (place < 0) place = place_in_ranks(raw.args.ranks, process.rank);
}

void ChromeReader::take_complete(const RawEvent& raw) {
  Picoseconds begin = 0, end = 0;
  ExactTime duration;
  if (!time_of(raw.ts, begin) || !parse_time(raw.duration, duration) || duration.microseconds > kLongestTrace ||
      duration.microseconds < 0) {
    ++count_.no_time;
    return;
  }
  end = begin + duration.microseconds * 1'000'000 + duration.picoseconds;
  Kind kind = Kind::other;
  const std::uint32_t label = label_of(raw, kind);
  Picoseconds exact = 0;
  if (!raw.args.matched.empty() && communicates(kind) && time_of(raw.args.matched, exact) && exact >= begin - 1000 &&
      exact <= end + 1000)
    begin = exact;
  if (!raw.args.ended.empty() && time_of(raw.args.ended, exact) && exact >= begin && exact <= end + 1000) end = exact;
  const std::uint32_t thread = raw.category == "gpu_user_annotation" ? annotations_of(raw) : thread_of(raw);
  const TimelineBuilder::Event event{begin, end, thread, label, source_ | raw.position};
  if (!raw.args.ranks.empty()) place_rank(raw, event.thread);
  if (raw.args.layer.empty() && raw.args.micro_batch.empty()) return builder_.add(event);
  builder_.add(event, {number_in<std::int32_t>(raw.args.micro_batch, -1), number_in<std::int16_t>(raw.args.layer, -1),
                       number_in<std::int16_t>(raw.args.chunk, 0)});
}

void ChromeReader::take_begin(const RawEvent& raw) {
  Picoseconds begin = 0;
  if (!time_of(raw.ts, begin)) {
    ++count_.no_time;
    return;
  }
  Kind kind = Kind::other;
  const std::uint32_t label = label_of(raw, kind);
  const std::uint32_t thread = thread_of(raw);
  open_[thread].push_back({{begin, begin, thread, label, source_ | raw.position}});
}

void ChromeReader::take_end(const RawEvent& raw) {
  Picoseconds end = 0;
  if (!time_of(raw.ts, end)) {
    ++count_.no_time;
    return;
  }
  std::vector<Open>& open = open_[thread_of(raw)];
  if (open.empty()) {
    ++count_.unmatched;
    return;
  }
  open.back().event.end = end;
  builder_.add(open.back().event);
  open.pop_back();
}

void ChromeReader::take_counter(const RawEvent& raw) {
  Picoseconds time = 0;
  if (!time_of(raw.ts, time) || raw.args.object.empty()) {
    ++count_.no_time;
    return;
  }
  Process& process = builder_.process(process_of(raw.pid));
  const auto [found, added] =
      counters_.try_emplace(std::pair(process_of(raw.pid), std::string(raw.name)), process.counters.size());
  if (added) process.counters.push_back({unescaped(raw.name), {}, {}, {}});
  Counter& counter = process.counters[found->second];
  const Details values = members_of_object(raw.args.object, true);
  if (counter.times.empty()) {
    for (const auto& [name, value] : values) {
      if (counter.series.size() < kMostSeries) counter.series.push_back(name);
    }
  }
  counter.times.push_back(time);
  for (const std::string& series : counter.series) {
    ExactTime value;
    const bool known = parse_time(detail_named(values, series), value);
    counter.values.push_back(
        known ? static_cast<double>(value.microseconds) + 1e-6 * static_cast<double>(value.picoseconds) : 0);
  }
}

void ChromeReader::take_name(const RawEvent& raw) {
  const Details args = members_of_object(raw.args.object, true);
  if (raw.name == "process_name") {
    Process& process = builder_.process(process_of(raw.pid));
    process.name = detail_named(args, "name");
    read_process_name(process);
  } else if (raw.name == "process_sort_index") {
    builder_.process(process_of(raw.pid)).order = number_in<std::int64_t>(detail_named(args, "sort_index"), 0);
  } else if (raw.name == "process_labels") {
    take_labels(builder_.process(process_of(raw.pid)), detail_named(args, "labels"));
  } else if (raw.name == "thread_name") {
    std::string name = detail_named(args, "name");
    while (name.ends_with(' ')) name.pop_back();  // Kineto's streams are called "stream 7 "
    builder_.name_thread(thread_of(raw), std::move(name));
  } else if (raw.name == "thread_sort_index") {
    builder_.order_thread(thread_of(raw), number_in<std::int64_t>(detail_named(args, "sort_index"), 0));
  }
}

// Names a device and the host of a trace of PyTorch's profiler, which calls all processes by the name of one program
// and labels them "GPU 0", "CPU". Other labels say what the trace is: "simulated", "measured".
void ChromeReader::take_labels(Process& process, const std::string& labels) {
  if (labels.starts_with("GPU"))
    process.name = labels;
  else if (labels == "CPU")
    process.name = "host";
  else
    builder_.timeline().source = labels;
}

// Reads arrows between lanes of different processes; arrows from launches to kernels are ignored, since a click on a
// kernel shows its launch.
void ChromeReader::take_flow(const RawEvent& raw, bool start) {
  if (raw.category != "transfer") return;
  Picoseconds time = 0;
  if (!time_of(raw.ts, time)) return;
  const std::uint64_t id = mix(raw.id, mix(raw.category, 3));
  const std::uint32_t thread = thread_of(raw);
  if (start) {
    flows_[id] = {thread, time};
  } else if (const auto from = flows_.find(id); from != flows_.end()) {
    builder_.add_arrow({from->second.thread, thread, from->second.time, time});
  }
}

void ChromeReader::add_remarks() {
  std::vector<std::string>& remarks = builder_.timeline().remarks;
  const auto say = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) remarks.push_back(fmt::format("{}: {} {}", name_, count, what));
  };
  if (count_.unclosed) remarks.push_back(name_ + ": the list of events is not closed: read to the end of the file");
  if (!scan_.complete()) remarks.push_back(name_ + ": the file ends inside a value: what was cut off is left out");
  if (count_.truncated && !count_.unclosed) remarks.push_back(name_ + ": the file's last bracket is missing");
  say(scan_.control_characters(), "control characters inside strings: shown as blanks");
  say(count_.skipped, "pieces that are no event: left out");
  say(count_.no_time, "events without a finite time: left out");
  say(count_.unfinished, "events that begin and never end: left out");
  say(count_.unmatched, "ends of events that never began: left out");
}

}  // namespace orrery
