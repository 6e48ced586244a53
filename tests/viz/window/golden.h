#pragma once

#include <gtest/gtest.h>

#include <QDir>
#include <QFileInfo>
#include <QImage>
#include <QMap>
#include <cstdlib>

namespace orrery {

// Pictures that must stay as they are. After a wanted change: ORRERY_WRITE_GOLDEN=1 window_tests, and look at every one
// before it is committed.
inline QString golden_path(const QString& name) {
  return QStringLiteral(ORRERY_SOURCE_DIR "/tests/viz/window/golden/") + name + ".png";
}

// Returns a picture with eight shades of each colour channel, as a table of colours where there are few enough, so that
// the file of a whole window is small.
inline QImage coarse(const QImage& image) {
  QImage result = image.convertToFormat(QImage::Format_RGB32);
  result.setDevicePixelRatio(1);
  QMap<QRgb, int> found;
  for (int y = 0; y < result.height(); ++y) {
    auto* const line = reinterpret_cast<QRgb*>(result.scanLine(y));
    for (int x = 0; x < result.width(); ++x) {
      line[x] = (line[x] & 0xffe0e0e0U) | (line[x] & 0xe0e0e0U) >> 3;
      found[line[x]] = 0;
    }
  }
  if (found.size() > 256) return result;
  QImage table(result.size(), QImage::Format_Indexed8);
  int next = 0;
  for (auto colour = found.begin(); colour != found.end(); ++colour) *colour = next++;
  table.setColorTable(found.keys());
  for (int y = 0; y < result.height(); ++y) {
    const auto* const line = reinterpret_cast<const QRgb*>(result.constScanLine(y));
    for (int x = 0; x < result.width(); ++x) table.scanLine(y)[x] = static_cast<uchar>(found[line[x]]);
  }
  return table;
}

// Compares a picture with the golden one of this name, or writes that.
inline void expect_golden(const QImage& image, const QString& name) {
  const QString path = golden_path(name);
  if (std::getenv("ORRERY_WRITE_GOLDEN") != nullptr) {
    QDir().mkpath(QFileInfo(path).path());
    ASSERT_TRUE(image.save(path, "PNG", 0)) << name.toStdString();
    return;
  }
  const QImage golden = QImage(path).convertToFormat(QImage::Format_RGB32);
  ASSERT_FALSE(golden.isNull()) << name.toStdString() << ": no golden picture";
  if (image.convertToFormat(QImage::Format_RGB32) == golden) return;
  const QString got = QDir::tempPath() + "/orrery_golden_" + name + ".png";
  image.save(got);
  ADD_FAILURE() << name.toStdString() << " differs from its golden picture; see " << got.toStdString();
}

}  // namespace orrery
