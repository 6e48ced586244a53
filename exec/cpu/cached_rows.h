#pragma once

#include <algorithm>
#include <vector>

#include "exec/host/host_call.h"
#include "kernels/common/float8.h"
#include "kernels/cpu/weight_codes.h"

namespace orrery {

// The columns of one rank's heads in the rows of its activations, and of a token in the cache.
struct HeadColumns {
  std::int64_t heads = 0, kv_heads = 0, key = 0, value = 0;
  std::int64_t nope = 0, rope = 0, rank = 0;  // latent attention: parts of a key, and elements of a compressed vector

  bool latent() const { return rank > 0; }
  std::int64_t cached() const { return latent() ? rank + rope : kv_heads * (key + value); }
};

HeadColumns head_columns(const CpuCall& c);

// The format of 16-bit numbers in the cache, which may be another than that of activations.
inline kernels::Format16 cached_format(const CpuCall& c) {
  return c.rank.spec.generation->kv_precision == Precision::fp16 ? kernels::Format16::fp16 : kernels::Format16::bf16;
}

// How keys and values lie in the cache: as numbers of 32 or 16 bits, in E4M3, as codes of whole numbers, which have a
// scale for each vector (a head's key or value), or in NVFP4.
class CacheFormat {
 public:
  CacheFormat(const CpuCall& c, std::int64_t vector)
      : generation_(*c.rank.spec.generation), vector_(vector), format16_(cached_format(c)) {}

  bool narrow() const { return is_eight_bit(generation_.kv_precision); }

  void store(const float* from, std::int64_t n, std::byte* to) const {
    if (generation_.kv_precision == Precision::fp8) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::byte>(kernels::to_e4m3(from[i]));
    } else if (has_kv_scales(generation_)) {
      for (std::int64_t v = 0; v < n / vector_; ++v)
        narrowed(from + v * vector_, to + v * kv_vector_bytes(generation_, vector_));
    } else {
      const Values stored(to, n, kv_vector_bytes(generation_, 1), format16_, Values::Mode::write);
      std::copy_n(from, n, stored.data());
    }
  }

  void load(std::byte* from, std::int64_t n, float* to) const {
    if (generation_.kv_precision == Precision::fp8) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = kernels::from_e4m3(static_cast<std::uint8_t>(from[i]));
    } else if (has_kv_scales(generation_)) {
      for (std::int64_t v = 0; v < n / vector_; ++v)
        widened(from + v * kv_vector_bytes(generation_, vector_), to + v * vector_);
    } else {
      const Values stored(from, n, kv_vector_bytes(generation_, 1), format16_, Values::Mode::read);
      std::copy_n(stored.data(), n, to);
    }
  }

  // Rounds rows, each a vector of the cache, to what the cache would hold of them.
  void round(const kernels::Matrix<float>& x) const {
    std::vector<std::byte> stored(static_cast<std::size_t>(kv_vector_bytes(generation_, x.columns)));
    for (std::int64_t r = 0; r < x.rows; ++r) {
      store(x.row(r), x.columns, stored.data());
      load(stored.data(), x.columns, x.row(r));
    }
  }

 private:
  void narrowed(const float* from, std::byte* to) const {
    if (generation_.kv_precision == Precision::nvfp4)
      kernels::quantize_nvfp4(vector_, from, to);
    else
      kernels::quantize_vector(bits(), vector_, from, to);
  }
  void widened(const std::byte* from, float* to) const {
    if (generation_.kv_precision == Precision::nvfp4)
      kernels::widen_nvfp4(vector_, from, to);
    else
      kernels::widen_vector(bits(), vector_, from, to);
  }
  int bits() const { return generation_.kv_precision == Precision::int8 ? 8 : 4; }

  const Generation& generation_;
  std::int64_t vector_;
  kernels::Format16 format16_;
};

// The cached rows of one sequence, as floats: all tokens that a query of the pass can see.
struct CachedRows {
  std::int64_t first = 0, count = 0;
  std::vector<float> rows;
};

// Reads the tokens of a sequence that queries of the pass see, which are those within a window (0: all).
CachedRows cached_rows(const CpuCall& c, const Argument& cache, std::int64_t sequence, std::int64_t window,
                       std::int64_t columns);
// Copies the columns of the new rows that the cache keeps into `to`. first, last: the operands with the keys and with
// the values; in latent attention those with the packed keys and values and with the compressed vectors.
void gather_cached(const CpuCall& c, const HeadColumns& at, const Argument& first, const Argument& last,
                   const kernels::Matrix<float>& to);

}  // namespace orrery
