#include "viz/read/event_facts.h"

#include <algorithm>
#include <variant>

#include <nlohmann/json.hpp>

#include "models/trace/json_scan.h"
#include "sim/export/pytorch_ops.h"
#include "sim/summary/event.h"
#include "viz/read/chrome_event.h"
#include "viz/timeline/op_shape.h"

namespace orrery {
namespace {

using Role = EventIds::Role;

// Returns the role of an event by its category.
Role role_of(std::string_view category) {
  switch (event_sort_of(category)) {
    case EventSort::kernel:
    case EventSort::copy:
      return Role::kernel;
    case EventSort::operation:
      return Role::op;
    case EventSort::annotation:
      return Role::annotation;
    case EventSort::launch:
      return Role::launch;
    case EventSort::none:
    case EventSort::wait:
      break;
  }
  return Role::other;
}

void read_ids(JsonScan& scan, EventIds& ids) {
  scan.take('{');
  while (scan.peek() == '"') {
    const std::string_view key = scan.string();
    if (!scan.take(':')) return;
    const std::string_view value = scan.raw();
    if (is_operator_id(key)) ids.external = number_in<std::uint64_t>(value, 0);
    if (key == "correlation") ids.correlation = number_in<std::uint64_t>(value, 0);
    if (!scan.take(',')) break;
  }
  scan.take('}');
}

std::int64_t whole_of(const nlohmann::json& args, const char* key) {
  const auto found = args.find(key);
  return found != args.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::string word_of(const nlohmann::json& args, const char* key) {
  const auto found = args.find(key);
  return found != args.end() && found->is_string() ? found->get<std::string>() : "";
}

// Returns the shape of a collective's kernel. Its bytes are the larger of one rank's input and output.
std::string collective_words(const nlohmann::json& args) {
  const std::string_view name = collective_of_torch(word_of(args, "Collective name"));
  if (name.empty()) return "";
  const std::int64_t elements = std::max(whole_of(args, "In msg nelems"), whole_of(args, "Out msg nelems"));
  const Bytes each = element_bytes(word_of(args, "dtype"));
  constexpr std::int64_t kMostElements = std::int64_t{1} << 50;  // more than any machine's memory holds
  return elements > 0 && elements < kMostElements && each > 0 ? shape_words(name, elements * each) : "";
}

// Returns the shape of a kernel of Orrery's own traces, which name its kind of op and its sizes.
std::string own_words(const nlohmann::json& args) {
  const auto sizes = args.find("sizes");
  if (sizes == args.end() || !sizes->is_array()) return "";
  WorkShape shape{word_of(args, "kind"), {}, 0};
  for (const nlohmann::json& size : *sizes) {
    if (!size.is_number()) return "";
    shape.sizes.push_back(size.get<double>());
  }
  return shape_words(shape);
}

}  // namespace

EventIds ids_of_event(std::string_view text, std::size_t position) {
  EventIds ids;
  JsonScan scan(text, std::min(position, text.size()));
  if (!scan.take('{')) return ids;
  while (scan.peek() == '"') {
    const std::string_view key = scan.string();
    if (!scan.take(':')) break;
    if (key == "args" && scan.peek() == '{') {
      read_ids(scan, ids);
    } else {
      const std::string_view value = scan.raw();
      if (key == "cat") ids.role = role_of(value);
    }
    if (!scan.take(',')) break;
  }
  return ids;
}

std::string shape_of_event(std::string_view event) {
  const nlohmann::json json = nlohmann::json::parse(event, nullptr, false);
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return "";
  const auto args = json.find("args");
  if (args == json.end() || !args->is_object()) return "";
  if (args->contains("Collective name")) return collective_words(*args);
  if (args->contains("sizes")) return own_words(*args);
  if (!args->contains("Input Dims")) return "";
  const Recognised found = recognise(json, {}, {});
  const auto* const shape = std::get_if<WorkShape>(&found);
  return shape == nullptr ? "" : shape_words(*shape);
}

}  // namespace orrery
