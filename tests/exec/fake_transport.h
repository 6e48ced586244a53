#pragma once

#include <memory>
#include <string>

#include "exec/transport/transport.h"
#include "models/base/error.h"

namespace orrery::test {

// A transport without peers: a transfer moves nothing and ends after so many looks at it, or never, or fails.
class FakeTransport : public Transport {
 public:
  explicit FakeTransport(int looks) : looks_(looks) {}

  std::string fail_start, fail_done;
  bool never = false;
  int started() const { return started_; }

  std::unique_ptr<Pending> start(LaneKind, const CollectiveCall&) override { return start_one(); }
  std::unique_ptr<Pending> start(LaneKind, const MessageCall&) override { return start_one(); }

 private:
  struct Counted : Pending {
    explicit Counted(FakeTransport& t) : transport(t), left(t.looks_) {}
    bool done() override {
      if (!transport.fail_done.empty()) throw Error(transport.fail_done);
      return !transport.never && --left <= 0;
    }
    FakeTransport& transport;
    int left;
  };

  std::unique_ptr<Pending> start_one() {
    if (!fail_start.empty()) throw Error(fail_start);
    ++started_;
    return std::make_unique<Counted>(*this);
  }

  int looks_, started_ = 0;
};

}  // namespace orrery::test
