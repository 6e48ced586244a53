#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// The lengths of the documents that fill a sample, end to end; the last one is cut where the sample ends. The same seed
// and sample give the same documents on every machine. Samples are numbered within a step, whose documents every step
// repeats.
std::vector<std::int64_t> documents_of(const Spec& spec, std::int64_t sample);

// Pairs of a query and a key that it attends to in one head of a document of `length` tokens, counted exactly: its own
// token and those before, at most `window` of them (0: all).
double pairs_of_document(double length, std::int64_t window);

// Pairs in one head of a sample: the mean over a step's samples, and the mean over those of the data rank that has the
// most, which all others wait for. continuum: pairs are counted as in sequence.h (l^2 / 2 for a whole document).
struct DocumentPairs {
  double mean = 0, busiest = 0;
};
DocumentPairs document_pairs(const Spec& spec, std::int64_t window, bool continuum);

}  // namespace orrery
