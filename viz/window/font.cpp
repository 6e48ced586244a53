#include <QFontDatabase>

#include "viz/window/canvas.h"

static void initialize_fonts() { Q_INIT_RESOURCE(fonts); }  // must be outside any namespace (Qt: Q_INIT_RESOURCE)

namespace orrery {
namespace {

QString load_family() {
  initialize_fonts();
  const int book = QFontDatabase::addApplicationFont(":/font/orrery-sans.ttf");
  QFontDatabase::addApplicationFont(":/font/orrery-sans-bold.ttf");
  return QFontDatabase::applicationFontFamilies(book).value(0);
}

QFont make_font(bool bold) {
  static const QString family = load_family();
  QFont font(family);
  font.setPixelSize(12);
  font.setBold(bold);
  font.setHintingPreference(QFont::PreferNoHinting);
  font.setStyleStrategy(
      static_cast<QFont::StyleStrategy>(QFont::PreferAntialias | QFont::NoSubpixelAntialias | QFont::NoFontMerging));
  return font;
}

}  // namespace

QFont canvas_font(bool bold) {
  static const QFont fonts[] = {make_font(false), make_font(true)};
  return fonts[bold ? 1 : 0];
}

}  // namespace orrery
