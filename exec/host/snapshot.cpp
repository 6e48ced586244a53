#include "exec/host/snapshot.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/output_file.h"
#include "models/layers/blocks.h"
#include "models/trace/trace_file.h"

namespace orrery {
namespace {

constexpr StateSlot kKept[] = {kParameterShard, kMaster, kMoment1, kMoment2};

Bytes bytes_of(const Rank& rank, std::uint32_t state, std::uint16_t slot) {
  return rank.plan.blocks[rank.plan.frames[state].block].buffers[slot].bytes;
}

// Calls f(frame, buffer, bytes) for each buffer of weights or optimizer states that a parameter server keeps. frame: id
// of the set of buffers with the states of a chunk of layers; buffer: index of the buffer in this set; bytes: size of
// the buffer.
template <class F>
void for_states(const Rank& rank, const F& f) {
  if (!rank.plan.classes.front().server) return;
  for (const std::uint32_t state : rank.states) {
    for (const StateSlot slot : kKept) {
      if (const Bytes bytes = bytes_of(rank, state, slot); bytes > 0) f(state, slot, bytes);
    }
  }
}

}  // namespace

void write_snapshot(const std::string& folder, const Rank& rank, const Buffers& buffers, std::int64_t step,
                    std::int64_t every, const std::vector<double>& losses) {
  OutputFile file(snapshot_file(folder, rank.number, step));
  const auto count = static_cast<std::int64_t>(losses.size());
  const auto write = [&](const void* data, std::size_t bytes) { file.write({static_cast<const char*>(data), bytes}); };
  write(&count, sizeof count);
  write(losses.data(), losses.size() * sizeof(double));
  for_states(rank, [&](std::uint32_t state, std::uint16_t slot, Bytes bytes) {
    write(buffers.state(state, slot), static_cast<std::size_t>(bytes));
  });
  file.commit();
  std::filesystem::remove(snapshot_file(folder, rank.number, step - 2 * every));
}

std::vector<double> parse_snapshot(std::string_view all, const std::string& path, const Rank& rank, Buffers& buffers,
                                   std::int64_t step) {
  const auto read = [&](void* to, std::size_t bytes) {
    if (all.size() < bytes) throw Error(fmt::format("{}: it is shorter than this rank's states", path));
    std::copy_n(all.data(), bytes, static_cast<char*>(to));
    all.remove_prefix(bytes);
  };
  std::int64_t count = 0;
  read(&count, sizeof count);
  if (count < 0 || count > step) throw Error(fmt::format("{}: it has {} losses of {} steps", path, count, step));
  if (all.size() / sizeof(double) < static_cast<std::size_t>(count))
    throw Error(fmt::format("{}: it is shorter than its losses", path));
  std::vector<double> losses(static_cast<std::size_t>(count));
  read(losses.data(), losses.size() * sizeof(double));
  for_states(rank, [&](std::uint32_t state, std::uint16_t slot, Bytes bytes) {
    buffers.hold_state(state, slot);
    read(buffers.state(state, slot), static_cast<std::size_t>(bytes));
  });
  if (!all.empty()) throw Error(fmt::format("{}: it is longer than this rank's states", path));
  return losses;
}

std::vector<double> read_snapshot(const std::string& folder, const Rank& rank, Buffers& buffers, std::int64_t step) {
  const std::string path = snapshot_file(folder, rank.number, step);
  Bytes most = static_cast<Bytes>(sizeof(std::int64_t) + sizeof(double) * static_cast<std::size_t>(step));
  for_states(rank, [&](std::uint32_t, std::uint16_t, Bytes bytes) { most += bytes; });
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > static_cast<std::uintmax_t>(most))
    throw Error(fmt::format("{}: it is longer than this rank's states", path));
  std::ifstream in(path, std::ios::binary);
  std::string all(error ? 0 : size, '\0');
  in.read(all.data(), static_cast<std::streamsize>(all.size()));
  all.resize(static_cast<std::size_t>(in.gcount()));
  return parse_snapshot(all, path, rank, buffers, step);
}

}  // namespace orrery
