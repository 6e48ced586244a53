#include "sim/cli/completion.h"

#include <algorithm>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/load/reference.h"

namespace orrery {
namespace {

constexpr std::string_view kBetween = " | ";

bool is_word(std::string_view text) { return !text.empty() && text.find_first_of(" {}'\"") == std::string_view::npos; }

// The words in the type of a spec's key, such as "none | selective | full | list of parts". Alternatives such as "list
// of parts", names and paths are not words that a shell could offer.
std::vector<std::string> words_of(const KeyReference& key) {
  if (key.type == "true or false") return {"true", "false"};
  if (key.type.find(kBetween) == std::string::npos) return names_at(key.key);
  std::vector<std::string> words = names_at(key.key);
  for (std::size_t start = 0; start <= key.type.size();) {
    const std::size_t end = std::min(key.type.find(kBetween, start), key.type.size());
    std::string part = key.type.substr(start, end - start);
    // The type of a key may be a list, such as "list of attention | recurrence"; the words to offer come after "list
    // of".
    for (const std::string_view opening : {"one or a list of ", "list of "}) {
      if (part.starts_with(opening) && part != "list of parts") part.erase(0, opening.size());
    }
    if (is_word(part) && part != "name" && part != "path" && part != "map" && part != "number") words.push_back(part);
    start = end + kBetween.size();
  }
  return words;
}

struct Shell {
  std::string_view name;
  std::string (*script)(const CommandEntry&, const std::vector<CompletedKey>&);
};
constexpr Shell kShells[] = {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

}  // namespace

std::vector<CompletedKey> completed_keys() {
  std::vector<CompletedKey> keys;
  for (const KeyReference& k : spec_reference()) keys.push_back({k.key, words_of(k)});
  return keys;
}

std::string completion(std::string_view shell, const CommandEntry& program) {
  std::vector<std::string_view> names;
  for (const Shell& s : kShells) {
    if (s.name == shell) return s.script(program, completed_keys());
    names.push_back(s.name);
  }
  throw Error(unknown_name("shell", shell, names));
}

}  // namespace orrery
