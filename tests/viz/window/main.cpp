#include <gtest/gtest.h>

#include <QApplication>
#include <QStyleFactory>

#include "viz/window/canvas.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  qputenv("QT_QPA_PLATFORM", qgetenv("QT_QPA_PLATFORM").isEmpty() ? "offscreen" : qgetenv("QT_QPA_PLATFORM"));
  QApplication application(argc, argv);
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  QApplication::setFont(orrery::canvas_font());
  return RUN_ALL_TESTS();
}
