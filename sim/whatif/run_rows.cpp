#include "sim/whatif/run_rows.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/sensible.h"

namespace orrery {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

// The ranks that take part in a transfer, as seen from a rank that logs it.
enum class Members : std::uint8_t {
  alone,
  next_stage,      // the stage of the rank that logs and the next one, to which it sends in forward
  previous_stage,  // the stage of the rank that logs and the previous one, from which it receives in forward
  data,            // all data ranks of the stage of the rank that logs
  ends,            // first and last stage of the pipeline of the rank that logs
  stages           // all stages of a data rank
};

struct RowKind {
  std::string_view op;       // name of the op in the log
  std::string_view counted;  // kind of op under which this op is counted; "": under its own name
  Members members = Members::alone;
  bool backwards = false;  // whether the transfer goes from a later stage to an earlier one
};

// Ops of Megatron-LM's training loop, by the names that programs derived from it give to their timers.
constexpr RowKind kRowKinds[] = {{"forward-send", "forward-pp-comm", Members::next_stage},
                                 {"forward-recv", "forward-pp-comm", Members::previous_stage},
                                 {"backward-send", "backward-pp-comm", Members::previous_stage, true},
                                 {"backward-recv", "backward-pp-comm", Members::next_stage, true},
                                 {"params-all-gather", "", Members::data},
                                 {"grads-reduce-scatter", "", Members::data},
                                 {"grads-all-reduce", "", Members::data},
                                 {"embedding-grads-all-reduce", "", Members::ends},
                                 {"optimizer-clip-main-grad", "", Members::stages},
                                 {"layernorm-grads-all-reduce", "", Members::alone}};

const RowKind* row_kind(std::string_view op) {
  const auto found =
      std::find_if(std::begin(kRowKinds), std::end(kRowKinds), [&](const auto& k) { return k.op == op; });
  return found == std::end(kRowKinds) ? nullptr : &*found;
}

bool is_transfer(std::string_view op) {
  return row_kind(op) != nullptr || op.find("all-reduce") != std::string_view::npos ||
         op.find("all-gather") != std::string_view::npos || op.find("reduce-scatter") != std::string_view::npos ||
         op.find("all-to-all") != std::string_view::npos;
}

}  // namespace

// Returns for each row a text that tells its transfer from the other ones of its kind between the same ranks in a step:
// the number that the log gives or, where it gives none, the micro-batch and the count of like ops that began before. A
// transfer between stages is counted without its chunk, because the rank that receives may log another chunk than the
// rank that sends.
std::vector<std::string> RunRows::sequences() const {
  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rows_[a].begin < rows_[b].begin; });
  std::vector<std::string> sequences(rows_.size());
  std::map<std::string, std::int64_t> seen;
  for (const std::size_t i : order) {
    const RunRow& row = rows_[i];
    const RowKind* kind = row_kind(row.op);
    if (kind == nullptr) continue;
    if (row.sequence >= 0) {
      sequences[i] = fmt::format("{}", row.sequence);
      continue;
    }
    const std::int64_t chunk = kind->members == Members::data ? row.chunk : -1;
    const std::int64_t count =
        seen[fmt::format("{} {} {} {} {} {}", row.step, row.op, row.worker, row.stage, chunk, row.micro_batch)]++;
    sequences[i] = fmt::format("{} of micro-batch {}", count, row.micro_batch);
  }
  return sequences;
}

std::int64_t RunRows::group_of(const RunRow& row, const std::string& sequence) {
  const RowKind* kind = row_kind(row.op);
  if (kind == nullptr || kind->members == Members::alone) return -1;
  // Both ranks of a transfer between stages must give it the same key, so the key has the earlier of the two stages.
  // The stages form a ring, since with several chunks on a rank the last stage sends to the first.
  const std::int64_t side =
      (row.stage + (kind->members == Members::previous_stage ? run_.stages - 1 : 0)) % run_.stages;
  const std::string_view name = kind->counted.empty() ? kind->op : kind->counted;
  std::string key;
  switch (kind->members) {
    case Members::data:
      key = fmt::format("{} {} s{} c{} {}", row.step, name, row.stage, row.chunk, sequence);
      break;
    case Members::ends:
    case Members::stages:
      key = fmt::format("{} {} d{} {}", row.step, name, row.worker, sequence);
      break;
    default:
      key = fmt::format("{} {} d{} s{} {}", row.step, name, row.worker, side, sequence);
  }
  return groups_.try_emplace(key, static_cast<std::int64_t>(groups_.size())).first->second;
}

void RunRows::add(const RunRow& row) {
  if (row.worker < 0 || row.worker > kMostRanks || row.stage < 0 || row.stage > kMostRanks)
    throw Error(fmt::format("rank {} of stage {} is none of a run", row.worker, row.stage));
  if (!is_printable(row.op)) throw Error("the name of an op is no printable text in UTF-8");
  if (!(row.time >= 0))
    throw Error(fmt::format("{} takes {} s", first_characters(row.op, sensible::kLongestWord), row.time));
  const auto worker = workers_.try_emplace(row.worker, static_cast<std::int32_t>(workers_.size())).first->second;
  if (static_cast<std::size_t>(worker) == run_.workers.size()) run_.workers.push_back(fmt::format("{}", row.worker));
  const std::int32_t lane = lanes_.try_emplace(row.lane, static_cast<std::int32_t>(lanes_.size())).first->second;
  const RowKind* kind = row_kind(row.op);
  const std::string_view counted = kind == nullptr || kind->counted.empty() ? row.op : kind->counted;
  const std::uint32_t op = run_.op(counted, is_transfer(row.op));
  run_.stages = std::max(run_.stages, static_cast<std::int32_t>(row.stage) + 1);
  run_.operations.push_back({worker, static_cast<std::int32_t>(row.stage), lane, row.step, op, op, -1, row.begin,
                             row.begin + row.time, row.op.ends_with("-send")});
  rows_.push_back(row);
}

std::string lane_of_op(std::string_view op) {
  const RowKind* kind = row_kind(op);
  const bool between_stages = kind != nullptr && !kind->counted.empty();
  return between_stages ? "between stages" : is_transfer(op) ? "collectives" : "compute";
}

void RunRows::tie_receives() {
  std::int64_t last_chunk = 0;
  for (const RunRow& row : rows_) last_chunk = std::max(last_chunk, row.chunk);
  struct Passes {
    std::vector<std::size_t> receives, computes;
  };
  std::map<std::string, Passes> passes;  // keys are texts of step, rank, stage and direction
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const RunRow& row = rows_[i];
    const bool forward = row.op.starts_with("forward-");
    if (!forward && !row.op.starts_with("backward-")) continue;
    // The forward pass on the model's first chunk receives nothing from another stage, and neither does the backward
    // pass on the model's last chunk.
    const bool begins = forward ? row.stage == 0 && row.chunk <= 0
                                : row.stage + 1 == run_.stages && (row.chunk < 0 || row.chunk == last_chunk);
    Passes& p = passes[fmt::format("{} {} {} {}", row.step, row.worker, row.stage, forward)];
    if (row.op.ends_with("-recv")) p.receives.push_back(i);
    if (row.op.ends_with("-compute") && !begins) p.computes.push_back(i);
  }
  const auto sooner = [&](std::size_t a, std::size_t b) { return run_.operations[a].begin < run_.operations[b].begin; };
  for (auto& [key, p] : passes) {
    if (p.receives.size() != p.computes.size()) continue;
    std::stable_sort(p.receives.begin(), p.receives.end(), sooner);
    std::stable_sort(p.computes.begin(), p.computes.end(), sooner);
    for (std::size_t i = 0; i < p.receives.size(); ++i) {
      run_.operations[p.receives[i]].aside = true;
      run_.operations[p.computes[i]].needs = static_cast<std::int64_t>(p.receives[i]);
    }
  }
}

void RunRows::check_ranks() const {
  std::set<std::int64_t> stages;
  for (const RunRow& row : rows_) stages.insert(row.stage);
  std::int64_t next = 0;
  for (const std::int64_t stage : stages) {
    if (stage != next)
      throw Error(fmt::format("stage {} has no rows, but stage {} has; give the rows of all stages", next, stage));
    ++next;
  }
  // Each rank takes part in the steps of a run. The check keeps tables of ranks and stages as small as the file.
  if (run_.workers.size() * stages.size() > rows_.size())
    throw Error(fmt::format("{} data ranks of {} stages have only {} rows; give the rows of every stage of every rank",
                            run_.workers.size(), stages.size(), rows_.size()));
}

MeasuredRun RunRows::take() {
  if (rows_.empty()) return {};
  check_ranks();
  tie_receives();
  const std::vector<std::string> numbers = sequences();
  for (std::size_t i = 0; i < rows_.size(); ++i) run_.operations[i].group = group_of(rows_[i], numbers[i]);
  run_.sort_workers();
  return std::move(run_);
}

}  // namespace orrery
