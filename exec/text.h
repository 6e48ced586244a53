#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

// The text a run trains on, as bytes. A sample is a window of `sequence` tokens and the ones that follow them; samples
// follow each other through the text and begin again at its end. A vocabulary smaller than 256 folds the bytes.
class Text {
 public:
  Text(std::string bytes, std::int64_t vocabulary) : bytes_(std::move(bytes)), vocabulary_(vocabulary) {}

  // tokens or, shifted by one, labels of sample number `sample` of a run.
  void copy(std::int64_t sample, std::int64_t sequence, bool labels, std::int64_t* to) const;

 private:
  std::string bytes_;
  std::int64_t vocabulary_;
};

// The text in the repository, or any file; throws Error when it cannot be read or is shorter than a sample.
Text read_text(const std::string& path, std::int64_t vocabulary, std::int64_t sequence);

}  // namespace orrery
