#include "models/turns.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "models/error.h"

namespace orrery {
namespace {

struct Key {
  std::int32_t boundary, micro_batch;
  bool forward;
  auto operator<=>(const Key&) const = default;
};

// When each end came to a transfer; it happens at the later of the two.
struct Meeting {
  std::int64_t send = -1, receive = -1;
  bool done() const { return send >= 0 && receive >= 0; }
  std::int64_t time() const { return std::max(send, receive); }
};

class Replay {
 public:
  explicit Replay(const Schedule& schedule) : schedule_(schedule), last_(static_cast<std::int32_t>(schedule.stage_of.size()) - 1) {
    virtual_stage_.resize(schedule.order.size());
    for (std::int32_t k = 0; k <= last_; ++k) {
      auto& row = virtual_stage_[schedule.stage_of[k]];
      row.resize(std::max<std::size_t>(row.size(), schedule.chunk_of[k] + 1));
      row[schedule.chunk_of[k]] = k;
    }
    for (std::size_t s = 0; s < schedule.order.size(); ++s) {
      turns_.emplace_back();
      for (std::size_t i = 0; i <= schedule.order[s].size(); ++i) turns_[s].push_back(crossings_before(s, i));
    }
  }

  Turns run() {
    std::vector<Cursor> cursors(turns_.size());
    for (std::size_t s = 0; s < cursors.size(); ++s) arrive(s, 0, 0);
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::size_t s = 0; s < cursors.size(); ++s) {
        while (advance(s, cursors[s])) progress = true;
      }
    }
    for (std::size_t s = 0; s < cursors.size(); ++s) require_finished(s, cursors[s].action);
    for (auto& stage : turns_) {
      for (auto& turn : stage) sort_turn(turn);
    }
    return turns_;
  }

 private:
  // Where a stage stands: the next action to run and the last turn whose transfers it has posted.
  struct Cursor {
    std::size_t action = 0, posted = 0;
    std::int64_t clock = 0;
  };

  // Runs the next action once its receives have come, or posts the next turn once the transfers before it are through.
  bool advance(std::size_t s, Cursor& cursor) {
    const auto& order = schedule_.order[s];
    if (cursor.action < order.size() && cursor.posted == cursor.action && met(s, cursor.action, false)) {
      const std::int64_t length = order[cursor.action].phase == Phase::forward ? 1 : 2;
      cursor.clock = std::max(cursor.clock, time_of(s, cursor.action, false)) + length;
      ++cursor.action;
      return true;
    }
    if (cursor.posted < cursor.action && met(s, cursor.posted, true)) {
      cursor.clock = std::max(cursor.clock, time_of(s, cursor.posted, true));
      arrive(s, ++cursor.posted, cursor.clock);
      return true;
    }
    return false;
  }

  // Sends of action i - 1, then receives of action i.
  std::vector<Crossing> crossings_before(std::size_t s, std::size_t i) const {
    std::vector<Crossing> crossings;
    const auto& order = schedule_.order[s];
    if (i > 0) {
      const Action& a = order[i - 1];
      const std::int32_t k = virtual_stage_[s][a.chunk];
      if (a.phase == Phase::forward && k < last_) crossings.push_back({k, a.micro_batch, true, true});
      if (a.phase != Phase::forward && a.phase != Phase::weight_gradient && k > 0) crossings.push_back({k - 1, a.micro_batch, false, true});
    }
    if (i < order.size()) {
      const Action& a = order[i];
      const std::int32_t k = virtual_stage_[s][a.chunk];
      if (a.phase == Phase::forward && k > 0) crossings.push_back({k - 1, a.micro_batch, true, false});
      if (a.phase != Phase::forward && a.phase != Phase::weight_gradient && k < last_) crossings.push_back({k, a.micro_batch, false, false});
    }
    return crossings;
  }

  void arrive(std::size_t s, std::size_t i, std::int64_t time) {
    for (const Crossing& crossing : turns_[s][i]) {
      Meeting& meeting = meetings_[{crossing.boundary, crossing.micro_batch, crossing.forward}];
      (crossing.send ? meeting.send : meeting.receive) = time;
    }
  }

  // An action needs only what it receives; the turn after it waits for the sends too.
  bool met(std::size_t s, std::size_t i, bool sends) const {
    return std::all_of(turns_[s][i].begin(), turns_[s][i].end(),
                       [&](const Crossing& h) { return (h.send && !sends) || meeting_of(h).done(); });
  }
  std::int64_t time_of(std::size_t s, std::size_t i, bool sends) const {
    std::int64_t time = 0;
    for (const Crossing& h : turns_[s][i]) {
      if (sends || !h.send) time = std::max(time, meeting_of(h).time());
    }
    return time;
  }
  const Meeting& meeting_of(const Crossing& h) const { return meetings_.at({h.boundary, h.micro_batch, h.forward}); }

  void require_finished(std::size_t s, std::size_t i) const {
    if (i == schedule_.order[s].size()) return;
    const Action& a = schedule_.order[s][i];
    throw Error(fmt::format("schedule: deadlock: stage {} waits for ever before {}{} of chunk {}", s,
                            a.phase == Phase::forward ? "F" : "B", a.micro_batch, a.chunk));
  }

  void sort_turn(std::vector<Crossing>& turn) const {
    std::stable_sort(turn.begin(), turn.end(),
                     [&](const Crossing& a, const Crossing& b) { return meeting_of(a).time() < meeting_of(b).time(); });
    for (std::size_t i = 1; i < turn.size(); ++i) {
      turn[i].joins_previous = meeting_of(turn[i]).time() == meeting_of(turn[i - 1]).time();
    }
  }

  const Schedule& schedule_;
  std::int32_t last_;
  std::vector<std::vector<std::int32_t>> virtual_stage_;
  Turns turns_;
  std::map<Key, Meeting> meetings_;
};

}  // namespace

Turns order_transfers(const Schedule& schedule) { return Replay(schedule).run(); }

}  // namespace orrery
