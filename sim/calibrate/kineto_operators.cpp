#include "sim/calibrate/kineto_operators.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <nlohmann/json.hpp>

#include "sim/summary/event.h"
#include "sim/summary/tie.h"

namespace orrery {
namespace {

std::uint32_t id_in(const JsonValue& event, const char* key) {
  const auto args = event.find("args");
  const auto found = args ? args->find(key) : std::nullopt;
  return found && found->raw().is_number_integer() ? static_cast<std::uint32_t>(found->raw().get<std::int64_t>()) : 0;
}

std::uint32_t operator_id_in(const JsonValue& event) {
  const auto args = event.find("args");
  if (!args || !args->raw().is_object()) return 0;
  std::uint32_t id = 0;
  for (const auto& [key, value] : args->raw().items()) {
    if (is_operator_id(key) && value.is_number_integer()) id = static_cast<std::uint32_t>(value.get<std::int64_t>());
  }
  return id;
}

// Latest time of a trace in microseconds since 1970, in the year 2096, as in sim/summary.
constexpr double kLatest_us = 4e15;

// Returns a time, 0 where there is none or it cannot be one.
double microseconds_in(const JsonValue& event, const char* key) {
  const auto found = event.find(key);
  const double us = found && found->is_number() ? found->raw().get<double>() : 0;
  return std::abs(us) <= kLatest_us ? us : 0;
}

// Returns nanoseconds; whole microseconds stay exact, although a time since 1970 in nanoseconds is beyond a double's
// digits.
std::int64_t nanoseconds_of(double us) {
  const double whole = std::floor(us);
  return static_cast<std::int64_t>(whole) * 1000 + std::llround((us - whole) * 1000);
}

struct HostTimes {
  std::int64_t begin = 0, end = 0;
};

HostTimes times_of(const JsonValue& event) {
  const std::int64_t begin = nanoseconds_of(microseconds_in(event, "ts"));
  return {begin, begin + nanoseconds_of(microseconds_in(event, "dur"))};
}

}  // namespace

std::uint32_t KinetoOperators::thread_of(const JsonValue& event) {
  std::string key;
  for (const char* part : {"pid", "tid"}) {
    const auto found = event.find(part);
    key += (found ? found->raw().dump() : "null") + ' ';
  }
  return threads_.try_emplace(key, static_cast<std::uint32_t>(threads_.size())).first->second;
}

// The names of records are indices of events.
KinetoOperators::KinetoOperators(const std::vector<JsonValue>& events) : events_(events) {
  TraceRecords records;
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events[e].text_or("ph", "") != "X") continue;
    const EventSort sort = event_sort_of(events[e].text_or("cat", ""));
    const auto name = static_cast<std::uint32_t>(e);
    const HostTimes t = times_of(events[e]);
    if (sort == EventSort::kernel) {
      records.kernels.push_back({.begin = t.begin,
                                 .end = t.end,
                                 .launch = id_in(events[e], "correlation"),
                                 .operation = operator_id_in(events[e]),
                                 .name = name});
    } else if (sort == EventSort::launch) {
      if (const std::uint32_t id = id_in(events[e], "correlation"); id != 0)
        records.launches.push_back({t.begin, t.end, id, thread_of(events[e])});
    } else if (sort == EventSort::operation || sort == EventSort::annotation) {
      const bool annotation = sort == EventSort::annotation;
      const std::uint32_t thread = thread_of(events[e]);
      records.operators.push_back({t.begin, t.end, operator_id_in(events[e]), thread, name, annotation});
      if (annotation) continue;
      operators_.push_back(e);
      thread_[e] = thread;
      if (events[e].text_or("name", "").starts_with("autograd::engine::evaluate_function")) autograd_.push_back(thread);
    }
  }
  nest();
  tie(records);
  for (const KernelRecord& k : records.kernels) {
    if (k.tie != Tie::none) launched_by_[k.name] = k.operation;
  }
}

// Finds the nodes of autograd ("AddmmBackward0") around operators: of the operators of a thread, which are nested, the
// innermost one whose name says so.
void KinetoOperators::nest() {
  struct Nested {
    std::uint32_t thread;
    HostTimes times;
    std::size_t event;
  };
  std::vector<Nested> order;
  for (const std::size_t e : operators_) order.push_back({thread_[e], times_of(events_[e]), e});
  std::sort(order.begin(), order.end(), [](const Nested& a, const Nested& b) {
    return std::tuple(a.thread, a.times.begin, -a.times.end, a.event) <
           std::tuple(b.thread, b.times.begin, -b.times.end, b.event);
  });
  std::vector<Nested> nodes;  // the nodes that are running
  for (const Nested& op : order) {
    while (!nodes.empty() && (nodes.back().thread != op.thread || nodes.back().times.end <= op.times.begin))
      nodes.pop_back();
    const std::string name = events_[op.event].text_or("name", "");
    if (name.find("Backward") != std::string::npos && !name.starts_with("autograd::")) {
      nodes.push_back(op);
    } else if (!nodes.empty()) {
      gradient_[op.event] = first_shape(events_[nodes.back().event].raw());
    }
  }
}

std::optional<std::size_t> KinetoOperators::of_kernel(std::size_t kernel) const {
  const auto found = launched_by_.find(kernel);
  return found == launched_by_.end() ? std::nullopt : std::optional(found->second);
}

OperatorPlace KinetoOperators::place_of(std::size_t op) const {
  OperatorPlace place;
  const auto thread = thread_.find(op);
  place.backward =
      thread != thread_.end() && std::find(autograd_.begin(), autograd_.end(), thread->second) != autograd_.end();
  if (const auto found = gradient_.find(op); found != gradient_.end()) place.gradient = found->second;
  return place;
}

}  // namespace orrery
