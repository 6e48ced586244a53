#include "exec/text.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "models/error.h"

namespace orrery {

void Text::copy(std::int64_t sample, std::int64_t sequence, bool labels, std::int64_t* to) const {
  const auto size = static_cast<std::int64_t>(bytes_.size());
  const std::int64_t first = sample * sequence % (size - sequence);
  for (std::int64_t i = 0; i < sequence; ++i)
    to[i] = static_cast<unsigned char>(bytes_[first + i + (labels ? 1 : 0)]) % vocabulary_;
}

Text read_text(const std::string& path, std::int64_t vocabulary, std::int64_t sequence) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open()) throw Error(fmt::format("{}: cannot be read; name a text file to train on", path));
  if (static_cast<std::int64_t>(bytes.size()) <= sequence + 1) {
    throw Error(fmt::format("{}: {} bytes are too few for a sequence of {}", path, bytes.size(), sequence));
  }
  return {std::move(bytes), vocabulary};
}

}  // namespace orrery
