#include "viz/draw/scene_cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/version.h"
#include "viz/read/archive.h"
#include "viz/read/file_details.h"

namespace orrery {

// The fields() functions are outside the namespace below, because archives find them by the types of their arguments
// (argument-dependent lookup).
template <class A>
void fields(A& a, Counter& c) {
  a(c.name);
  a(c.series);
  a(c.times);
  a(c.values);
}

template <class A>
void fields(A& a, Process& p) {
  a(p.name);
  a(p.rank);
  a(p.ranks);
  a(p.shares_rank);
  a(p.members);
  a(p.coordinates);
  a(p.tracks);
  a(p.counters);
  a(p.capacity);
  a(p.reserved);
  a(p.order);
}

template <class A>
void fields(A& a, Track& t) {
  a(t.process);
  a(t.name);
  a(t.level);
  a(t.first);
  a(t.count);
}

template <class A>
void fields(A& a, Label& l) {
  a(l.name);
  a(l.kind);
  a(l.op_class);
  a(l.phase);
}

template <class A>
void fields(A& a, Timeline& t) {
  a(t.title);
  a(t.source);
  a(t.end);
  a(t.processes);
  a(t.tracks);
  a(t.labels);
  a(t.begins);
  a(t.ends);
  a(t.label);
  a(t.detail);
  a(t.places);
  a(t.arrows);
  a(t.phases);
  a(t.pass_of_batch);
  a(t.remarks);
  a(t.saved_view);
}

namespace {

namespace fs = std::filesystem;

// Version of the cache's file format: increase it when other fields are stored, or when reading a trace gives another
// timeline.
constexpr int kLayout = 9;
// smallest total size in bytes of the trace files of a scene that is worth caching
constexpr std::uintmax_t kWorthIt = 8'000'000;
constexpr std::uintmax_t kMost = std::uintmax_t{4} << 30;

std::string path_of(const std::string& key) {
  const std::string folder = cache_folder();
  if (folder.empty() || key.empty()) return "";
  // hash (FNV-1a) for the name of the cache file; the file holds the complete key
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : key) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{}/{:016x}.timeline", folder, h);
}

template <class A>
void transfer(A& a, Document& d, Prepared& p) {
  a(d.name);
  fields(a, d.timeline);
  a(p.pyramids);
  a(p.areas);
}

// Deletes the oldest files of the cache until their total size is below the limit.
void tidy(const std::string& folder) {
  struct Entry {
    fs::file_time_type time;
    fs::path path;
    std::uintmax_t bytes;
  };
  std::vector<Entry> entries;
  std::error_code error;
  std::uintmax_t all = 0;
  for (const auto& e : fs::directory_iterator(folder, error)) {
    if (e.path().extension() != ".timeline") continue;
    entries.push_back({e.last_write_time(error), e.path(), e.file_size(error)});
    all += entries.back().bytes;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (std::size_t i = 0; all > kMost && i < entries.size(); ++i) {
    fs::remove(entries[i].path, error);
    all -= entries[i].bytes;
  }
}

}  // namespace

std::string cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/orrery";
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/orrery" : std::string();
}

std::string cache_key(const std::vector<std::string>& files) {
  std::string key = fmt::format("orrery {} {}", kVersion, kLayout);
  std::error_code error;
  std::uintmax_t all = 0;
  for (const std::string& file : files) {
    const fs::path path = fs::canonical(file, error);
    const std::uintmax_t bytes = error ? 0 : fs::file_size(path, error);
    const fs::file_time_type time = error ? fs::file_time_type() : fs::last_write_time(path, error);
    if (error) return "";
    all += bytes;
    key += fmt::format("\n{} {} {}", path.string(), bytes, time.time_since_epoch().count());
  }
  return all < kWorthIt ? std::string() : key;
}

ArchivedScene read_archived_scene(ArchiveReader& reader) {
  ArchivedScene scene;
  reader(scene.key);
  transfer(reader, scene.document, scene.prepared);
  return scene;
}

std::shared_ptr<const Scene> scene_from_cache(const std::string& key, const std::vector<std::string>& files) {
  const std::string path = path_of(key);
  std::error_code error;
  if (path.empty() || !fs::is_regular_file(path, error)) return nullptr;
  try {
    ArchiveReader reader(path);
    ArchivedScene scene = read_archived_scene(reader);
    if (scene.key != key) throw BrokenArchive{};
    scene.document.cache_key = key;
    for (const std::string& file : files)
      scene.document.timeline.sources.push_back(std::make_shared<FileDetails>(file));
    return std::make_shared<const Scene>(std::move(scene.document), 1,
                                         std::make_shared<const Prepared>(std::move(scene.prepared)));
  } catch (const BrokenArchive&) {
    fs::remove(path, error);
    return nullptr;
  }
}

void put_in_cache(const Scene& scene) {
  std::string key = scene.document.cache_key;
  const std::string path = path_of(key);
  std::error_code error;
  if (path.empty() || fs::exists(path, error)) return;
  fs::create_directories(cache_folder(), error);
  try {
    ArchiveWriter writer(path);
    writer(key);
    Document d = scene.document;  // a copy of a document shares the columns of events with it
    Prepared prepared = *scene.prepared;
    transfer(writer, d, prepared);
    writer.commit();
    tidy(cache_folder());
  } catch (const Error&) {  // the scene is not cached: the disk is full or may not be written
  }
}

}  // namespace orrery
