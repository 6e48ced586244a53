#include "viz/window/palette.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

using namespace orrery;

namespace {

using Seen = std::array<double, 3>;

// A colour as seen without red (1) or green (2) cones, in linear light (Viénot, Brettel and Mollon 1999).
Seen seen(const QColor& c, int sight) {
  const double r = std::pow(c.redF(), 2.2), g = std::pow(c.greenF(), 2.2), b = std::pow(c.blueF(), 2.2);
  if (sight == 0) return {r, g, b};
  const double rg = sight == 1 ? 0.1121 * r + 0.8853 * g : 0.2927 * r + 0.7073 * g;
  return {rg, rg, b};
}

double distance(const QColor& a, const QColor& b, int sight) {
  const Seen x = seen(a, sight), y = seen(b, sight);
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) sum += std::pow(std::pow(x[i], 1 / 2.2) - std::pow(y[i], 1 / 2.2), 2);
  return std::sqrt(sum);
}

}  // namespace

TEST(Palette, KindsAreToldApartInEveryKindOfSight) {
  for (int sight = 0; sight < 3; ++sight) {
    for (int a = 0; a < kKinds; ++a) {
      for (int b = a + 1; b < kKinds; ++b)
        EXPECT_GT(distance(colour_of(static_cast<Kind>(a)), colour_of(static_cast<Kind>(b)), sight), 0.06)
            << name_of(static_cast<Kind>(a)) << " and " << name_of(static_cast<Kind>(b)) << " in sight " << sight;
    }
  }
}

TEST(Palette, CategoriesOfMemoryAreToldApartInEveryKindOfSight) {
  for (int sight = 0; sight < 3; ++sight) {
    for (std::size_t a = 0; a < 6; ++a) {
      for (std::size_t b = a + 1; b < 6; ++b)
        EXPECT_GT(distance(colour_of_series(a), colour_of_series(b), sight), 0.06) << a << ", " << b << ", " << sight;
    }
  }
}

TEST(Palette, SlowerAndFasterAreToldApartInEveryKindOfSight) {
  for (int sight = 0; sight < 3; ++sight) {
    EXPECT_GT(distance(colour_of_change(1), colour_of_change(-1), sight), 0.2) << sight;
    for (const double change : {-1.0, 1.0})
      EXPECT_GT(distance(colour_of_change(change), colour_of_change(0), sight), 0.2) << change << ", " << sight;
  }
}

TEST(Palette, TextStandsOutFromItsBar) {
  for (int k = 0; k < kKinds; ++k) {
    const QColor bar = colour_of(static_cast<Kind>(k)), text = text_on(bar);
    const auto light = [](const QColor& c) {
      const Seen s = seen(c, 0);
      return 0.2126 * s[0] + 0.7152 * s[1] + 0.0722 * s[2] + 0.05;  // WCAG 2.1, relative luminance
    };
    const double contrast = std::max(light(bar), light(text)) / std::min(light(bar), light(text));
    EXPECT_GT(contrast, 3.0) << name_of(static_cast<Kind>(k));
  }
}
