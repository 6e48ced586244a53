// This file shows the panel's summary, welcome text and list of keys, and opens files that are dropped on the window.
#include <QAction>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QFileDialog>
#include <QMenu>
#include <QMenuBar>
#include <QMimeData>
#include <QTextBrowser>
#include <QUrl>

#include "viz/window/cards.h"
#include "viz/window/main_window.h"

namespace orrery {

void MainWindow::build_cards() {
  details_->setOpenLinks(false);
  details_->setHtml(welcome_card(recent_files()));
  connect(details_, &QTextBrowser::anchorClicked, this, [this](const QUrl& link) {
    const QString text = link.toString();
    if (text.startsWith("recent:"))
      open_later({text.mid(7).toStdString()});
    else
      ask_for_files();
  });
  const auto show = [this](const QString& html) {
    details_->setHtml(html);
    show_tab(details_);
  };
  QMenu* help = menuBar()->addMenu("&Help");
  QAction* summary = help->addAction("&Summary", this, [this, show] {
    const auto now = scene(0);
    show(now ? summary_card(*now) : welcome_card(recent_files()));
  });
  QAction* keys = help->addAction("&Keys", this, [show] { show(keys_card()); });
  summary->setShortcut(QKeySequence("F1"));
  keys->setShortcut(QKeySequence("?"));
  for (QAction* action : {summary, keys}) addAction(action);
  setAcceptDrops(true);
}

void MainWindow::ask_for_files() {
  std::vector<std::string> paths;
  for (const QString& path : QFileDialog::getOpenFileNames(this, "Open specs, traces or reports"))
    paths.push_back(path.toStdString());
  if (!paths.empty()) open_later(paths);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  std::vector<std::string> paths;
  for (const QUrl& url : event->mimeData()->urls()) {
    if (url.isLocalFile()) paths.push_back(url.toLocalFile().toStdString());
  }
  if (paths.empty()) return say("only files of this machine can be dropped");
  event->acceptProposedAction();
  open_later(paths);
}

}  // namespace orrery
