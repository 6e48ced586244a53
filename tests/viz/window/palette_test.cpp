#include "viz/window/palette.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

using namespace orrery;

namespace {

using Seen = std::array<double, 3>;

// Kinds of sight: with all cones, without those for red, green (Viénot, Brettel and Mollon 1999), and blue.
constexpr int kSights = 4;

// A colour as seen by a kind of sight, in linear light. Without cones for blue: Machado, Oliveira and Fernandes 2009,
// severity 1.
Seen seen(const QColor& c, int sight) {
  const double r = std::pow(c.redF(), 2.2), g = std::pow(c.greenF(), 2.2), b = std::pow(c.blueF(), 2.2);
  if (sight == 0) return {r, g, b};
  if (sight == 3)
    return {std::max(0.0, 1.255528 * r - 0.076749 * g - 0.178779 * b),
            std::max(0.0, -0.078411 * r + 0.930809 * g + 0.147602 * b), 0.004733 * r + 0.691367 * g + 0.303900 * b};
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
  for (int sight = 0; sight < kSights; ++sight) {
    for (int a = 0; a < kKinds; ++a) {
      for (int b = a + 1; b < kKinds; ++b)
        EXPECT_GT(distance(colour_of(static_cast<Kind>(a)), colour_of(static_cast<Kind>(b)), sight), 0.11)
            << name_of(static_cast<Kind>(a)) << " and " << name_of(static_cast<Kind>(b)) << " in sight " << sight;
    }
  }
}

TEST(Palette, CategoriesOfMemoryAreToldApartInEveryKindOfSight) {
  for (int sight = 0; sight < kSights; ++sight) {
    for (std::size_t a = 0; a < 6; ++a) {
      for (std::size_t b = a + 1; b < 6; ++b)
        EXPECT_GT(distance(colour_of_series(a), colour_of_series(b), sight), 0.06) << a << ", " << b << ", " << sight;
    }
  }
}

TEST(Palette, TheCacheIsToldApartFromMemory) {
  for (int sight = 0; sight < kSights; ++sight) {
    for (std::size_t series = 0; series < 6; ++series)
      EXPECT_GT(distance(colours::kCache, colour_of_series(series), sight), 0.06) << series << ", " << sight;
  }
}

// The two phases, from each other, and from the background that they are drawn on.
TEST(Palette, PhasesAreToldApartInEveryKindOfSight) {
  const QColor all[] = {colour_of_phase(0), colour_of_phase(1), colours::kHeader};
  for (int sight = 0; sight < kSights; ++sight) {
    EXPECT_GT(distance(all[0], all[1], sight), 0.4) << sight;
    for (int phase = 0; phase < 2; ++phase) {
      EXPECT_GT(distance(all[phase], all[2], sight), 0.11) << phase << ", " << sight;
      for (int k = 0; k < kKinds; ++k)
        EXPECT_GT(distance(all[phase], colour_of(static_cast<Kind>(k)), sight), 0.02) << phase << ", " << k;
    }
  }
}

TEST(Palette, ChangesAreBlueAndOrangeAndToldApartInEveryKindOfSight) {
  EXPECT_GT(colour_of_change(1).red(), 2 * colour_of_change(1).blue());
  EXPECT_GT(colour_of_change(-1).blue(), 2 * colour_of_change(-1).red());
  const QColor all[] = {colour_of_change(1), colour_of_change(-1), colour_of_change(0), colours::kUnmatched};
  for (int sight = 0; sight < kSights; ++sight) {
    for (int a = 0; a < 4; ++a) {
      for (int b = a + 1; b < 4; ++b)
        EXPECT_GT(distance(all[a], all[b], sight), 0.4) << a << ", " << b << ", " << sight;
    }
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
