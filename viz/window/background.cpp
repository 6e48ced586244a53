#include "viz/window/background.h"

#include <QCoreApplication>
#include <QEvent>
#include <utility>

namespace orrery {

Background::~Background() {
  drop();
  if (thread_.joinable()) thread_.join();
}

void Background::drop() {
  next_ = nullptr;
  unwanted_ = true;
}

void Background::ask(Piece piece) {
  unwanted_ = true;
  if (busy()) {
    next_ = std::move(piece);
  } else {
    start(std::move(piece));
  }
}

void Background::start(Piece piece) {
  working_ = true;
  unwanted_ = false;
  thread_ = std::thread([this, piece = std::move(piece)] {
    QMetaObject::invokeMethod(
        &context_, [this, finish = piece()] { ended(finish); }, Qt::QueuedConnection);
  });
}

void Background::ended(const Finish& finish) {
  if (thread_.joinable()) thread_.join();
  working_ = false;
  const bool wanted = !unwanted_.exchange(true);
  if (Piece next = std::exchange(next_, nullptr)) {
    start(std::move(next));
  } else if (wanted) {
    finish();
  }
}

void Background::finish() {
  while (working_) {
    if (thread_.joinable()) thread_.join();
    QCoreApplication::sendPostedEvents(&context_, QEvent::MetaCall);
  }
}

}  // namespace orrery
