#pragma once

#include <memory>
#include <string>
#include <vector>

#include "viz/draw/scene.h"

namespace orrery {

class ArchiveReader;

// A cache of large traces, in files that hold the viewer's own data structures and are mapped when the trace is opened
// again. The files are in orrery/ of the user's cache folder (XDG_CACHE_HOME, else ~/.cache), one for each list of
// trace files. A damaged file counts as missing. The oldest files are deleted when all together take more than 4 GiB.

// Computes the key of a cache file from the paths, sizes and modification times of the trace files and from the
// program's version. Call this before the files are read. Returns "" for files of less than 8 MB together, which are
// not worth caching.
std::string cache_key(const std::vector<std::string>& files);

// Reads a scene (an opened trace with the data for drawing it) from the cache; nullptr if it is not there.
std::shared_ptr<const Scene> scene_from_cache(const std::string& key, const std::vector<std::string>& files);

// Stores a scene (an opened trace with the data for drawing it) in the cache, if its trace has a cache key. Write
// errors are ignored, because the cache is optional.
void put_in_cache(const Scene& scene);

// The content of a cache file. read_archived_scene() throws BrokenArchive for a file that put_in_cache() did not write.
struct ArchivedScene {
  std::string key;
  Document document;
  Prepared prepared;
};
ArchivedScene read_archived_scene(ArchiveReader& reader);

std::string cache_folder();  // path of the folder; "" if there is neither a cache nor a home folder

}  // namespace orrery
