#include "models/schedule/schedule_file.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/sensible.h"

namespace orrery {
namespace {

// One cell of a line in a schedule file, such as 1F0: a virtual stage, the phase that it runs, and the micro-batch.
struct FileCell {
  std::int32_t virtual_stage = 0;
  Phase phase = Phase::forward;
  std::int32_t micro_batch = 0;
};

std::string_view short_word(std::string_view word) { return word.substr(0, sensible::kLongestWord); }

struct Line {
  int number = 0;
  std::vector<FileCell> cells;
};

class Reader {
 public:
  Reader(const std::string& path, const ScheduleShape& shape) : path_(path), shape_(shape) {}

  Schedule read(const std::string& text) {
    std::istringstream in(text);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      line = line.substr(0, line.find('#'));
      std::replace(line.begin(), line.end(), ',', ' ');
      if (line.find_first_not_of(" \t\r") != std::string::npos) lines_.push_back(read_line(line, number));
    }
    if (static_cast<std::int64_t>(lines_.size()) != shape_.stages)
      throw Error(fmt::format("{}: has {} lines of actions; pipeline: {} needs one a stage", path_, lines_.size(),
                              shape_.stages));
    return assemble();
  }

 private:
  [[noreturn]] void refuse(int line, const std::string& what) const {
    throw Error(printable(fmt::format("{}:{}: {}", path_, line, what)));
  }

  std::int32_t number(const std::string& cell, std::size_t& at, int line) const {
    std::int32_t value = -1;
    const auto [end, error] = std::from_chars(cell.data() + at, cell.data() + cell.size(), value);
    if (error != std::errc() || value < 0)
      refuse(line, fmt::format("'{}' is no action; write F0, B0, I0, W0", short_word(cell)));
    at = static_cast<std::size_t>(end - cell.data());
    return value;
  }

  FileCell read_cell(const std::string& text, int line) const {
    static constexpr std::string_view kLetters = "FBIW";
    static constexpr Phase kPhases[] = {Phase::forward, Phase::backward, Phase::input_gradient, Phase::weight_gradient};
    FileCell cell = {static_cast<std::int32_t>(lines_.size()), Phase::forward, 0};
    std::size_t at = 0;
    if (text[0] >= '0' && text[0] <= '9') cell.virtual_stage = number(text, at, line);
    const std::size_t letter = at < text.size() ? kLetters.find(text[at]) : std::string_view::npos;
    if (letter == std::string_view::npos)
      refuse(line,
             fmt::format("'{}' is no action; write F0, B0, I0 or W0, or 1F0 for virtual stage 1", short_word(text)));
    cell.phase = kPhases[letter];
    cell.micro_batch = number(text, ++at, line);
    if (at != text.size()) refuse(line, fmt::format("'{}' is no action; write F0, B0, I0, W0", short_word(text)));
    if (cell.micro_batch >= shape_.micro_batches)
      refuse(line, fmt::format("'{}': the step has micro-batches 0 to {}", short_word(text), shape_.micro_batches - 1));
    if (cell.virtual_stage >= shape_.stages * shape_.chunks)
      refuse(line, fmt::format("'{}': the model has virtual stages 0 to {} (pipeline: {}, virtual_stages: {})",
                               short_word(text), shape_.stages * shape_.chunks - 1, shape_.stages, shape_.chunks));
    return cell;
  }

  Line read_line(const std::string& text, int number) const {
    Line line{number, {}};
    std::istringstream cells(text);
    for (std::string cell; cells >> cell;) line.cells.push_back(read_cell(cell, number));
    return line;
  }

  // Makes the schedule from the file's cells (each a phase of a virtual stage for one micro-batch); the chunks of a
  // stage are numbered in the order of the model.
  Schedule assemble() const {
    const std::int64_t count = shape_.stages * shape_.chunks;
    Schedule schedule;
    schedule.stage_of.assign(count, -1);
    schedule.chunk_of.assign(count, 0);
    for (std::size_t s = 0; s < lines_.size(); ++s) place(static_cast<std::int32_t>(s), schedule);
    const ChunkPlacement placement = std::equal(schedule.stage_of.begin(), schedule.stage_of.end(),
                                                place_chunks(ChunkPlacement::v_shaped, shape_).stage_of.begin())
                                         ? ChunkPlacement::v_shaped
                                         : ChunkPlacement::in_turn;
    const Schedule expected = place_chunks(placement, shape_);
    for (std::int64_t k = 0; k < count; ++k) {
      if (schedule.stage_of[k] < 0) throw Error(fmt::format("{}: virtual stage {} runs nowhere", path_, k));
      if (schedule.stage_of[k] != expected.stage_of[k])
        throw Error(
            fmt::format("{}: virtual stage {} stands in line {} of actions; they go round the stages in turn, or "
                        "there and back; in turn it belongs in line {}",
                        path_, k, schedule.stage_of[k] + 1, expected.stage_of[k] + 1));
    }
    schedule.chunk_of = expected.chunk_of;
    for (const Line& line : lines_) {
      require_complete(line, schedule);
      std::vector<Action> order;
      for (const FileCell& c : line.cells)
        order.push_back({c.phase, schedule.chunk_of[c.virtual_stage], c.micro_batch});
      schedule.order.push_back(std::move(order));
    }
    return schedule;
  }

  void place(std::int32_t stage, Schedule& schedule) const {
    for (const FileCell& c : lines_[stage].cells) {
      std::int32_t& of = schedule.stage_of[c.virtual_stage];
      if (of >= 0 && of != stage)
        refuse(lines_[stage].number, fmt::format("virtual stage {} runs in line {} too; it has one place",
                                                 c.virtual_stage, lines_[of].number));
      of = stage;
    }
  }

  // Throws Error unless a line has for each virtual stage and micro-batch one F (forward), then either one B
  // (backward), or one I (input gradient) and then one W (weight gradient).
  void require_complete(const Line& line, const Schedule& schedule) const {
    std::map<std::pair<std::int32_t, std::int32_t>, std::string> done;
    for (const FileCell& c : line.cells) {
      std::string& phases = done[{c.virtual_stage, c.micro_batch}];
      phases += letter_of(c.phase);
      if (phases != "F" && phases != "FB" && phases != "FI" && phases != "FIW")
        refuse(line.number,
               fmt::format("virtual stage {}, micro-batch {}: {} after '{}'; a micro-batch runs F, then B or I and W",
                           c.virtual_stage, c.micro_batch, letter_of(c.phase), phases.substr(0, phases.size() - 1)));
    }
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(schedule.stage_of.size()); ++k) {
      if (&lines_[schedule.stage_of[k]] != &line) continue;
      for (std::int32_t i = 0; i < shape_.micro_batches; ++i) {
        const std::string& phases = done[{k, i}];
        if (phases != "FB" && phases != "FIW")
          refuse(line.number, fmt::format("virtual stage {}, micro-batch {}: {} is there; a micro-batch runs F, "
                                          "then B or I and W",
                                          k, i, phases.empty() ? "nothing" : "only '" + phases + "'"));
      }
    }
  }

  const std::string& path_;
  const ScheduleShape& shape_;
  std::vector<Line> lines_;
};

}  // namespace

Schedule parse_schedule(const std::string& text, const std::string& path, const ScheduleShape& shape) {
  return Reader(path, shape).read(text);
}

}  // namespace orrery
