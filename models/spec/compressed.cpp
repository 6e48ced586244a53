#include "models/spec/compressed.h"

#include <algorithm>

#include "models/spec/documents.h"

namespace orrery {

// Token number t, counted from 1, attends to min(most, floor(t / rate)) compressed keys. So `rate` tokens attend to 1
// key, `rate` tokens to 2, and so on below the maximum; the maximum holds from the token that completes the last of
// these keys to the end of the sequence.
double compressed_pairs(std::int64_t sequence, std::int64_t rate, std::int64_t most) {
  const std::int64_t all = sequence / rate, seen = most > 0 ? std::min(most, all) : all;
  const auto keys = static_cast<double>(seen);
  return static_cast<double>(rate) * keys * (keys - 1) / 2 + keys * static_cast<double>(sequence - seen * rate + 1);
}

double attended_pairs(const Model& m, Mixer mixer, std::int64_t sequence) {
  const CompressedAttention& a = *m.compressed_attention;
  const double window = pairs_of_document(static_cast<double>(sequence), a.window);
  const std::int64_t rate = a.rate(mixer);
  if (rate == 0) return window;
  return window + compressed_pairs(sequence, rate, mixer == Mixer::compressed_sparse ? m.indexer->top_k : 0);
}

double indexed_pairs(const Model& m, Mixer mixer, std::int64_t sequence) {
  if (mixer != Mixer::compressed_sparse) return 0;
  return compressed_pairs(sequence, m.compressed_attention->sparse_rate, 0);
}

}  // namespace orrery
