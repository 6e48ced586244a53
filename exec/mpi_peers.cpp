// A plugin of its own, so that no program that loads it only when a launcher started it needs MPI to run.
#include <sched.h>

#include <chrono>
#include <limits>
#include <numeric>
#include <thread>

#include "exec/mpi_session.h"
#include "models/peers.h"

namespace orrery {
namespace {

// A process that waits sleeps soon: what the others do takes milliseconds, and they may share its cores.
void wait_for(MPI_Request& request) {
  constexpr int kTries = 200;
  int done = 0;
  for (int i = 0; done == 0; ++i) {
    ORRERY_CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done == 0 && i < kTries) ::sched_yield();
    if (done == 0 && i >= kTries) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

class MpiPeers : public Peers {
 public:
  int rank() const override { return session_.rank(); }
  int size() const override { return session_.size(); }

  std::vector<std::string> gather(const std::string& mine) override {
    const auto length = static_cast<long long>(mine.size());
    std::vector<long long> lengths(static_cast<std::size_t>(size()));
    MPI_Request request = MPI_REQUEST_NULL;
    ORRERY_CHECK_MPI(
        MPI_Iallgather(&length, 1, MPI_LONG_LONG, lengths.data(), 1, MPI_LONG_LONG, session_.world(), &request));
    wait_for(request);
    const long long sum = std::accumulate(lengths.begin(), lengths.end(), 0LL);
    if (sum > std::numeric_limits<int>::max()) throw Error("MPI: more than 2 GiB in one exchange of a search", 1);
    std::vector<int> counts, places;
    int place = 0;
    for (const long long n : lengths) {
      counts.push_back(static_cast<int>(n));
      places.push_back(place);
      place += counts.back();
    }
    std::string all(static_cast<std::size_t>(sum), '\0');
    ORRERY_CHECK_MPI(MPI_Iallgatherv(mine.data(), static_cast<int>(length), MPI_CHAR, all.data(), counts.data(),
                                     places.data(), MPI_CHAR, session_.world(), &request));
    wait_for(request);
    std::vector<std::string> result;
    for (std::size_t r = 0; r < counts.size(); ++r)
      result.push_back(all.substr(static_cast<std::size_t>(places[r]), static_cast<std::size_t>(counts[r])));
    return result;
  }

  void abort(int status) override { session_.abort(status); }

 private:
  MpiSession session_;
};

}  // namespace
}  // namespace orrery

extern "C" orrery::Peers* orrery_make_peers() { return new orrery::MpiPeers; }
