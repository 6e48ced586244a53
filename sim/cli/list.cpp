#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/names.h"
#include "models/families/hugging_face.h"
#include "models/load/aliases.h"
#include "models/load/combinations.h"
#include "models/load/load_spec.h"
#include "models/load/reference.h"
#include "models/schedule/schedules.h"
#include "models/spec/cluster.h"
#include "models/spec/recipes.h"
#include "models/spec/sharding.h"
#include "models/spec/software.h"
#include "models/spec/spec.h"
#include "sim/cli/commands.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

std::string text_of(std::int64_t n) { return n == 0 ? "-" : fmt::format("{}", n); }
std::string text_of(double x) { return x == 0 ? "-" : fmt::format("{}", x); }

Table models() {
  Table t;
  t.columns = {{"model", "", Align::left},
               {"parameters", "billion"},
               {"layers"},
               {"hidden"},
               {"heads"},
               {"kv heads"},
               {"vocabulary"},
               {"experts"},
               {"top k"}};
  for (const std::string_view name : data_names("models")) {
    const Model m = find_model(name);
    t.rows.push_back({std::string(name),
                      fmt::format("{:.3f}", static_cast<double>(parameter_count(m, m.max_positions)) / 1e9),
                      text_of(m.layers), text_of(m.hidden), text_of(m.heads), text_of(m.kv_heads), text_of(m.vocab),
                      text_of(m.moe ? m.moe->experts : 0), text_of(m.moe ? m.moe->top_k : 0)});
  }
  return t;
}

std::string predicted(const Gpu& g) {
  if (g.architecture != Architecture::other) return g.uncalibrated ? "uncalibrated" : "yes";
  return g.uncalibrated ? "with --profile, uncalibrated" : "with --profile";
}

Table gpus() {
  Table t;
  t.columns = {{"gpu", "", Align::left}, {"bf16", "TFLOP/s"}, {"memory", "GB"},
               {"bandwidth", "GB/s"},    {"NVLink", "GB/s"},  {"predicted", "", Align::left},
               {"name", "", Align::left}};
  for (const std::string_view id : data_names("gpus")) {
    const Gpu g = find_gpu(id);
    const auto peak = g.tflops.find("bf16");
    const Bytes tenths_GB = g.memory_bytes / 100'000'000;
    t.rows.push_back({std::string(id), text_of(peak == g.tflops.end() ? 0.0 : peak->second),
                      text_of(static_cast<double>(tenths_GB) / 10), text_of(g.memory_GBps), text_of(g.nvlink_GBps),
                      predicted(g), g.name});
  }
  return t;
}

Table clusters() {
  Table t;
  t.columns = {{"node", "", Align::left}, {"gpu", "", Align::left},    {"GPUs"},       {"NVLink domain"}, {"NICs"},
               {"each", "Gb/s"},          {"fabric", "", Align::left}, {"power", "kW"}};
  for (const std::string_view id : data_names("nodes")) {
    const Cluster c = find_cluster(id, 1);
    t.rows.push_back({std::string(id), c.gpu.id, text_of(std::int64_t{c.gpus_per_node}),
                      text_of(std::int64_t{c.nvlink_domain}), text_of(std::int64_t{c.nics}), text_of(c.nic_Gbps),
                      std::string(name_of(c.fabric)), text_of(c.power_kW)});
  }
  return t;
}

Table networks() {
  Table t;
  t.columns = {{"network", "", Align::left}, {"about", "", Align::left}};
  for (const std::string_view name : data_names("networks")) {
    const auto file = ordered_json::parse(data_file(fmt::format("networks/{}.json", name)));
    t.rows.push_back({std::string(name), file.value("about", "")});
  }
  return t;
}

template <class Rows>
Table named(const char* what, const Rows& rows) {
  Table t;
  t.columns = {{what, "", Align::left}, {"about", "", Align::left}};
  for (const auto& row : rows) t.rows.push_back({std::string(row.name), std::string(row.about)});
  return t;
}

Table schedules() { return named("schedule", schedule_rows()); }
Table shardings() { return named("sharding", sharding_rows()); }

Table software() {
  Table t;
  t.columns = {{"software", "", Align::left},
               {"attention", "", Align::left},
               {"rank order", "", Align::left},
               {"stages", "", Align::left},
               {"launch", "us"},
               {"about", "", Align::left}};
  for (const std::string_view name : data_names("software")) {
    const Software s = find_software(name);
    const auto file = ordered_json::parse(data_file(fmt::format("software/{}.json", name)));
    t.rows.push_back({std::string(name), std::string(name_in(kAttentions, s.kernels.attention)), s.layout.rank_order,
                      std::string(name_in(kStageRules, s.layout.stage_rule)), text_of(s.host.launch_us),
                      file.value("about", "")});
  }
  return t;
}

Table recipes() {
  Table t;
  t.columns = {{"recipe", "", Align::left}, {"GPUs"}, {"about", "", Align::left}};
  for (const std::string_view name : recipe_names())
    t.rows.push_back({std::string(name), text_of(load_spec(std::string(name)).gpus), find_recipe(name).about});
  return t;
}

// A table of options that do not work together (combinations.h), for `orrery list limits`.
Table limits() {
  Table t;
  t.columns = {{"limit", "", Align::left},
               {"with", "", Align::left},
               {"refused by", "", Align::left},
               {"why", "", Align::left},
               {"instead", "", Align::left}};
  for (const Pair& p : combinations())
    t.rows.push_back({std::string(p.a->text), p.b == nullptr ? "-" : std::string(p.b->text),
                      std::string(name_of(p.which)), std::string(p.why), std::string(p.advice)});
  return t;
}

// A table of all keys of a spec, as the parser accepts them.
Table keys() {
  Table t;
  t.columns = {{"key", "", Align::left},     {"type", "", Align::left},    {"unit", "", Align::left},
               {"default", "", Align::left}, {"meaning", "", Align::left}, {"example", "", Align::left}};
  for (const KeyReference& k : spec_reference())
    t.rows.push_back({k.key, k.type, k.unit.empty() ? "-" : k.unit, k.otherwise, k.meaning, k.example});
  return t;
}

// A table of the alternative names of keys and values.
Table aliases() {
  Table t;
  t.columns = {{"alias", "", Align::left}, {"of", "", Align::left}, {"name", "", Align::left}};
  for (const AliasRow& row : alias_rows()) t.rows.push_back({row.given, row.at, row.name});
  return t;
}

struct NamedList {
  std::string_view name;
  Table (*make)();
};
constexpr NamedList kLists[] = {{"models", models},     {"clusters", clusters},   {"networks", networks},
                                {"gpus", gpus},         {"schedules", schedules}, {"shardings", shardings},
                                {"software", software}, {"recipes", recipes},     {"limits", limits},
                                {"keys", keys},         {"aliases", aliases}};

// An entry of a table as a JSON value: a number if the entry is one, null for "-", else a text.
ordered_json value_of(const std::string& cell) {
  if (cell == "-") return nullptr;
  ordered_json value = ordered_json::parse(cell, nullptr, false);
  return value.is_number() ? value : ordered_json(cell);
}

// A table as JSON, with one object for each row, whose keys are the columns' names and units: {"gpu": "h100-sxm", "bf16
// (TFLOP/s)": 989.4, ...}.
std::string to_json(const Table& table) {
  ordered_json list = ordered_json::array();
  for (const std::vector<std::string>& cells : table.rows) {
    ordered_json row;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Column& column = table.columns[i];
      row[column.unit.empty() ? column.name : fmt::format("{} ({})", column.name, column.unit)] = value_of(cells[i]);
    }
    list.push_back(std::move(row));
  }
  return list.dump(2) + '\n';
}

// A table as Markdown, for the pages that scripts/print_pages writes.
std::string to_markdown(const Table& table) {
  std::string head = "|", rule = "|", body;
  for (const Column& c : table.columns) {
    head += c.unit.empty() ? fmt::format(" {} |", c.name) : fmt::format(" {} ({}) |", c.name, c.unit);
    rule += c.align == Align::left ? " --- |" : " ---: |";
  }
  for (const std::vector<std::string>& cells : table.rows) {
    body += '|';
    for (const std::string& cell : cells) {
      body += ' ';
      for (const char c : cell) body += c == '|' ? "\\|" : std::string(1, c);
      body += " |";
    }
    body += '\n';
  }
  return fmt::format("{}\n{}\n{}", head, rule, body);
}

}  // namespace

std::vector<std::string_view> list_names() {
  std::vector<std::string_view> names;
  for (const NamedList& list : kLists) names.push_back(list.name);
  return names;
}

Outcome list_command(std::string_view what, const Common& common, bool markdown) {
  for (const NamedList& list : kLists) {
    if (list.name != what) continue;
    const Table table = list.make();
    return {common.json ? to_json(table) : markdown ? to_markdown(table) : print(table, "", common.style.columns)};
  }
  throw Error(unknown_name("list", what, list_names()));
}

}  // namespace orrery
