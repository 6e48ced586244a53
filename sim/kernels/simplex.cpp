#include "sim/kernels/simplex.h"

#include <algorithm>

namespace orrery {
namespace {

struct Corner {
  std::vector<double> at;
  double value = 0;
};

constexpr double kSettled = 1e-6;  // the search ends when the values of all points differ by less

class Simplex {
 public:
  Simplex(const std::function<double(const std::vector<double>&)>& f, std::vector<double> start, double step) : f_(f) {
    points_.push_back(point(start));
    for (std::size_t i = 0; i < start.size(); ++i) {
      std::vector<double> at = start;
      at[i] += step;
      points_.push_back(point(std::move(at)));
    }
    sort();
  }

  // Moves the worst point beyond, or towards, the middle of the others; shrinks the simplex if that does not help.
  void move() {
    const Corner reflected = beyond(1);
    if (reflected.value < points_.front().value) {
      const Corner farther = beyond(2);
      points_.back() = farther.value < reflected.value ? farther : reflected;
    } else if (reflected.value < points_[points_.size() - 2].value) {
      points_.back() = reflected;
    } else {
      const Corner inside = beyond(reflected.value < points_.back().value ? 0.5 : -0.5);
      if (inside.value < std::min(reflected.value, points_.back().value))
        points_.back() = inside;
      else
        shrink();
    }
    sort();
  }
  int calls() const { return calls_; }
  bool settled() const { return points_.back().value - points_.front().value < kSettled; }
  const std::vector<double>& best() const { return points_.front().at; }

 private:
  Corner point(std::vector<double> at) {
    ++calls_;
    const double value = f_(at);
    return {std::move(at), value};
  }
  Corner beyond(double factor) {
    const std::size_t n = points_.size() - 1;
    std::vector<double> at(n);
    for (std::size_t i = 0; i < n; ++i) {
      double middle = 0;
      for (std::size_t p = 0; p < n; ++p) middle += points_[p].at[i] / static_cast<double>(n);
      at[i] = middle + factor * (middle - points_.back().at[i]);
    }
    return point(std::move(at));
  }
  void shrink() {
    for (std::size_t p = 1; p < points_.size(); ++p) {
      std::vector<double> at = points_[p].at;
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = (at[i] + points_.front().at[i]) / 2;
      points_[p] = point(std::move(at));
    }
  }
  void sort() {
    std::stable_sort(points_.begin(), points_.end(),
                     [](const Corner& a, const Corner& b) { return a.value < b.value; });
  }

  const std::function<double(const std::vector<double>&)>& f_;
  std::vector<Corner> points_;
  int calls_ = 0;
};

}  // namespace

std::vector<double> least_by_simplex(const std::function<double(const std::vector<double>&)>& f,
                                     std::vector<double> start, double step, int calls) {
  if (start.empty()) return start;
  Simplex simplex(f, std::move(start), step);
  while (simplex.calls() < calls && !simplex.settled()) simplex.move();
  return simplex.best();
}

}  // namespace orrery
