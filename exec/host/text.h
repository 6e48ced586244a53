#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/spec/sequence.h"

namespace orrery {

// The text a run trains on, as bytes. A sample is a window of `sequence` tokens and the ones that follow them; samples
// follow each other through the text and begin again at its end. A vocabulary smaller than 256 folds the bytes.
class Text {
 public:
  Text(std::string bytes, std::int64_t vocabulary) : bytes_(std::move(bytes)), vocabulary_(vocabulary) {}

  // A part of the tokens of sample number `sample` of a run, or those so many places `ahead` in the text: labels are
  // one.
  void copy(std::int64_t sample, std::int64_t sequence, SequencePart part, std::int64_t ahead, std::int64_t* to) const;

 private:
  std::string bytes_;
  std::int64_t vocabulary_;
};

// Throw Error when the text is shorter than a sample, or the file cannot be read.
Text checked_text(std::string bytes, std::int64_t vocabulary, std::int64_t sequence, const std::string& name = "text");
Text read_text(const std::string& path, std::int64_t vocabulary, std::int64_t sequence);

}  // namespace orrery
