#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "models/base/csv.h"
#include "models/base/error.h"
#include "sim/whatif/run_rows.h"

namespace orrery {
namespace {

enum class Field : std::uint8_t { worker, stage, step, op, chunk, micro_batch, sequence, lane, begin, time };
constexpr std::size_t kFields = 10;

constexpr double kMostTime = 1e18;                           // greatest begin or duration, in the unit of its column
constexpr std::int64_t kMostNumber = std::int64_t{1} << 53;  // greatest number of a rank, a stage, a step or a chunk

struct CsvColumn {
  std::string_view name;
  Field field = Field::worker;
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
                                  {"micro_batch", Field::micro_batch},
                                  {"mb_id", Field::micro_batch},
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

// For each field, the column of a file that gives it; nullptr if none does.
using Columns = std::array<const CsvColumn*, kFields>;

Columns columns_of(const std::vector<std::string>& header) {
  Columns columns{};
  for (const std::string& name : header) {
    const auto* const found =
        std::find_if(std::begin(kColumns), std::end(kColumns), [&](const CsvColumn& c) { return c.name == name; });
    if (found == std::end(kColumns)) continue;
    const CsvColumn*& column = columns[static_cast<std::size_t>(found->field)];
    if (column != nullptr)
      throw Error(fmt::format("columns {} and {} give the same; leave out one of them", column->name, name));
    column = found;
  }
  for (const auto& [field, name] :
       {std::pair(Field::worker, "rank"), std::pair(Field::step, "step"), std::pair(Field::op, "op"),
        std::pair(Field::begin, "start_us"), std::pair(Field::time, "duration_us")}) {
    if (columns[static_cast<std::size_t>(field)] == nullptr)
      throw Error(
          fmt::format("has no column {}; a header names rank, stage, step, op, start_us and duration_us", name));
  }
  return columns;
}

// The cells of one row, found by field.
class FieldCells {
 public:
  FieldCells(const CsvRow& row, const Columns& columns) : row_(row), columns_(columns) {}

  bool has(Field field) const { return column(field) != nullptr; }
  const std::string& text(Field field) const { return row_.text(column(field)->name); }
  double seconds(Field field) const {
    return column(field)->seconds * row_.number(column(field)->name, -kMostTime, kMostTime);
  }
  std::int64_t whole(Field field) const { return row_.whole(column(field)->name, -kMostNumber, kMostNumber); }
  // The number that a field gives, or `otherwise` if the file does not have the field or the cell is empty.
  std::int64_t whole_or(Field field, std::int64_t otherwise) const {
    return has(field) && !text(field).empty() ? whole(field) : otherwise;
  }

 private:
  const CsvColumn* column(Field field) const { return columns_[static_cast<std::size_t>(field)]; }

  const CsvRow& row_;
  const Columns& columns_;
};

RunRow row_of(const FieldCells& cells) {
  RunRow row{.worker = cells.whole(Field::worker),
             .stage = cells.has(Field::stage) ? cells.whole(Field::stage) : 0,
             .step = cells.whole(Field::step),
             .op = cells.text(Field::op),
             .chunk = cells.whole_or(Field::chunk, -1),
             .micro_batch = cells.whole_or(Field::micro_batch, -1),
             .sequence = cells.whole_or(Field::sequence, -1)};
  row.lane = cells.has(Field::lane) ? cells.text(Field::lane) : lane_of_op(row.op);
  row.begin = cells.seconds(Field::begin);
  row.time = cells.seconds(Field::time);
  return row;
}

}  // namespace

void read_run_csv(const std::string& path, std::string_view text, RunRows& rows) {
  Columns columns{};
  read_csv(path, text,
           {[&](const std::vector<std::string>& header) { columns = columns_of(header); },
            [&](const CsvRow& row) { rows.add(row_of(FieldCells(row, columns))); }});
}

}  // namespace orrery
