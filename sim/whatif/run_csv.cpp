#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/sensible.h"
#include "sim/whatif/run_rows.h"

namespace orrery {
namespace {

enum class Field : std::uint8_t { worker, stage, step, op, chunk, sequence, lane, begin, time, none };

struct CsvColumn {
  std::string_view name;
  Field field = Field::none;
  double seconds = 1;  // number of seconds in one unit of the column; used for times only
};
// Names of columns that a CSV file of a measured run may have, and the field that each of them gives.
constexpr CsvColumn kColumns[] = {{"dp_rank", Field::worker},
                                  {"rank", Field::worker},
                                  {"worker", Field::worker},
                                  {"stage", Field::stage},
                                  {"pp_rank", Field::stage},
                                  {"step", Field::step},
                                  {"op", Field::op},
                                  {"name", Field::op},
                                  {"chunk", Field::chunk},
                                  {"model_chunk", Field::chunk},
                                  {"micro_batch", Field::none},
                                  {"mb_id", Field::none},
                                  {"sequence", Field::sequence},
                                  {"seq_id", Field::sequence},
                                  {"lane", Field::lane},
                                  {"stream", Field::lane},
                                  {"start_s", Field::begin},
                                  {"start_ms", Field::begin, 1e-3},
                                  {"start_us", Field::begin, 1e-6},
                                  {"duration_s", Field::time},
                                  {"duration_ms", Field::time, 1e-3},
                                  {"duration_us", Field::time, 1e-6}};

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t end = std::min(line.find_first_of(",\t"), line.size());
    std::string_view cell = line.substr(0, end);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '"')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '"' || cell.back() == '\r')) cell.remove_suffix(1);
    cells.push_back(cell);
    if (end == line.size()) return cells;
    line.remove_prefix(end + 1);
  }
}

std::vector<CsvColumn> columns_of_header(std::string_view header) {
  std::vector<CsvColumn> columns;
  for (const std::string_view name : cells_of(header)) {
    const auto found =
        std::find_if(std::begin(kColumns), std::end(kColumns), [&](const CsvColumn& c) { return c.name == name; });
    columns.push_back(found == std::end(kColumns) ? CsvColumn{name} : *found);
  }
  for (const auto& [field, names] :
       {std::pair(Field::worker, "rank"), std::pair(Field::step, "step"), std::pair(Field::op, "op"),
        std::pair(Field::begin, "start_us"), std::pair(Field::time, "duration_us")}) {
    if (std::none_of(columns.begin(), columns.end(), [&, f = field](const CsvColumn& c) { return c.field == f; }))
      throw Error(
          fmt::format("has no column {}; a header names rank, stage, step, op, start_us and duration_us", names));
  }
  return columns;
}

double csv_number(std::string_view cell, std::string_view column) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc{} || end != cell.data() + cell.size() || !(std::abs(value) <= 1e18))
    throw Error(fmt::format("{}: '{}' is no number of a run", column,
                            printable(std::string(cell.substr(0, sensible::kLongestWord)))));
  return value;
}

RunRow row_of_cells(const std::vector<CsvColumn>& columns, const std::vector<std::string_view>& cells) {
  if (cells.size() != columns.size())
    throw Error(fmt::format("has {} cells under {} columns", cells.size(), columns.size()));
  RunRow row;
  row.lane = "compute";
  bool named_lane = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const CsvColumn& c = columns[i];
    const auto whole = [&] { return static_cast<std::int64_t>(csv_number(cells[i], c.name)); };
    switch (c.field) {
      case Field::worker:
        row.worker = whole();
        break;
      case Field::stage:
        row.stage = whole();
        break;
      case Field::step:
        row.step = whole();
        break;
      case Field::chunk:
        row.chunk = whole();
        break;
      case Field::sequence:
        row.sequence = whole();
        break;
      case Field::begin:
        row.begin = c.seconds * csv_number(cells[i], c.name);
        break;
      case Field::time:
        row.time = c.seconds * csv_number(cells[i], c.name);
        break;
      case Field::op:
        row.op = cells[i].substr(0, sensible::kLongestWord);
        break;
      case Field::lane:
        row.lane = cells[i].substr(0, sensible::kLongestWord);
        named_lane = true;
        break;
      case Field::none:
        break;
    }
  }
  if (!named_lane) row.lane = lane_of_op(row.op);
  return row;
}

}  // namespace

void read_run_csv(const std::string& path, std::string_view text, RunRows& rows) {
  std::vector<CsvColumn> columns;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \r\t") == std::string_view::npos) continue;
    try {
      if (columns.empty())
        columns = columns_of_header(line);
      else
        rows.add(row_of_cells(columns, cells_of(line)));
    } catch (const Error& error) {
      throw Error(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
}

}  // namespace orrery
