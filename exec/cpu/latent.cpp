// This file runs multi-head latent attention on the CPU: keys and values of all heads are projected up from one
// compressed row per token, and are packed into one buffer by columns.
#include <cmath>

#include "exec/host/host_call.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/latent.h"

namespace orrery {
namespace {

using kernels::columns_of;
using kernels::heads_of;
using kernels::matrix;

// Keys and values of latent attention, as column ranges of one packed buffer.
struct LatentPair {
  kernels::Heads<float> keys, values;
};

LatentPair latent_pair(const Values& v, const FlashAttention& a) {
  const std::int64_t keys = a.heads * a.head_dim, values = a.heads * a.value_dim;
  const auto all = matrix(v.data(), a.batch * a.key, keys + values);
  return {heads_of(all, a.batch, 0, a.heads, a.head_dim),
          heads_of(columns_of(all, keys, values), a.batch, 0, a.heads, a.value_dim)};
}

}  // namespace

void run_latent_attention(const CpuCall& c, const FlashAttention& a) {
  const std::int64_t rows = a.batch * a.query, wide = rows * a.heads * a.head_dim,
                     narrow = rows * a.heads * a.value_dim;
  const auto queries = [&](const Values& v) {
    return heads_of(matrix(v.data(), rows, a.heads * a.head_dim), a.batch, 0, a.heads, a.head_dim);
  };
  const auto results = [&](const Values& v) {
    return heads_of(matrix(v.data(), rows, a.heads * a.value_dim), a.batch, 0, a.heads, a.value_dim);
  };
  const kernels::CausalMask mask = {.window = a.window};
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(a.head_dim)));
  const Values q = c.read(c.reads[0], wide), kv = c.read(c.reads[1], wide + narrow);
  const LatentPair in = latent_pair(kv, a);
  if (a.direction == Direction::forward) {
    const Values y = c.write(c.writes[0], narrow);
    return kernels::attention(queries(q), in.keys, in.values, scale, mask, results(y), CpuCall::floats(c.writes[1]));
  }
  const Values y = c.read(c.reads[2], narrow), dy = c.read(c.reads[4], narrow);
  const Values dq = c.write(c.writes[0], wide), dkv = c.write(c.writes[1], wide + narrow);
  const LatentPair out = latent_pair(dkv, a);
  kernels::attention_gradient({queries(q), in.keys, in.values, results(y), CpuCall::floats(c.reads[3])}, results(dy),
                              scale, mask, queries(dq), out.keys, out.values);
}

void run_latent_heads(const CpuCall& c, const LatentHeads& l) {
  const kernels::LatentShape shape = {l.heads, l.nope, l.rope, l.value};
  const std::int64_t query = l.heads * (l.nope + l.rope), up = l.heads * (l.nope + l.value),
                     packed = query + l.heads * l.value;
  const bool forward = l.direction == Direction::forward;
  const auto of = [&](const Values& v, std::int64_t columns) { return matrix(v.data(), l.rows, columns); };
  // Calls run() for each group of consecutive rows that belong to one sample.
  const auto each_run = [&](const auto& run) {
    c.for_samples(l.rows, [&](std::int64_t row, std::int64_t count, std::int64_t, std::int64_t position) {
      run(kernels::Positions{count, position}, [=](auto m) { return rows_of(m, row, count); });
    });
  };
  const Values q = c.update(c.updates[0], l.rows * query);
  each_run([&](kernels::Positions at, const auto& part) {
    kernels::rotate_queries(c.rotary(), at, !forward, shape, part(of(q, query)));
  });
  if (forward) {
    const Values kv = c.read(c.reads[0], l.rows * up), rope = c.read(c.reads[1], l.rows * l.rope);
    const Values y = c.write(c.writes[0], l.rows * packed);
    return each_run([&](kernels::Positions at, const auto& part) {
      kernels::pack_latent(c.rotary(), at, shape, part(of(kv, up)), part(of(rope, l.rope)), part(of(y, packed)));
    });
  }
  const Values dy = c.read(c.reads[0], l.rows * packed);
  const Values dkv = c.write(c.writes[0], l.rows * up), drope = c.write(c.writes[1], l.rows * l.rope);
  each_run([&](kernels::Positions at, const auto& part) {
    kernels::unpack_latent(c.rotary(), at, shape, part(of(dy, packed)), part(of(dkv, up)), part(of(drope, l.rope)));
  });
}

}  // namespace orrery
