#include "viz/window/palette.h"

#include <algorithm>
#include <array>

namespace orrery {

QColor colour_of(Kind kind) {
  static constexpr std::array<QRgb, kKinds> colours = {
      0xff2c6fb3,  // forward pass
      0xff7cb9e8,  // backward pass
      0xffb58bd6,  // recomputation
      0xff33308f,  // optimizer step
      0xffe69f00,  // tensor-parallel communication
      0xfff0e442,  // context-parallel communication
      0xffcc79a7,  // expert-parallel communication
      0xff009e73,  // data-parallel communication
      0xffd55e00,  // pipeline communication
      0xff8c5a2b,  // other communication
      0xff6d7480,  // copies
      0xffd4d7dc,  // waiting
      0xffc3b9a4,  // host work
      0xff6c2460,  // other events
      0xff10333f,  // matrix products
      0xff2fd070,  // attention
      0xff6c7cf0,  // element-wise ops and other memory-bound kernels
  };
  return QColor::fromRgba(colours[static_cast<std::size_t>(kind)]);
}

QColor colour_of_series(std::size_t series) {
  static constexpr std::array<QRgb, 7> colours = {0xff4477aa, 0xffee6677, 0xff228833, 0xffccbb44,
                                                  0xff66ccee, 0xffaa3377, 0xffbbbbbb};
  return QColor::fromRgba(colours[series % colours.size()]);
}

QColor colour_of_phase(std::size_t phase) {
  static constexpr std::array<QRgb, 2> colours = {0xff1f5c4d, 0xffe3c9a8};
  return QColor::fromRgba(colours[phase % colours.size()]);
}

QColor colour_of_change(double relative) {
  const double part = std::clamp(std::abs(relative) * 2, 0.0, 1.0);
  const QColor full = relative > 0 ? QColor(0xd9, 0x73, 0x0d) : QColor(0x1f, 0x6f, 0xb8);
  const QColor same(0xd9, 0xdc, 0xe1);
  const auto mix = [&](int a, int b) { return static_cast<int>(a + (b - a) * part); };
  return {mix(same.red(), full.red()), mix(same.green(), full.green()), mix(same.blue(), full.blue())};
}

QColor text_on(const QColor& background) {
  const double light = 0.299 * background.red() + 0.587 * background.green() + 0.114 * background.blue();
  return light > 140 ? colours::kInk : QColor(255, 255, 255);
}

}  // namespace orrery
