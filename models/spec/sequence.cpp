#include "models/spec/sequence.h"

#include <algorithm>

#include <fmt/format.h>

namespace orrery {
namespace {

double as_double(std::int64_t x) { return static_cast<double>(x); }

// Returns the sequence positions of `count` rows from row `first` on. parts: ranges of positions, whose rows are
// numbered through all ranges in the order of the list.
std::vector<SequencePart> rows_of(const std::vector<SequencePart>& parts, std::int64_t first, std::int64_t count) {
  std::vector<SequencePart> result;
  std::int64_t row = 0;
  for (const SequencePart& p : parts) {
    const std::int64_t begin = std::max(first, row), end = std::min(first + count, row + p.count);
    if (begin < end) result.push_back({p.first + begin - row, end - begin});
    row += p.count;
  }
  return result;
}

// Returns the number of query-key pairs in which a position of q comes at least `shift` after a position of k: the
// integral over positions x of q of min(max(x - shift - k.first, 0), k.count).
double pairs_before(const SequencePart& q, const SequencePart& k, std::int64_t shift) {
  const auto to = [&](std::int64_t x) {  // number of these query-key pairs whose query is at a position below x
    const double a = std::max(as_double(x - shift - k.first), 0.0),
                 b = std::max(as_double(x - shift - k.first - k.count), 0.0);
    return (a * a - b * b) / 2;
  };
  return to(q.first + q.count) - to(q.first);
}

}  // namespace

std::vector<SequencePart> block_parts(const Strategy& s, std::int64_t sequence, std::int64_t block) {
  const std::int64_t n = s.context_ring;
  if (n == 1 || !s.context_zigzag) return {{block * (sequence / n), sequence / n}};
  const std::int64_t half = sequence / (2 * n);
  return {{block * half, half}, {(2 * n - 1 - block) * half, half}};
}

std::vector<SequencePart> rank_parts(const Strategy& s, std::int64_t sequence, std::int64_t context_rank) {
  const std::int64_t rows = sequence / s.context;
  return rows_of(block_parts(s, sequence, context_rank / s.context_ulysses), context_rank % s.context_ulysses * rows,
                 rows);
}

std::string broken_cut(const Strategy& s, const Model& m, std::int64_t sequence) {
  const std::int64_t ring = s.context_ring, ulysses = s.context_ulysses;
  const std::int64_t heads = m.heads / s.tensor;
  const std::int64_t kv = m.mla ? heads : std::max<std::int64_t>(1, m.kv_heads / s.tensor);
  if (ring * ulysses != s.context)
    return fmt::format("context: {} is not ring * ulysses = {} * {}", s.context, ring, ulysses);
  if (heads % ulysses != 0)
    return fmt::format("context: ulysses {} does not divide heads / tensor: {}", ulysses, heads);
  if (kv % ulysses != 0 && ulysses % kv != 0)
    return fmt::format("context: ulysses {} and kv_heads / tensor: {}: neither divides the other", ulysses, kv);
  if (ring > 1 && s.context_zigzag && sequence % (2 * ring) != 0)
    return fmt::format("context: zigzag order cuts the sequence: {} in {} parts; choose context_order: contiguous",
                       sequence, 2 * ring);
  return "";
}

double visible_pairs(const std::vector<SequencePart>& queries, const std::vector<SequencePart>& keys,
                     std::int64_t window) {
  double sum = 0;
  for (const SequencePart& q : queries) {
    for (const SequencePart& k : keys) sum += pairs_before(q, k, 0) - (window > 0 ? pairs_before(q, k, window) : 0);
  }
  return sum;
}

double pairs_of_block(const Strategy& s, std::int64_t sequence, std::int64_t block, std::int64_t hops,
                      std::int64_t window) {
  const std::vector<SequencePart> queries = block_parts(s, sequence, block);
  if (s.context_kind == "allgather") return visible_pairs(queries, {{0, sequence}}, window);
  const std::int64_t from = (block - hops + s.context_ring) % s.context_ring;
  return visible_pairs(queries, block_parts(s, sequence, from), window);
}

bool blocks_are_alike(const Strategy& s, std::int64_t sequence, std::int64_t window) {
  // In zigzag order with n blocks, each of two halves of h tokens, a block has, counted exactly, 2 h^2 + h pairs with
  // its own keys and 2 h^2 with the keys of any other block. If all keys are gathered, every block has equally many
  // pairs too, because the indices of a block's two halves always sum to 2 n - 1.
  if (window == 0 && s.context_zigzag) return true;
  for (std::int64_t hops = 0; hops < s.context_ring; ++hops) {
    const double first = pairs_of_block(s, sequence, 0, hops, window);
    for (std::int64_t b = 1; b < s.context_ring; ++b) {
      if (pairs_of_block(s, sequence, b, hops, window) != first) return false;
    }
  }
  return true;
}

}  // namespace orrery
