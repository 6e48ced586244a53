#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "models/base/error.h"

namespace orrery::fuzz {
namespace {

constexpr std::size_t kLongestLine = 2000;
// Words in messages of the parsing libraries and of the language's exceptions, which must not reach users.
constexpr std::string_view kForeignWords[] = {
    "json.exception", "yaml-cpp", "bad conversion", "std::",     "basic_string",
    "vector::",       "stoi",     "stod",           "bad_alloc", "regex"};

void check_line(std::string_view line, std::string_view bytes) {
  const bool control = std::any_of(line.begin(), line.end(), [](unsigned char c) { return c < 32; });
  bool foreign = false;
  for (const std::string_view word : kForeignWords) {
    const bool quoted = bytes.find(word) != std::string_view::npos;
    foreign = foreign || (line.find(word) != std::string_view::npos && !quoted);
  }
  if (!control && !foreign && !line.empty() && line.size() <= kLongestLine) return;
  std::fprintf(stderr, "no message for a user: %.*s\n", static_cast<int>(std::min(line.size(), kLongestLine)),
               line.data());
  std::abort();
}

}  // namespace

void take(std::string_view bytes, void (*work)(std::string_view bytes)) {
  try {
    work(bytes);
  } catch (const Error& e) {
    check_line(e.what(), bytes);
  }
}

}  // namespace orrery::fuzz
