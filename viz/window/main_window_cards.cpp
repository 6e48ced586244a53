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
  QMenu* help = menuBar()->addMenu("&Help");
  QAction* summary = help->addAction("&Summary", this, [this] {
    show_summary();
    show_tab(details_);
  });
  QAction* keys = help->addAction("&Keys", this, [this] {
    details_->setHtml(keys_card());
    show_tab(details_);
  });
  summary->setShortcut(QKeySequence("F1"));
  keys->setShortcut(QKeySequence("?"));
  for (QAction* action : {summary, keys}) addAction(action);
  setAcceptDrops(true);
}

// Shows the summary of the first scene, and below it some markup. Of a step, what further steps must be simulated for
// follows as soon as it is known, unless the panel shows something else by then.
void MainWindow::show_summary(const QString& below) {
  const auto now = scene(0);
  if (!now) return details_->setHtml(welcome_card(recent_files()));
  const bool known = more_.first.lock() == now;
  details_->setHtml(summary_card(*now, known ? more_.second : QString()) + below);
  if (known || !has_more(*now)) return work_.summary.drop();
  const auto show = [this, now, below, shown = details_->toHtml()](const QString& more) {
    more_ = {now, more};
    if (details_->toHtml() == shown) details_->setHtml(summary_card(*now, more) + below);
  };
  work_.summary.run([now](const std::atomic<bool>& unwanted) { return summary_more(*now, unwanted); }, show,
                    [show](const std::string& what) { show("<p>" + QString::fromStdString(what).toHtmlEscaped()); });
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
