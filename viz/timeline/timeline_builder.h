#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// Collects events in any order and builds a Timeline: events grouped by thread, sorted by time, overlapping events on
// rows below each other. Columns are reserved once, and their elements are moved to their final indices in the order of
// arrival, so that memory is accessed sequentially; ten million events take little more memory than the finished
// timeline.
class TimelineBuilder {
 public:
  struct Event {
    Picoseconds begin = 0, end = 0;
    std::uint32_t thread = 0, label = 0;
    std::uint64_t detail = 0;
  };

  void reserve(std::size_t events);  // reserves address space for events, but no memory
  std::uint32_t add_process(Process process);
  Process& process(std::uint32_t p) { return timeline_.processes[p]; }
  std::uint32_t add_thread(std::uint32_t process, std::string name, std::int64_t order);
  void name_thread(std::uint32_t thread, std::string name) { threads_[thread].name = std::move(name); }
  void order_thread(std::uint32_t thread, std::int64_t order) { threads_[thread].order = order; }
  // Shows a thread below another one of its process that was added before it, with that one's name and more.
  void put_below(std::uint32_t thread, std::uint32_t other, const std::string& more) {
    threads_[thread].name = threads_[other].name + more;
    threads_[thread].order = threads_[other].order;
  }
  std::uint32_t label(std::string_view name, Kind kind, KernelClass op_class = KernelClass::other,
                      std::int8_t phase = kNoPhase);
  void add(const Event& event);
  void add(const Event& event, OpInstance place);
  // Adds an arrow, whose from_track and to_track are numbers of threads; finish() replaces them by numbers of tracks.
  void add_arrow(const Arrow& arrow) { timeline_.arrows.push_back(arrow); }
  // Adds a source of events' details, and returns the high bits of the keys under which the source's details are found.
  std::uint64_t add_source(std::shared_ptr<DetailSource> source);
  std::size_t events() const { return begins_.size(); }
  Event event(std::size_t i) const { return {begins_[i], ends_[i], thread_[i], label_[i], detail_[i]}; }
  // Shifts the events [first, last), and the counters of their processes, by the time `by`.
  void shift(std::size_t first, std::size_t last, Picoseconds by);
  Timeline& timeline() { return timeline_; }  // access for setting title, remarks and processes

  // zero: the time that becomes time 0 of the timeline, by default the begin of the first event.
  Timeline finish(std::optional<Picoseconds> zero = std::nullopt);

 private:
  struct Thread {
    std::uint32_t process = 0;
    std::string name;
    std::int64_t order = 0;
  };
  std::vector<std::vector<EventId>> out_of_order() const;
  void lay_out(const std::vector<std::vector<EventId>>& sorted);
  void make_tracks();
  void drop_empty_processes();
  void find_places(const std::vector<std::vector<EventId>>& sorted);
  void move_columns();
  void finish_arrows();
  void shift_all(Picoseconds by);

  Timeline timeline_;
  std::vector<Thread> threads_;
  // Maps a hash to the indices of the labels that have it. Nothing iterates over this hash map, whose order is not
  // defined.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> label_index_;
  std::vector<Picoseconds> begins_, ends_;
  // thread_ holds each event's thread; finish() reuses it for the event's row and then for the event's final index.
  std::vector<std::uint32_t> thread_, label_;
  std::vector<std::uint64_t> detail_;
  std::vector<OpInstance> places_;
  struct RowEnd {
    Picoseconds end = 0;
    EventId count = 0;
  };
  std::vector<std::vector<RowEnd>> rows_;   // for each thread and each of its rows, the end of the row's last event
  std::vector<std::uint32_t> first_track_;  // for each thread, the index of its first track
};

}  // namespace orrery
