#include "viz/read/mapping_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace orrery {

// An entry for a guarded mapping, in a list that only grows because a signal handler may read it at any time; free
// entries are reused.
struct MappingGuard::Watched {
  std::atomic<bool> used = true;
  // address of a guarded mapping's first byte, and the address after its last; both 0 while this entry of the list is
  // free
  std::atomic<std::uintptr_t> begin = 0, end = 0;
  std::atomic<bool> shrunk = false;
  Watched* next = nullptr;
};

// State of the signal handler; it is global because a signal handler can only reach global variables.
struct GuardHandler {
  using Watched = MappingGuard::Watched;

  static std::atomic<Watched*>& list() {
    static std::atomic<Watched*> first = nullptr;
    return first;
  }

  static void handle(int, siginfo_t* about, void*) {
    const auto at = reinterpret_cast<std::uintptr_t>(about->si_addr);
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (Watched* w = list().load(); w != nullptr; w = w->next) {
      const std::uintptr_t end = w->end.load();
      if (at < w->begin.load() || at >= end) continue;
      const std::uintptr_t from = at / page * page;
      void* const zeros =
          ::mmap(reinterpret_cast<void*>(from), end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      if (zeros == MAP_FAILED) break;
      w->shrunk = true;
      return;
    }
    std::signal(SIGBUS, SIG_DFL);
    // the default handler is installed again, so this signal ends the program once the current handler returns
    std::raise(SIGBUS);
  }

  static void install() {
    static std::once_flag once;
    std::call_once(once, [] {
      struct sigaction action {};
      action.sa_sigaction = handle;
      action.sa_flags = SA_SIGINFO;
      ::sigaction(SIGBUS, &action, nullptr);
    });
  }

  static Watched* free_one() {
    for (Watched* w = list().load(); w != nullptr; w = w->next) {
      if (!w->used.exchange(true)) return w;
    }
    auto* const fresh = new Watched;  // never freed, because a signal handler may be reading the list
    fresh->next = list().load();
    while (!list().compare_exchange_weak(fresh->next, fresh)) {
    }
    return fresh;
  }
};

MappingGuard::MappingGuard(const void* begin, std::size_t bytes) : watched_(GuardHandler::free_one()) {
  watched_->shrunk = false;
  watched_->begin = reinterpret_cast<std::uintptr_t>(begin);
  watched_->end = reinterpret_cast<std::uintptr_t>(begin) + bytes;
  GuardHandler::install();
}

MappingGuard::~MappingGuard() {
  watched_->end = 0;
  watched_->begin = 0;
  watched_->used = false;
}

bool MappingGuard::shrunk() const { return watched_->shrunk; }

}  // namespace orrery
