#pragma once

#include <QObject>
#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>

namespace orrery {

// Does work of the window in a thread of its own, so that the window answers meanwhile: one piece at a time, of which
// only the last one asked for counts. Its functions are called in the window's thread, in which results are handed over
// too, by the event loop.
class Background {
 public:
  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();  // waits for the piece at work and drops what it made

  // Calls make(unwanted) in the thread, then done(what it returned) in the window's thread, or failed(message) if
  // make() threw. Pieces that were asked for before are dropped: one at work ends first, but nothing is done with what
  // it made; it may end sooner when `unwanted` is set. make() may also take nothing.
  template <class Make, class Done, class Failed>
  void run(Make make, Done done, Failed failed) {
    ask([this, make = std::move(make), done = std::move(done), failed = std::move(failed)]() -> Finish {
      const auto made_now = [&] {
        if constexpr (std::is_invocable_v<Make, const std::atomic<bool>&>)
          return make(unwanted_);
        else
          return make();
      };
      try {
        return [made = made_now(), done] { done(made); };
      } catch (const std::exception& e) {
        return [message = std::string(e.what()), failed] { failed(message); };
      } catch (...) {  // Stopped (sim/engine/simulate.h): the piece is unwanted
        return [failed] { failed("stopped"); };
      }
    });
  }
  void drop();                            // forgets all that was asked for
  bool busy() const { return working_; }  // whether a piece is at work
  void finish();                          // waits for what was asked for, and hands it over

 private:
  using Finish = std::function<void()>;  // hands over what a piece made
  using Piece = std::function<Finish()>;

  void ask(Piece piece);
  void start(Piece piece);
  void ended(const Finish& finish);

  std::thread thread_;
  Piece next_;                         // the piece to begin when the one at work has ended
  bool working_ = false;               // whether a piece is at work
  std::atomic<bool> unwanted_ = true;  // whether what it makes is to be dropped
  QObject context_;                    // receives the call that says that a piece has ended
};

}  // namespace orrery
