#pragma once

#include <QDialog>
#include <QList>
#include <QString>
#include <functional>

class QLineEdit;
class QListWidget;

namespace orrery {

// A command that the palette offers. keys: its shortcut, for display.
struct PaletteCommand {
  QString text, keys;
  std::function<void()> run;
};

// Returns how well a text that the user types fits a command: 0 for the best, more for worse, -1 if its letters do not
// occur in the command in their order, ignoring case.
int misfit(const QString& typed, const QString& command);

// A box in which the user types letters of a command and runs it by Return; up and down choose another one.
class CommandPalette : public QDialog {
  Q_OBJECT

 public:
  CommandPalette(QList<PaletteCommand> commands, QWidget* parent);
  QLineEdit* line() const { return line_; }
  QListWidget* list() const { return list_; }

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  void show_fitting(const QString& typed);
  void run_chosen();

  QList<PaletteCommand> commands_;
  QList<int> shown_;  // indices in commands_ of the commands in the list
  QLineEdit* line_;
  QListWidget* list_;
};

}  // namespace orrery
