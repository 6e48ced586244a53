#include "exec/initial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/bf16.h"
#include "kernels/philox.h"
#include "models/blocks.h"

namespace orrery {
namespace {

constexpr double kDeviation = 0.02;

std::uint64_t hash_of(const std::string& name) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

float initial_value(const PlacedParameter& p, std::uint64_t key, std::uint64_t place) {
  if (p.local.in == 1) return p.name.ends_with(".bias") ? 0.0F : 1.0F;
  const auto words =
      kernels::philox({static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32), 0, 0}, key);
  const double u = (words[0] + 0.5) / 4294967296.0, v = (words[1] + 0.5) / 4294967296.0;  // Box and Muller 1958
  return static_cast<float>(kDeviation * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
}

// Place in the uncut weight, row-major, of an element of this rank's.
std::int64_t uncut_place(const Rank& rank, const LocalParameter& p, std::int64_t element) {
  const Seat& seat = rank.seat(Dimension::tensor);
  const Model& m = rank.spec.model;
  const std::int64_t row = element / p.in, column = element % p.in;
  if (p.cut == Cut::columns) return row * p.in * seat.size + uncut_index(m, p, column, seat.index, seat.size);
  return uncut_index(m, p, row, seat.index, seat.size) * p.in + column;
}

void store(std::byte* to, Bytes width, std::int64_t element, float value) {
  if (width == 4)
    reinterpret_cast<float*>(to)[element] = value;
  else
    reinterpret_cast<kernels::Bf16*>(to)[element] = kernels::to_bf16(value);
}

float load(const std::byte* from, Bytes width, std::int64_t element) {
  if (width == 4) return reinterpret_cast<const float*>(from)[element];
  return kernels::to_float(reinterpret_cast<const kernels::Bf16*>(from)[element]);
}

// Calls f(parameter, first element of it, count, place in shards, place in the chunk) for what a rank owns.
template <class F>
void for_owned(const Rank& rank, std::uint32_t state, const F& f) {
  for (const PlacedParameter& p : rank.parameters.at(state)) {
    for (const Piece& piece : rank.pieces.at(state)) {
      const std::int64_t begin = std::max(p.first, piece.owned_first);
      const std::int64_t end = std::min(p.first + p.local.out * p.local.in, piece.owned_first + piece.owned);
      if (begin < end) f(p, begin - p.first, end - begin, piece.shard_first + begin - piece.owned_first, begin);
    }
  }
}

}  // namespace

void set_initial_weights(const Rank& rank, std::uint64_t seed, const Buffers& buffers) {
  for (const std::uint32_t state : rank.states) {
    if (std::byte* whole = buffers.state(state, kParameters)) {
      for (const PlacedParameter& p : rank.parameters.at(state)) {
        const std::uint64_t key = hash_of(p.name) ^ seed;
        for (std::int64_t i = 0; i < p.local.out * p.local.in; ++i) {
          const auto place = static_cast<std::uint64_t>(uncut_place(rank, p.local, i));
          store(whole, rank.state_width(kParameters), p.first + i, initial_value(p, key, place));
        }
      }
    }
    for (const std::uint16_t slot : {kParameterShard, kMaster}) {
      std::byte* shard = buffers.state(state, slot);
      if (shard == nullptr) continue;
      for_owned(rank, state,
                [&](const PlacedParameter& p, std::int64_t first, std::int64_t n, std::int64_t at, std::int64_t) {
                  const std::uint64_t key = hash_of(p.name) ^ seed;
                  for (std::int64_t i = 0; i < n; ++i) {
                    const auto place = static_cast<std::uint64_t>(uncut_place(rank, p.local, first + i));
                    store(shard, rank.state_width(slot), at + i, initial_value(p, key, place));
                  }
                });
    }
  }
}

std::map<std::string, OwnedValues> owned_values(const Rank& rank, const Buffers& buffers, Quantity quantity) {
  std::map<std::string, OwnedValues> result;
  for (const std::uint32_t state : rank.states) {
    const auto first_of = [&](std::initializer_list<std::uint16_t> slots) {
      for (const std::uint16_t s : slots) {
        if (buffers.state(state, s) != nullptr) return s;
      }
      return std::uint16_t{kParameters};
    };
    const std::uint16_t slot = quantity == Quantity::weights ? first_of({kMaster, kParameterShard, kParameters})
                                                             : first_of({kGradientShard, kGradients});
    const bool whole = slot == kParameters || slot == kGradients;
    for_owned(
        rank, state,
        [&](const PlacedParameter& p, std::int64_t first, std::int64_t n, std::int64_t shard, std::int64_t chunk) {
          const UncutShape shape = uncut_shape(rank.spec.model, p.local, rank.seat(Dimension::tensor).size);
          OwnedValues& v = result[p.name];
          v.shape = {shape.out, shape.in};
          for (std::int64_t i = 0; i < n; ++i) {
            v.places.push_back(uncut_place(rank, p.local, first + i));
            v.values.push_back(load(buffers.state(state, slot), rank.state_width(slot), (whole ? chunk : shard) + i));
          }
        });
  }
  return result;
}

}  // namespace orrery
