#include "viz/window/command_palette.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "viz/window/canvas.h"

namespace orrery {

int misfit(const QString& typed, const QString& command) {
  int at = 0, gaps = 0;
  for (const QChar c : typed) {
    if (c.isSpace()) continue;
    const auto found = static_cast<int>(command.indexOf(c, at, Qt::CaseInsensitive));
    if (found < 0) return -1;
    gaps += found - at;
    at = found + 1;
  }
  // A command that holds the typed text as it is stands before all others.
  const auto whole = static_cast<int>(command.indexOf(typed.trimmed(), 0, Qt::CaseInsensitive));
  return whole >= 0 ? std::min(gaps, whole) : gaps + 1000;
}

CommandPalette::CommandPalette(QList<PaletteCommand> commands, QWidget* parent)
    : QDialog(parent), commands_(std::move(commands)), line_(new QLineEdit), list_(new QListWidget) {
  setWindowTitle("Commands");
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addWidget(line_);
  layout->addWidget(list_);
  line_->setPlaceholderText("letters of a command; Return runs it");
  list_->setFont(canvas_font());
  list_->setFocusPolicy(Qt::NoFocus);
  line_->installEventFilter(this);
  resize(460, 380);
  connect(line_, &QLineEdit::textChanged, this, &CommandPalette::show_fitting);
  connect(line_, &QLineEdit::returnPressed, this, &CommandPalette::run_chosen);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run_chosen);
  show_fitting("");
}

void CommandPalette::show_fitting(const QString& typed) {
  QList<std::pair<int, int>> order;
  for (int i = 0; i < commands_.size(); ++i) {
    const int worse = misfit(typed, commands_[i].text);
    if (worse >= 0) order.append({worse, i});
  }
  std::sort(order.begin(), order.end());
  list_->clear();
  shown_.clear();
  for (const auto& [worse, i] : order) {
    const PaletteCommand& c = commands_[i];
    shown_.append(i);
    list_->addItem(c.keys.isEmpty() ? c.text : c.text + "    " + c.keys);
  }
  list_->setCurrentRow(0);
}

bool CommandPalette::eventFilter(QObject* object, QEvent* event) {
  if (object == line_ && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Up || key == Qt::Key_Down) {
      const int row = list_->currentRow() + (key == Qt::Key_Down ? 1 : -1);
      list_->setCurrentRow(std::clamp(row, 0, std::max(0, list_->count() - 1)));
      return true;
    }
  }
  return QDialog::eventFilter(object, event);
}

void CommandPalette::run_chosen() {
  const int row = list_->currentRow();
  if (row < 0 || row >= shown_.size()) return;
  const std::function<void()> run = commands_[shown_[row]].run;
  accept();
  run();
}

}  // namespace orrery
