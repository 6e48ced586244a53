#pragma once

#include <gtest/gtest.h>

#include <QCryptographicHash>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QImage>
#include <QList>
#include <algorithm>
#include <cstdlib>

namespace orrery {

// Pictures that must stay as they are. After a wanted change: ORRERY_WRITE_GOLDEN=1 window_tests, and look at every one
// before it is committed.
inline QString golden_path(const QString& name) {
  return QStringLiteral(ORRERY_SOURCE_DIR "/tests/viz/window/golden/") + name + ".png";
}

// Returns a picture with eight shades of each colour channel and a table of the colours, of which a window has fewer
// than 256, so that the file of a whole window is small.
inline QImage coarse(const QImage& image) {
  const QImage whole = image.convertToFormat(QImage::Format_RGB32);
  QList<int> place(512, -1);  // by the three bits of red, green and blue: the colour's index in the table
  QList<QRgb> colours;
  QImage table(whole.size(), QImage::Format_Indexed8);
  for (int y = 0; y < whole.height(); ++y) {
    const auto* const line = reinterpret_cast<const QRgb*>(whole.constScanLine(y));
    uchar* const to = table.scanLine(y);
    for (int x = 0; x < whole.width(); ++x) {
      const QRgb c = line[x];
      int& at = place[qRed(c) / 32 * 64 + qGreen(c) / 32 * 8 + qBlue(c) / 32];
      if (at < 0 && colours.size() < 256) {
        at = static_cast<int>(colours.size());
        colours.append(0xff000000U | (c & 0xe0e0e0U) | (c & 0xe0e0e0U) >> 3);
      }
      to[x] = static_cast<uchar>(std::max(at, 0));
    }
  }
  table.setColorTable(colours);
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

// Compares a picture with the hash of this name in golden/hashes.txt, for pictures of which there are too many to keep;
// or writes that, and the picture into the temporary folder, to be looked at.
inline void expect_hash(const QImage& image, const QString& name) {
  const QImage whole = image.convertToFormat(QImage::Format_RGB32);
  const QByteArrayView bits(whole.constBits(), whole.sizeInBytes());
  const QString hash = QCryptographicHash::hash(bits.toByteArray(), QCryptographicHash::Sha1).toHex();
  QFile file(QStringLiteral(ORRERY_SOURCE_DIR "/tests/viz/window/golden/hashes.txt"));
  QStringList lines;
  if (file.open(QIODevice::ReadOnly)) lines = QString(file.readAll()).split('\n', Qt::SkipEmptyParts);
  file.close();
  const QString line = name + ' ' + hash, path = QDir::tempPath() + "/orrery_golden_" + name + ".png";
  if (std::getenv("ORRERY_WRITE_GOLDEN") != nullptr) {
    lines.removeIf([&](const QString& other) { return other.startsWith(name + ' '); });
    lines.append(line);
    lines.sort();
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write((lines.join('\n') + '\n').toUtf8());
    image.save(path);
    return;
  }
  if (lines.contains(line)) return;
  image.save(path);
  ADD_FAILURE() << name.toStdString() << " differs from its hash in golden/hashes.txt; see " << path.toStdString();
}

}  // namespace orrery
