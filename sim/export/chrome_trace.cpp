#include "sim/export/chrome_trace.h"

#include <algorithm>
#include <concepts>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "models/base/output_file.h"
#include "sim/export/kineto.h"

namespace orrery {
namespace {

constexpr std::size_t kPiece = 1 << 18;  // bytes of text that are collected before they are written to the file

// The thread id of the host thread. A lane's thread id is also its CUDA stream in the trace, which must be above 0 for
// Holistic Trace Analysis.
constexpr std::uint32_t kHost = 0;
std::uint32_t thread_of(std::uint32_t lane) { return lane % kLanes + 1; }

// Rounds picoseconds to the nearest nanosecond. Rounding keeps the order, so that spans that touch still touch.
std::int64_t nanoseconds(Picoseconds t) { return t >= 0 ? (t + 500) / 1000 : -((499 - t) / 1000); }

struct Microseconds {
  std::int64_t nanoseconds = 0;
};
struct ExactMicroseconds {
  Picoseconds time = 0;
};

// Collects the text of the trace file, and writes it to the file piece by piece.
class Text {
 public:
  explicit Text(OutputFile& file) : file_(file) {}

  template <class... Parts>
  void put(const Parts&... parts) {
    (add(parts), ...);
  }

  // Begins the next element of the JSON array of events. parts: texts with which the element begins.
  template <class... Parts>
  void event(const Parts&... parts) {
    if (text_.size() >= kPiece) pass_on();
    put(std::exchange(separator_, ",\n"), parts...);
  }

  void pass_on() {
    file_.write({text_.data(), text_.size()});
    text_.clear();
  }

 private:
  void add(std::string_view s) { text_.append(s.data(), s.data() + s.size()); }
  void add(std::integral auto i) {
    const fmt::format_int digits(i);
    text_.append(digits.data(), digits.data() + digits.size());
  }
  void add(Microseconds t) { add_fraction(t.nanoseconds, 1000); }
  void add(ExactMicroseconds t) { add_fraction(t.time, 1000000); }

  // Writes value / unit as a decimal number (unit: a power of ten), in integer arithmetic and so without rounding
  // error.
  void add_fraction(std::int64_t value, std::int64_t unit) {
    if (value < 0) text_.push_back('-');
    const std::int64_t size = value < 0 ? -value : value;
    add(size / unit);
    text_.push_back('.');
    const std::int64_t rest = size % unit;
    for (std::int64_t digit = unit / 10; digit > 0; digit /= 10) {
      text_.push_back(static_cast<char>('0' + rest / digit % 10));
    }
  }

  OutputFile& file_;
  fmt::memory_buffer text_;
  std::string_view separator_ = "\n";
};

class Writer {
 public:
  Writer(const Plan& plan, const Trace& trace, std::span<const MemorySample> samples, const ChromeTraceOptions& options)
      : plan_(plan),
        trace_(trace),
        samples_(samples),
        steps_(options.steps),
        passes_(options.passes),
        cache_(options.cache),
        device_(json_string(options.device)) {
    for (const Op& op : plan.ops) {
      op_names_.push_back(json_string(op.name));
      kernel_names_.push_back(json_string(kernel_name(op)));
    }
    for (const RankClass& slot : plan.classes) wait_names_.push_back(json_string("wait for " + slot.name));
    for (const Block& block : plan.blocks) block_names_.push_back(json_string(block.name));
    for (std::uint32_t m = 0; m < plan.matches.size(); ++m) last_in_.push_back(last_to_enter(plan, trace, m));
  }

  // Writes one trace file with the classes of ranks from number `first` to `end` - 1.
  void write(const std::string& path, std::uint32_t first, std::uint32_t end, std::string_view members = {}) {
    OutputFile file(path);
    Text text(file);
    first_ = first;
    end_ = end;
    write_head(text);
    for (std::uint32_t s = first; s < end; ++s) write_slot(text, s);
    text.put("\n]", members.empty() ? "" : ",\n", members, "}\n");
    text.pass_on();
    file.commit();
  }

 private:
  // Writes the head of the file, one key on each line: Holistic Trace Analysis looks for "rank": N on a line of its
  // own.
  void write_head(Text& text) {
    text.put("{\n\"schemaVersion\": 1,\n\"deviceProperties\": [");
    for (std::uint32_t s = first_; s < end_; ++s) {
      text.put(s == first_ ? "" : ", ", "{\"id\": ", s, ", \"name\": ", device_, "}");
    }
    text.put("],\n\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": ", plan_.classes[first_].representative,
             ", \"world_size\": ", plan_.ranks, "},\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": 0,\n");
    if (!passes_.empty()) write_pass_names(text);
    text.put("\"traceEvents\": [");
  }

  void write_pass_names(Text& text) const {
    text.put("\"orreryPasses\": [");
    for (std::int64_t i = 0; i < batches_of_pass() * std::ssize(passes_); ++i)
      text.put(i == 0 ? "" : ", ", json_string(passes_[static_cast<std::size_t>(i / batches_of_pass())]));
    text.put("],\n");
  }

  std::int64_t batches_of_pass() const { return plan_.micro_batches / std::ssize(passes_); }

  void write_slot(Text& text, std::uint32_t s) {
    arguments_.assign(plan_.ops.size(), {});
    write_names(text, s);
    for (step_ = 0; step_ < steps_; ++step_) write_step(text, s);
    write_memory(text, s);
    if (!passes_.empty() && !cache_.empty()) write_cache(text, s);
  }

  void write_step(Text& text, std::uint32_t s) {
    text.event(R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)", step_, "\",\"pid\":", s,
               ",\"tid\":", kHost);
    write_times(text, 0, trace_.step_time);
    text.put("}");
    write_passes(text, s);
    for (TaskId t = plan_.classes[s].begin; t < plan_.classes[s].end; ++t) {
      write_launch(text, s, t);
      write_kernel(text, s, t);
      const std::uint32_t match = plan_.tasks[t].match;
      if (match == kNone) continue;
      write_wait(text, s, t);
      if (std::holds_alternative<Transfer>(plan_.op_of(t).work)) write_arrow(text, t);
    }
  }

  // Returns the begin and the end of each pass on a class of ranks; the begin is after the end where it has no tasks.
  std::vector<std::pair<Picoseconds, Picoseconds>> pass_times(std::uint32_t s) const {
    std::vector<std::pair<Picoseconds, Picoseconds>> times(passes_.size(), {trace_.step_time, 0});
    for (TaskId t = plan_.classes[s].begin; t < plan_.classes[s].end; ++t) {
      auto& [begin, end] =
          times[static_cast<std::size_t>(plan_.frames[plan_.tasks[t].frame].micro_batch / batches_of_pass())];
      begin = std::min(begin, trace_.spans[t].entered);
      end = std::max(end, trace_.spans[t].ended);
    }
    return times;
  }

  // Writes an annotation for each pass that the plan of a generation holds.
  void write_passes(Text& text, std::uint32_t s) const {
    if (passes_.empty()) return;
    const auto times = pass_times(s);
    for (std::size_t k = 0; k < passes_.size(); ++k) {
      if (times[k].first > times[k].second) continue;
      text.event(R"({"ph":"X","cat":"user_annotation","name":)", json_string(passes_[k]), ",\"pid\":", s,
                 ",\"tid\":", kHost);
      write_times(text, times[k].first, times[k].second);
      text.put("}");
    }
  }

  // The trace file may contain several repetitions of the simulated step. at(): the time in the file of a moment within
  // the current repetition; number_of(): the number of a task or transfer in the current repetition, counted over all
  // repetitions.
  Picoseconds at(Picoseconds time) const { return step_ * trace_.step_time + time; }
  std::uint64_t number_of(std::uint64_t id, std::size_t in_a_step) const {
    return static_cast<std::uint64_t>(step_) * in_a_step + id;
  }
  std::uint64_t task_number(TaskId t) const { return number_of(t, plan_.tasks.size()); }

  void write_names(Text& text, std::uint32_t s) const {
    const auto about = [&](std::string_view what, std::uint32_t thread) {
      text.event(R"({"ph":"M","name":")", what, "\",\"pid\":", s, ",\"tid\":", thread, ",\"args\":{");
    };
    about("process_name", kHost);
    text.put("\"name\":", json_string(process_name(s)), "}}");
    about("process_labels", kHost);
    text.put("\"labels\":", json_string(trace_.source), "}}");
    about("process_sort_index", kHost);
    text.put("\"sort_index\":", s, "}}");
    const auto thread = [&](std::uint32_t id, std::string_view name, std::uint32_t place) {
      about("thread_name", id);
      text.put("\"name\":\"", name, "\"}}");
      about("thread_sort_index", id);
      text.put("\"sort_index\":", place, "}}");
    };
    std::vector<bool> used(kLanes);
    for (TaskId t = plan_.classes[s].begin; t < plan_.classes[s].end; ++t) used[plan_.tasks[t].lane % kLanes] = true;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (used[lane]) thread(thread_of(lane), name_of(static_cast<LaneKind>(lane)), lane);
    }
    thread(kHost, "host", kLanes);
  }

  // The name of a class of ranks in the trace: "stage 0 (ranks 0, 1, ... x16)". The ranks of a class have the same
  // position in their pipeline groups, and the plan holds only one of them.
  std::string process_name(std::uint32_t s) const {
    const RankClass& slot = plan_.classes[s];
    if (slot.multiplicity == 1) return fmt::format("{} (rank {})", slot.name, slot.representative);
    const GroupTable& pipelines = plan_.dimensions[static_cast<std::size_t>(Dimension::pipeline)];
    const auto& own = pipelines.groups[pipelines.member_of[slot.representative]];
    const auto place = std::find(own.begin(), own.end(), slot.representative) - own.begin();
    std::vector<std::int64_t> ranks = {slot.representative};
    if (static_cast<std::int64_t>(pipelines.groups.size()) == slot.multiplicity) {
      ranks.clear();
      for (const auto& group : pipelines.groups) ranks.push_back(group[place]);
      std::sort(ranks.begin(), ranks.end());
    }
    const std::size_t shown = std::min<std::size_t>(ranks.size(), 2);
    const std::string list =
        fmt::format("{} (ranks {}", slot.name, fmt::join(ranks.begin(), ranks.begin() + shown, ", "));
    return static_cast<std::int64_t>(shown) == slot.multiplicity ? list + ")"
                                                                 : fmt::format("{}, ... x{})", list, slot.multiplicity);
  }

  void write_times(Text& text, Picoseconds from, Picoseconds to) const {
    const std::int64_t start = nanoseconds(at(from));
    text.put(",\"ts\":", Microseconds{start}, ",\"dur\":", Microseconds{nanoseconds(at(to)) - start});
  }

  void write_launch(Text& text, std::uint32_t s, TaskId t) const {
    const Picoseconds start = launch_start(plan_, trace_, t);
    if (waits_on_host(plan_, t) && start > trace_.spans[t - 1].issued) {
      text.event(R"({"ph":"X","cat":"cuda_runtime","name":"cudaEventSynchronize","pid":)", s, ",\"tid\":", kHost);
      write_times(text, trace_.spans[t - 1].issued, start);
      text.put("}");
    }
    text.event(R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":)", s, ",\"tid\":", kHost);
    write_times(text, start, trace_.spans[t].issued);
    text.put(",\"args\":{\"correlation\":", task_number(t), "}}");
    write_flow(text, 's', "ac2g", task_number(t), s, kHost, nanoseconds(at(start)));
  }

  void write_kernel(Text& text, std::uint32_t s, TaskId t) {
    const Task& task = plan_.tasks[t];
    const Span& span = trace_.spans[t];
    const Frame& frame = plan_.frames[task.frame];
    const std::uint32_t stream = thread_of(task.lane);
    text.event(R"({"ph":"X","cat":"kernel","name":)", kernel_names_[task.op], ",\"pid\":", s, ",\"tid\":", stream);
    write_times(text, span.entered, span.ended);
    text.put(",\"args\":{\"device\":", s, ",\"stream\":", stream, ",\"correlation\":", task_number(t),
             ",\"block\":", block_names_[frame.block], ",\"layer\":", frame.layer);
    if (frame.micro_batch >= 0) text.put(",\"micro-batch\":", frame.micro_batch);
    std::string& arguments = arguments_[task.op];
    if (arguments.empty()) arguments = kernel_arguments(plan_, s, plan_.ops[task.op]);
    text.put(",\"chunk\":", frame.chunk, ",", arguments, ",\"issued\":", ExactMicroseconds{at(span.issued)},
             ",\"entered\":", ExactMicroseconds{at(span.entered)}, ",\"matched\":", ExactMicroseconds{at(span.matched)},
             ",\"ended\":", ExactMicroseconds{at(span.ended)}, ",\"cause\":");
    // If all tasks that the task depended on had ended before the host launched the task, the launch is written as the
    // cause of the task's start.
    if (span.cause == kNone || trace_.spans[span.cause].ended < span.issued) {
      text.put("\"launch\"}}");
    } else {
      text.put(op_names_[plan_.tasks[span.cause].op], ",\"cause task\":", task_number(span.cause), "}}");
    }
    write_flow(text, 'f', "ac2g", task_number(t), s, stream, nanoseconds(at(span.entered)));
  }

  void write_wait(Text& text, std::uint32_t s, TaskId t) const {
    const Span& span = trace_.spans[t];
    if (span.matched <= span.entered) return;
    const TaskId last = last_in_[plan_.tasks[t].match];
    text.event(R"({"ph":"X","cat":"wait","name":)", wait_names_[plan_.slot_of(last)], ",\"pid\":", s,
               ",\"tid\":", thread_of(plan_.tasks[t].lane));
    write_times(text, span.entered, span.matched);
    text.put(",\"args\":{\"task\":", task_number(t), ",\"for task\":", task_number(last), "}}");
  }

  // Writes an arrow from a send to the receive of the same message. Send and receive both run from the moment when both
  // ranks had reached them; the arrow ends in the middle of the receive, so that viewers draw it to the receive's slice
  // wherever that is in the file.
  void write_arrow(Text& text, TaskId send) const {
    if (!std::get<Transfer>(plan_.op_of(send).work).send) return;
    const std::uint32_t match = plan_.tasks[send].match;
    for (const TaskId receive : plan_.members_of(match)) {
      const std::uint32_t to = plan_.slot_of(receive);
      if (receive == send || to < first_ || to >= end_) continue;
      const Span& span = trace_.spans[receive];
      const std::uint64_t id = number_of(match, plan_.matches.size());
      write_flow(text, 's', "transfer", id, plan_.slot_of(send), thread_of(plan_.tasks[send].lane),
                 nanoseconds(at(trace_.spans[send].matched)));
      write_flow(text, 'f', "transfer", id, to, thread_of(plan_.tasks[receive].lane),
                 nanoseconds(at(span.matched + (span.ended - span.matched) / 2)));
    }
  }

  static void write_flow(Text& text, char end, std::string_view kind, std::uint64_t id, std::uint32_t process,
                         std::uint32_t thread, std::int64_t time) {
    text.event("{\"ph\":\"", std::string_view(&end, 1), "\",\"cat\":\"", kind, "\",\"name\":\"", kind, "\",\"id\":", id,
               ",\"pid\":", process, ",\"tid\":", thread, ",\"ts\":", Microseconds{time},
               end == 'f' ? ",\"bp\":\"e\"}" : "}");
  }

  void write_memory(Text& text, std::uint32_t s) const {
    const auto [from, to] =
        std::equal_range(samples_.begin(), samples_.end(), MemorySample{.slot = s},
                         [](const MemorySample& a, const MemorySample& b) { return a.slot < b.slot; });
    for (auto sample = from; sample != to; ++sample) {
      text.event(R"({"ph":"C","name":"memory","pid":)", s, ",\"ts\":", Microseconds{nanoseconds(sample->time)},
                 ",\"args\":{");
      for (int c = 0; c < kCategories; ++c) {
        text.put(c == 0 ? "\"" : ",\"", name_of(static_cast<Category>(c)), "\":", sample->bytes[c]);
      }
      text.put("}}");
    }
  }

  // Writes the bytes of keys and values in use, from the begin of each pass on.
  void write_cache(Text& text, std::uint32_t s) const {
    const auto times = pass_times(s);
    for (std::size_t k = 0; k < passes_.size(); ++k) {
      if (times[k].first > times[k].second) continue;
      text.event(R"({"ph":"C","name":"keys and values","pid":)", s,
                 ",\"ts\":", Microseconds{nanoseconds(times[k].first)}, ",\"args\":{\"in use\":", cache_[s][k], "}}");
    }
  }

  const Plan& plan_;
  const Trace& trace_;
  std::span<const MemorySample> samples_;
  std::int64_t steps_ = 1, step_ = 0;  // step_: index of the repetition that is being written
  std::vector<std::string> passes_;
  std::vector<std::vector<Bytes>> cache_;
  std::string device_;
  // Names as JSON strings: of each op, of each op's kernel, of each block (such as a layer), and of the wait for each
  // class of ranks.
  std::vector<std::string> op_names_, kernel_names_, block_names_, wait_names_;
  std::vector<std::string> arguments_;  // for each op, its "args" for the class of ranks being written
  std::vector<TaskId> last_in_;         // for each match (the tasks of one transfer), the task that entered last
  std::uint32_t first_ = 0, end_ = 0;   // first class of ranks in the current file, and the one after the last
};

// The path of a trace file with a rank added: "out_rank8.json.gz" for "out.json.gz" and rank 8.
std::string path_of_rank(const std::string& path, std::int64_t rank) {
  const std::size_t name = path.find_last_of('/') + 1;  // position after the last slash, or 0: npos + 1 is 0
  const std::size_t json = path.rfind(".json");
  const std::size_t cut = json == std::string::npos || json < name ? path.size() : json;
  return fmt::format("{}_rank{}{}", path.substr(0, cut), rank, cut == path.size() ? ".json" : path.substr(cut));
}

}  // namespace

void write_chrome_trace(const std::string& path, const Plan& plan, const Trace& trace,
                        std::span<const MemorySample> samples, const ChromeTraceOptions& options) {
  Writer writer(plan, trace, samples, options);
  const auto slots = static_cast<std::uint32_t>(plan.classes.size());
  if (!options.file_per_slot) {
    writer.write(path, 0, slots, options.members);
    return;
  }
  for (std::uint32_t s = 0; s < slots; ++s) writer.write(path_of_rank(path, plan.classes[s].representative), s, s + 1);
}

}  // namespace orrery
