#include "exec/host/initial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "exec/host/stored_weights.h"
#include "kernels/common/float16.h"
#include "kernels/common/philox.h"
#include "kernels/cpu/quantize.h"
#include "models/layers/blocks.h"
#include "models/layout/uncut_place.h"

namespace orrery {
namespace {

constexpr double kDeviation = 0.02;

std::uint64_t hash_of(const std::string& name) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a hash
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

UncutPlace place_of(const Rank& rank, const LocalParameter& p) {
  return uncut_place(model_of(rank.spec, p.name), p, [&](Dimension d) { return rank.position_in(d); });
}

// Tables from which the row-major offset, in the uncut weight, of each element of this rank's part is computed. However
// the weight is cut, the offset of element (r, c) of the part is rows[r] + columns[c].
struct UncutPlaces {
  std::vector<std::int64_t> rows, columns;

  UncutPlaces() = default;
  UncutPlaces(const Rank& rank, const LocalParameter& p) {
    const UncutPlace place = place_of(rank, p);
    for (const UncutRows& run : place.rows) {
      for (std::int64_t r = 0; r < run.rows; ++r) rows.push_back((run.uncut + r) * place.whole.in + place.column);
    }
    for (std::int64_t c = 0; c < p.in; ++c) columns.push_back(c);
  }
  std::int64_t of(std::int64_t element) const {
    const auto in = static_cast<std::int64_t>(columns.size());
    return rows[element / in] + columns[element % in];
  }
};

void store(std::byte* to, Bytes width, kernels::Format16 format, std::int64_t element, float value) {
  kernels::with_type(width, format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    reinterpret_cast<T*>(to)[element] = kernels::stored_as<T>(value);
  });
}

float load(const std::byte* from, Bytes width, kernels::Format16 format, std::int64_t element) {
  float value = 0;
  kernels::with_type(width, format, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    value = kernels::to_float(reinterpret_cast<const T*>(from)[element]);
  });
  return value;
}

// Calls f for each contiguous range of elements that this rank owns in a chunk of layers. The arguments of f: the
// parameter, the range's first element in the parameter, the number of elements, and the offsets of the range in the
// rank's shards and in the chunk's parameters.
template <class F>
void for_owned(const Rank& rank, std::uint32_t state, const F& f, bool frozen = false) {
  for (const PlacedParameter& p : (frozen ? rank.frozen : rank.parameters).at(state)) {
    for (const Piece& piece : (frozen ? rank.frozen_pieces : rank.pieces).at(state)) {
      const std::int64_t begin = std::max(p.first, piece.owned_first);
      const std::int64_t size = frozen ? p.local.stored : p.local.out * p.local.in;
      const std::int64_t end = std::min(p.first + size, piece.owned_first + piece.owned);
      if (begin < end) f(p, begin - p.first, end - begin, piece.shard_first + begin - piece.owned_first, begin);
    }
  }
}

// Computes the initial values of one weight.
class Initial {
 public:
  Initial(const Rank& rank, const PlacedParameter& p, std::uint64_t seed) {
    run_.in = p.local.in;
    run_.format16 = rank.format16();
    run_.key = hash_of(initial_name(rank.spec, p.name)) ^ seed;
    const bool zeros = p.name.ends_with(".lora_b.weight");  // an adapter changes nothing at first (LoRA, section 4.1)
    run_.deviation = p.local.in == 1 || zeros ? 0 : kDeviation;
    run_.constant = p.name.ends_with(".bias") || zeros ? 0.0F : 1.0F;
    if (run_.deviation == 0) return;
    places_ = UncutPlaces(rank, p.local);
  }

  void set(std::byte* to, Bytes width, std::int64_t first, std::int64_t count,
           const std::function<void(const InitialRun&)>& how) {
    run_.to = to;
    run_.width = width;
    run_.first = first;
    run_.count = count;
    run_.rows = places_.rows;
    run_.columns = places_.columns;
    how(run_);
  }

  // Sets one row of the uncut weight.
  void set_row(std::int64_t row, std::vector<float>& to) {
    places_.rows = {row * static_cast<std::int64_t>(to.size())};
    places_.columns.resize(to.size());
    for (std::size_t c = 0; c < to.size(); ++c) places_.columns[c] = static_cast<std::int64_t>(c);
    run_.in = static_cast<std::int64_t>(to.size());
    set(reinterpret_cast<std::byte*>(to.data()), sizeof(float), 0, run_.in, initial_on_host);
  }

 private:
  InitialRun run_;
  UncutPlaces places_;
};

}  // namespace

void initial_on_host(const InitialRun& run) {
  for (std::int64_t i = 0; i < run.count; ++i) {
    const std::int64_t e = run.first + i;
    float value = run.constant;
    if (run.deviation != 0) {
      const auto place = static_cast<std::uint64_t>(run.rows[e / run.in] + run.columns[e % run.in]);
      const auto words =
          kernels::philox({static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32), 0, 0}, run.key);
      // Two uniform random numbers, from which a normal one is computed (Box and Muller 1958).
      const double u = (words[0] + 0.5) / 4294967296.0, v = (words[1] + 0.5) / 4294967296.0;
      value = static_cast<float>(run.deviation * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
    }
    store(run.to, run.width, run.format16, i, value);
  }
}

static bool beyond_device(const Rank& rank, std::uint32_t state, std::uint16_t slot) {
  return rank.plan.blocks[rank.plan.frames[state].block].buffers[slot].home != MemoryTier::device;
}

// Initialises shards in host memory or on disk, which the host writes instead of the device.
static void set_beyond(const Rank& rank, std::uint64_t seed, const Buffers& buffers, std::uint32_t state,
                       std::uint16_t slot) {
  const Bytes width = rank.state_width(slot);
  for_owned(
      rank, state,
      [&](const PlacedParameter& p, std::int64_t first, std::int64_t n, std::int64_t at, std::int64_t) {
        std::vector<std::byte> values(static_cast<std::size_t>(n * width));
        Initial(rank, p, seed).set(values.data(), width, first, n, initial_on_host);
        buffers.write_state(state, slot, at * width, values);
      },
      slot == kFrozenShard);
}

// The ranges of the groups of a rank's part of a weight. Groups may be parts of rows or of matrices that other ranks
// have too; their values are computed as well, so that the codes are those of the whole weight.
class WholeRanges {
 public:
  WholeRanges(const Rank& rank, const PlacedParameter& p, std::uint64_t seed)
      : rank_(rank), p_(p), seed_(seed), place_(place_of(rank, p.local)), matrix_(coded_matrix(p.local)) {}

  kernels::WeightRanges of(const float* values) const {
    kernels::WeightRanges ranges = kernels::ranges_of(matrix_, values);
    const bool clips = rank_.spec.strategy.clips_by_divergence, whole_rows = place_.columns == place_.whole.in;
    if (matrix_.group == kChannelGroup && !whole_rows) {
      for (const UncutRows& run : place_.rows) {
        for (std::int64_t r = 0; r < run.rows; ++r)
          ranges.groups[static_cast<std::size_t>(run.local + r)] = range_of(run.uncut + r, 1);
      }
    }
    const bool by_matrix = matrix_.group == kTensorGroup || matrix_.codes == kernels::WeightCodes::nvfp4;
    const bool whole = whole_rows && p_.local.out == matrix_.matrices * place_.expert_rows;
    if (!by_matrix || (whole && !clips)) return ranges;
    for (std::int64_t e = 0; e < matrix_.matrices; ++e) {
      const std::int64_t first = first_of(e * (p_.local.out / matrix_.matrices));
      const kernels::WeightRange range = range_of(first, place_.expert_rows);
      ranges.matrices[static_cast<std::size_t>(e)] = range;
      if (matrix_.group == kTensorGroup) ranges.groups[static_cast<std::size_t>(e)] = range;
    }
    return ranges;
  }

 private:
  // Returns the first row, in the uncut weight, of the matrix that a row of this rank's part belongs to.
  std::int64_t first_of(std::int64_t local) const {
    for (const UncutRows& run : place_.rows) {
      if (local >= run.local && local < run.local + run.rows)
        return (run.uncut + local - run.local) / place_.expert_rows * place_.expert_rows;
    }
    return 0;
  }

  // Returns the range of rows of the uncut weight, or the one to which they are clipped.
  kernels::WeightRange range_of(std::int64_t first, std::int64_t rows) const {
    std::vector<float> all, row(static_cast<std::size_t>(place_.whole.in));
    kernels::WeightRange range;
    for (std::int64_t r = first; r < first + rows; ++r) {
      Initial(rank_, p_, seed_).set_row(r, row);
      for (const float x : row) range.add(x);
      if (rank_.spec.strategy.clips_by_divergence) all.insert(all.end(), row.begin(), row.end());
    }
    if (!rank_.spec.strategy.clips_by_divergence) return range;
    const float most = kernels::least_divergence(all, 8);
    return {-most, most};
  }

  const Rank& rank_;
  const PlacedParameter& p_;
  std::uint64_t seed_;
  UncutPlace place_;
  kernels::CodedMatrix matrix_;
};

// Returns a frozen weight's initial values as bytes in the form in which they are stored, if the model keeps some
// weights in few bits.
static std::vector<std::byte> stored_bytes(const Rank& rank, const PlacedParameter& p, std::uint64_t seed) {
  const std::int64_t n = p.local.out * p.local.in;
  const bool converted = p.local.nf4 || p.local.format.narrow();
  const Bytes width = converted ? Bytes{sizeof(float)} : rank.plan.element_bytes;
  std::vector<float> memory(static_cast<std::size_t>(n));  // large enough for any width, and aligned
  auto* values = reinterpret_cast<std::byte*>(memory.data());
  Initial(rank, p, seed).set(values, width, 0, n, initial_on_host);
  std::vector<std::byte> stored(static_cast<std::size_t>(p.local.stored));
  if (p.local.nf4)
    kernels::quantize_nf4(n, memory.data(), stored.data());
  else if (converted)
    kernels::quantize_matrix(coded_matrix(p.local), memory.data(), WholeRanges(rank, p, seed).of(memory.data()),
                             stored.data());
  else
    std::copy_n(values, stored.size(), stored.begin());
  return stored;
}

// Sets the weights that do not train, whole or as shards. Where some are kept in few bits, a rank converts its whole
// part of a weight, and keeps those bytes of it that are in its shards.
static void set_frozen(const Rank& rank, std::uint64_t seed, const Buffers& buffers, std::uint32_t state,
                       const std::function<void(const InitialRun&)>& set) {
  const bool bytes = rank.plan.frozen_width == 1;
  const auto set_part = [&](const PlacedParameter& p, std::int64_t first, std::int64_t n, std::byte* to) {
    if (!bytes) return Initial(rank, p, seed).set(to, rank.plan.frozen_width, first, n, set);
    const std::vector<std::byte> stored = stored_bytes(rank, p, seed);
    std::copy_n(stored.begin() + first, n, to);
  };
  if (std::byte* whole = buffers.state(state, kFrozen)) {
    for (const PlacedParameter& p : rank.frozen.at(state))
      set_part(p, 0, p.local.stored, whole + p.first * rank.plan.frozen_width);
  }
  if (buffers.has_state(state, kFrozenShard) && beyond_device(rank, state, kFrozenShard)) {
    set_beyond(rank, seed, buffers, state, kFrozenShard);
  } else if (std::byte* shard = buffers.state(state, kFrozenShard)) {
    for_owned(
        rank, state,
        [&](const PlacedParameter& p, std::int64_t first, std::int64_t n, std::int64_t at, std::int64_t) {
          set_part(p, first, n, shard + at * rank.plan.frozen_width);
        },
        true);
  }
}

void set_initial_weights(const Rank& rank, std::uint64_t seed, const Buffers& buffers,
                         const std::function<void(const InitialRun&)>& set) {
  for (const std::uint32_t state : rank.states) {
    if (std::byte* whole = buffers.state(state, kParameters)) {
      const Bytes width = rank.state_width(kParameters);
      for (const PlacedParameter& p : rank.parameters.at(state))
        Initial(rank, p, seed).set(whole + p.first * width, width, 0, p.local.out * p.local.in, set);
    }
    set_frozen(rank, seed, buffers, state, set);
    for (const std::uint16_t slot : {kParameterShard, kMaster}) {
      if (!buffers.has_state(state, slot)) continue;
      const Bytes width = rank.state_width(slot);
      std::byte* shard = buffers.state(state, slot);
      if (shard == nullptr || beyond_device(rank, state, slot)) {
        set_beyond(rank, seed, buffers, state, slot);
        continue;
      }
      for_owned(rank, state,
                [&](const PlacedParameter& p, std::int64_t first, std::int64_t n, std::int64_t at, std::int64_t) {
                  Initial(rank, p, seed).set(shard + at * width, width, first, n, set);
                });
    }
  }
}

std::map<std::string, OwnedValues> owned_values(const Rank& rank, const Buffers& buffers, Quantity quantity,
                                                const Copy& read) {
  std::map<std::string, OwnedValues> result;
  for (const std::uint32_t state : rank.states) {
    const auto first_of = [&](std::initializer_list<std::uint16_t> slots) {
      for (const std::uint16_t s : slots) {
        if (buffers.has_state(state, s)) return s;
      }
      return std::uint16_t{kParameters};
    };
    const std::uint16_t slot = quantity == Quantity::weights ? first_of({kMaster, kParameterShard, kParameters})
                                                             : first_of({kGradientShard, kGradients});
    const bool whole = slot == kParameters || slot == kGradients;
    const Bytes width = rank.state_width(slot);
    for_owned(
        rank, state,
        [&](const PlacedParameter& p, std::int64_t first, std::int64_t n, std::int64_t shard, std::int64_t chunk) {
          const UncutShape shape = place_of(rank, p.local).whole;
          OwnedValues& v = result[p.name];
          v.shape = {shape.out, shape.in};
          std::vector<std::byte> stored(static_cast<std::size_t>(n * width));
          const std::int64_t at = (whole ? chunk : shard) * width;
          if (!buffers.read_state(state, slot, at, stored))
            read(stored.data(), buffers.state(state, slot) + at, stored.size());
          const UncutPlaces places(rank, p.local);
          for (std::int64_t i = 0; i < n; ++i) {
            v.places.push_back(places.of(first + i));
            v.values.push_back(load(stored.data(), width, rank.format16(), i));
          }
        });
  }
  return result;
}

}  // namespace orrery
