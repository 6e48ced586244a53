#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A key that a map of the spec may have, with its meaning and an example. The reader rejects every key that is not
// listed, and docs/reference.md prints the listed ones. values: the words that the key accepts, or a name for its type;
// "" for a plain value, whose type and default the reader knows. otherwise: the default in words, if it depends on
// other keys.
struct SpecKey {
  std::string_view name, meaning, example, values = "", otherwise = "";
};

// The maps of a spec and the types of keys, recorded as the reader reads them. Keys and maps are named by their path,
// such as "strategy.overlap".
struct SpecKeyBook {
  struct Map {
    std::string path;
    std::span<const SpecKey> keys;
    // the key that gets the value if a spec gives a single word in place of the map (`cluster: NAME` means `cluster:
    // {node: NAME}`); "" if the map has no such short form
    std::string_view short_key;
  };
  // all maps (nested groups of keys in YAML) that a spec may contain, in the order in which the reader reads them
  std::vector<Map> maps;
  std::map<std::string, std::string> types;  // for each key (by its path), the name of its type
};

// A key as docs/reference.md prints it: {"strategy.bucket_MiB", "number", "MiB", "the stack's", "gradients in a bucket;
// ...", "25"}. short_key: for a map in whose place a spec may give a single word, the key that gets the word (`cluster:
// NAME` means `cluster: {node: NAME}`).
struct KeyReference {
  std::string key, type, unit, otherwise, meaning, example, short_key;
};

// Returns all keys of a spec, in the order in which a spec is written. They come from the parser itself: it parses
// short specs that contain all maps, and records the keys that it accepts, their types, and the defaults of absent
// keys.
std::vector<KeyReference> spec_reference();

// Returns the built-in names that a key of the spec accepts, such as the names of schedules; empty if the key accepts
// no names.
std::vector<std::string> names_at(std::string_view key);

}  // namespace orrery
