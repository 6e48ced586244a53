#pragma once

#include <memory>
#include <string>
#include <vector>

#include "viz/draw/scene.h"

namespace orrery {

class ArchiveReader;

// Large traces as they were read, in files that are mapped when the trace is opened again: in orrery/ of the user's
// cache folder (XDG_CACHE_HOME, else ~/.cache), one for each list of trace files. What is broken is as if it were not
// there. The oldest go when all together take more than 4 GiB.

// What a cache file is of: paths, sizes, times of the last change, and the version of the program. To be taken before
// the files are read. "" for what is not worth it: less than 8 MB together.
std::string cache_key(const std::vector<std::string>& files);

// nullptr where it is not in the cache.
std::shared_ptr<const Scene> scene_from_cache(const std::string& key, const std::vector<std::string>& files);

// By its document's key, if it has one. What cannot be written is left: a cache is no result.
void put_in_cache(const Scene& scene);

// What a cache file holds. Throws BrokenArchive for what put_in_cache did not write.
struct ArchivedScene {
  std::string key;
  Document document;
  Prepared prepared;
};
ArchivedScene read_archived_scene(ArchiveReader& reader);

std::string cache_folder();  // "" where there is neither a cache nor a home folder

}  // namespace orrery
