// This file writes timelines as Chrome JSON.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/base/output_file.h"
#include "models/trace/json_scan.h"
#include "sim/export/chrome_trace.h"
#include "sim/export/kineto.h"
#include "sim/memory/live_memory.h"
#include "viz/window/exports.h"

namespace orrery {
namespace {

constexpr std::size_t kJsonPiece = 1 << 18;  // number of bytes of JSON text that are written at once

std::string microseconds(Picoseconds t) {
  const Picoseconds size = t < 0 ? -t : t;
  return fmt::format("{}{}.{:06}", t < 0 ? "-" : "", size / 1'000'000, size % 1'000'000);
}

// The texts from which the kind of an event is recognised when the file is read (viz/timeline/event_kind.h).
struct Words {
  std::string_view category, phase, operation;  // operation: the argument "kind" of compute events
};
Words words_of(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return {"kernel", "forward", ""};
    case Kind::backward:
      return {"kernel", "backward", ""};
    case Kind::recompute:
      return {"kernel", "backward", "/forward"};
    case Kind::optimizer:
      return {"kernel", "step", ""};
    case Kind::copy:
      return {"gpu_memcpy", "", ""};
    case Kind::wait:
      return {"wait", "", ""};
    case Kind::host:
      return {"cpu_op", "", ""};
    default:
      return {"kernel", "", ""};
  }
}

// Returns JSON for the value of a detail: a number unchanged, other text as a string.
std::string json_value(const std::string& text) {
  ExactTime number;
  const bool plain = !text.empty() && text.find_first_not_of("0123456789.-") == std::string::npos &&
                     text.back() != '.' && text[0] != '.' && parse_time(text, number) &&
                     (text[0] != '0' || text.size() == 1 || text[1] == '.');
  return plain ? text : json_string(text);
}

class JsonWriter {
 public:
  JsonWriter(const std::string& path, const Timeline& t) : file_(path), t_(t) {}

  void write(const std::string& saved_view) {
    text_ = "{\"traceEvents\": [";
    for (std::uint32_t p = 0; p < t_.processes.size(); ++p) write_process(p);
    for (std::uint32_t track = 0; track < t_.tracks.size(); ++track) write_track(track);
    for (std::size_t i = 0; i < t_.arrows.size(); ++i) write_arrow(t_.arrows[i], i);
    text_ += "\n]";
    if (!saved_view.empty()) text_ += ",\n\"orreryView\": " + saved_view;
    file_.write(text_ + "}\n");
    file_.commit();
  }

 private:
  void put(const std::string& event) {
    text_ += (first_ ? "\n" : ",\n") + event;
    first_ = false;
    if (text_.size() < kJsonPiece) return;
    file_.write(text_);
    text_.clear();
  }

  void write_process(std::uint32_t p) {
    const Process& process = t_.processes[p];
    const auto about = [&](std::string_view what, std::string_view name, const std::string& value) {
      put(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"args":{{"{}":{}}}}})", what, p, name, value));
    };
    about("process_name", "name", json_string(process.name));
    about("process_sort_index", "sort_index", std::to_string(process.order));
    about("process_labels", "labels", json_string(t_.source));
    for (const Counter& c : process.counters) {
      for (std::size_t i = 0; i < c.times.size(); ++i) {
        std::string values;
        for (std::size_t s = 0; s < c.series.size(); ++s)
          values += fmt::format("{}{}:{:.6f}", s == 0 ? "" : ",", json_string(c.series[s]),
                                c.values[i * c.series.size() + s]);
        put(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{{}}}}})", json_string(c.name), p,
                        microseconds(c.times[i]), values));
      }
    }
  }

  void write_track(std::uint32_t id) {
    const Track& track = t_.tracks[id];
    const auto about = [&](std::string_view what, std::string_view name, const std::string& value) {
      put(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"{}":{}}}}})", what, track.process, id, name,
                      value));
    };
    about("thread_name", "name", json_string(track.name));
    about("thread_sort_index", "sort_index", std::to_string(id));
    for (EventId e = track.first; e < track.first + track.count; ++e) write_event(track, id, e);
  }

  // Writes an event with its original details. An event without details gets a name, category and arguments from which
  // a reader of the file recognises the same kind of event.
  void write_event(const Track& track, std::uint32_t id, EventId e) {
    const Details details = details_of(t_, e);
    std::string name = detail_named(details, "name"), category = detail_named(details, "cat"), arguments;
    const auto argument = [&](const std::string& key, const std::string& value) {
      if (!value.empty()) arguments += (arguments.empty() ? "" : ",") + json_string(key) + ":" + value;
    };
    if (name.empty()) {
      const Kind kind = t_.kind(e);
      const Words words = words_of(kind);
      name = communicates(kind) ? "nccl" : t_.name(e);
      category = words.category;
      argument("op", json_string(t_.name(e)));
      if (!words.phase.empty()) argument("phase", json_string(words.phase));
      if (!words.operation.empty()) argument("kind", json_string(words.operation));
      if (communicates(kind) && kind != Kind::communication)
        argument("Process Group Description", json_string(name_of(kind)));
      const OpInstance place = t_.place(e);
      if (place.micro_batch >= 0) argument("micro-batch", std::to_string(place.micro_batch));
      if (place.layer >= 0) argument("layer", std::to_string(place.layer));
      if (place.chunk > 0) argument("chunk", std::to_string(place.chunk));
    } else {
      static constexpr std::string_view kOutside[] = {"ph", "cat", "name", "ts", "dur", "pid", "tid", "id", "bp"};
      for (const auto& [key, value] : details) {
        if (std::find(std::begin(kOutside), std::end(kOutside), key) == std::end(kOutside))
          argument(key, json_value(value));
      }
    }
    put(fmt::format(R"({{"ph":"X","cat":{},"name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                    json_string(category), json_string(name), track.process, id, microseconds(t_.begins[e]),
                    microseconds(t_.ends[e] - t_.begins[e]), arguments));
  }

  void write_arrow(const Arrow& a, std::size_t id) {
    const auto end = [&](char phase, std::uint32_t track, Picoseconds time) {
      put(fmt::format(R"({{"ph":"{}","cat":"transfer","name":"transfer","id":{},"pid":{},"tid":{},"ts":{}{}}})", phase,
                      id, t_.tracks[track].process, track, microseconds(time), phase == 'f' ? R"(,"bp":"e")" : ""));
    };
    end('s', a.from_track, a.from);
    end('f', a.to_track, a.to);
  }

  OutputFile file_;
  const Timeline& t_;
  std::string text_;
  bool first_ = true;
};

}  // namespace

void write_chrome_json(const std::string& path, const Document& d, const std::string& saved_view) {
  if (!d.simulated()) return JsonWriter(path, d.timeline).write(saved_view);
  const Prediction& p = d.step->prediction;
  write_chrome_trace(
      path, p.plan, p.trace, live_memory(p.plan, p.trace),
      {.device = d.step->spec.cluster.gpu.name, .members = saved_view.empty() ? "" : "\"orreryView\": " + saved_view});
}

}  // namespace orrery
