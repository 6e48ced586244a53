#include "viz/read/archive.h"

#include <string>

#include "tests/fuzz/fuzz.h"
#include "viz/draw/scene_cache.h"

// The checksum at the end is corrected, so that the data before it is read.
void orrery::fuzz::read_archive(std::string_view bytes) {
  const auto archive = std::make_shared<std::string>(bytes);
  const std::uint64_t sum = archive_sum(*archive);
  archive->append(reinterpret_cast<const char*>(&sum), sizeof sum);
  try {
    ArchiveReader reader(archive, *archive);
    read_archived_scene(reader);
  } catch (const BrokenArchive&) {
  }
}
