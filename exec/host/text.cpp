#include "exec/host/text.h"

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/input_file.h"

namespace orrery {

void Text::copy(std::int64_t sample, std::int64_t sequence, SequencePart part, std::int64_t ahead,
                std::int64_t* to) const {
  const auto size = static_cast<std::int64_t>(bytes_.size());
  const std::int64_t first = sample * sequence % (size - sequence) + part.first;
  for (std::int64_t i = 0; i < part.count; ++i)
    to[i] = static_cast<unsigned char>(bytes_[(first + i + ahead) % size]) % vocabulary_;
}

Text checked_text(std::string bytes, std::int64_t vocabulary, std::int64_t sequence, const std::string& name) {
  if (static_cast<std::int64_t>(bytes.size()) <= sequence + 1) {
    throw Error(fmt::format("{}: {} bytes are too few for a sequence of {}", name, bytes.size(), sequence));
  }
  return {std::move(bytes), vocabulary};
}

Text read_text(const std::string& path, std::int64_t vocabulary, std::int64_t sequence) {
  return checked_text(read_input(path, kMostTrainingText), vocabulary, sequence, path);
}

}  // namespace orrery
