#include "sim/generate/formats_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace orrery {

double bits_of_weights(const Spec& spec) {
  const WeightFormat& format = spec.strategy.weights;
  if (!format.narrow()) return 8.0 * static_cast<double>(storage_bytes(spec.strategy.precision));
  double bytes = 0, weights = 0;
  for (std::int64_t layer = 0; layer < spec.model.layers; ++layer) {
    for (const Parameter& p : layer_parameters(spec.model, layer)) {
      if (!is_quantised(p.name, p.in, spec.strategy.quantised_layers)) continue;
      const std::int64_t matrices = std::max<std::int64_t>(1, p.experts);
      bytes += static_cast<double>(weight_bytes(format, p.out * matrices, p.in, matrices));
      weights += static_cast<double>(elements(p));
    }
  }
  return weights > 0 ? 8 * bytes / weights : 0;
}

namespace {

// The matrices that have the format, and whose products these are, in words.
struct LayerWords {
  std::string_view matrices, products;
};
constexpr LayerWords kLayerWords[] = {
    {"the layers", "products"}, {"MLP and experts", "their products"}, {"the experts", "their products"}};

}  // namespace

std::string formats_text(const Spec& spec) {
  const Strategy& s = spec.strategy;
  if (!s.weights.narrow()) return "";
  const std::string_view products = name_of(s.precision);
  const LayerWords& words = kLayerWords[static_cast<std::size_t>(s.quantised_layers)];
  return fmt::format("{}: {:.2f} bits a weight of {}; {} {} {}", text_of(s.weights), bits_of_weights(spec),
                     words.matrices, words.products, reads_codes(s.weights, s.precision) ? "run in" : "widen them to",
                     products);
}

}  // namespace orrery
