#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/spec/sequence.h"

namespace orrery {

// The training text of a run, in which every byte is a token. A sample is a window of `sequence` tokens; its labels are
// the tokens one position later. Samples follow each other through the text, which begins again at its end. If the
// vocabulary has fewer than 256 tokens, a token is the byte modulo the size of the vocabulary.
class Text {
 public:
  Text(std::string bytes, std::int64_t vocabulary) : bytes_(std::move(bytes)), vocabulary_(vocabulary) {}

  // Copies a part of the tokens of sample number `sample` of a run, shifted by `ahead` tokens in the text: labels are
  // shifted by one.
  void copy(std::int64_t sample, std::int64_t sequence, SequencePart part, std::int64_t ahead, std::int64_t* to) const;

 private:
  std::string bytes_;
  std::int64_t vocabulary_;
};

// checked_text() and read_text() throw Error if the text is shorter than one sample, or if the file cannot be read.
Text checked_text(std::string bytes, std::int64_t vocabulary, std::int64_t sequence, const std::string& name = "text");
Text read_text(const std::string& path, std::int64_t vocabulary, std::int64_t sequence);

}  // namespace orrery
