#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// Returns the lengths, in tokens, of the documents that fill a sample, end to end; the last one is cut where the sample
// ends. The same seed and sample give the same documents on every machine. sample: number of the sample within its
// step; every step has the same documents.
std::vector<std::int64_t> documents_of(const Spec& spec, std::int64_t sample);

// Returns the number of pairs of a query and a key that it attends to in one head of a document of `length` tokens,
// counted exactly: a query attends to its own token and those before it, to at most `window` of them (0: all).
double pairs_of_document(double length, std::int64_t window);

// The number of query-key pairs in one head of a sample. mean: the mean over all samples of a step. busiest: the mean
// over the samples of the data rank that has the most pairs, for which all other data ranks wait. continuum: pairs are
// counted as in sequence.h (l^2 / 2 for a whole document of l tokens).
struct DocumentPairs {
  double mean = 0, busiest = 0;
};
DocumentPairs document_pairs(const Spec& spec, std::int64_t window, bool continuum);

}  // namespace orrery
