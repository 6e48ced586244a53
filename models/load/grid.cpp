// This file has the rules of tensor parallelism on a grid of ranks (2d, 2.5d, 3d).
#include "models/load/reader.h"

namespace orrery {

Broken grid_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Model& m = spec.model;
  const std::int64_t q = grid_side(s);
  if (q == 0)
    return broken("tensor", "tensor: {} makes no {} grid (q*q, q*q*tensor_depth, q*q*q; q at least 2)", s.tensor,
                  s.tensor_kind);
  struct Size {
    std::string_view key;
    std::int64_t value;
  };
  // DeepSeek-V4's attention, in which all heads share one key, is rejected on a grid of tensor ranks by the table of
  // rejected combinations, whose message gives the reason. The rules below would reject it first, with a less useful
  // message about kv_heads, so they test its number of query heads instead.
  const std::int64_t kv_heads = m.compressed_attention ? m.heads : m.kv_heads;
  for (const Size& size : {Size{"heads", m.heads}, Size{"hidden", m.hidden}, Size{"feed_forward", m.feed_forward}}) {
    if (size.value % q != 0)
      return broken("tensor", "tensor: the side {} of its grid does not divide {}: {}", q, size.key, size.value);
  }
  if (kv_heads % q != 0 && q % kv_heads != 0)
    return broken("tensor", "tensor: the side {} of its grid and kv_heads: {}: neither divides the other", q, kv_heads);
  // If q does not divide kv_heads, several ranks hold the same key/value head. A cube cuts their rows of queries, keys
  // and values once more, so these ranks would hold different numbers of the head's rows.
  if (s.on_cube() && kv_heads % q != 0)
    return broken("tensor", "tensor: the side {} of its cube does not divide kv_heads: {}; choose 2d or 2.5d", q,
                  kv_heads);
  // A cube of ranks cuts the rows of every weight twice (those of queries, keys and values first by complete heads), so
  // the number of rows must be a multiple of q^2.
  const std::int64_t qkv = (m.heads + 2 * m.kv_heads) * m.head_dim;
  for (const Size& size : {Size{"rows of queries, keys and values", qkv}, Size{"hidden", m.hidden},
                           Size{"rows of gate and up", m.feed_forward * (m.gated ? 2 : 1)}}) {
    if (s.on_cube() && size.value % (q * q) != 0)
      return broken("tensor", "tensor: the side {} of its cube does not divide the {}: {} twice", q, size.key,
                    size.value);
  }
  const std::int64_t parts = q * (s.on_cube() ? q : s.tensor_depth);
  if (s.micro_batch % parts != 0)
    return broken("micro_batch", "micro_batch: {} is not a multiple of {}: a {} grid of side {} cuts it into {} parts",
                  s.micro_batch, parts, s.tensor_kind, q, parts);
  return {};
}

}  // namespace orrery
