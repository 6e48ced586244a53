#include <algorithm>
#include <cmath>

#include "models/cost/kernel_laws.h"

namespace orrery {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct Point {
  double x, y;
};

// The value at x of the line of least squares; its slope, that of ln(rate) over ln(power for each FLOP/s), is kept
// between 0 (clocks do not depend on power) and 3/2.
double on_line(const std::vector<Point>& points, double x) {
  const double n = static_cast<double>(points.size());
  double mx = 0, my = 0, xx = 0, xy = 0;
  for (const Point& p : points) mx += p.x / n, my += p.y / n;
  for (const Point& p : points) xx += (p.x - mx) * (p.x - mx), xy += (p.x - mx) * (p.y - my);
  const double slope = xx > 0 ? std::clamp(xy / xx, 0.0, 1.5) : 0;
  return my + slope * (x - mx);
}

using Rates = std::map<std::string, KernelRates>;

double fraction_from_others(const std::vector<std::string>& gpus, const Rates& rates, const Gpu& gpu,
                            double KernelRates::*fraction) {
  const auto power = [&](const Gpu& g) { return std::log(g.tdp_W / (peak_flops(g, Precision::bf16) * 1e-12)); };
  std::vector<Point> points;
  for (const std::string& other : gpus) {
    const auto at = rates.find(other);
    if (other == gpu.id || at == rates.end() || at->second.*fraction <= 0) continue;
    points.push_back({power(find_gpu(other)), std::log(at->second.*fraction)});
  }
  return points.empty() ? 0 : std::min(1.0, std::exp(on_line(points, power(gpu))));
}

double median_of_others(const std::vector<std::string>& gpus, const Rates& rates, std::string_view gpu,
                        double KernelRates::*number) {
  std::vector<double> values;
  for (const std::string& other : gpus) {
    if (const auto at = rates.find(other); other != gpu && at != rates.end()) values.push_back(at->second.*number);
  }
  return median(std::move(values));
}

// The GPUs of a family that have the compute capability of one of them, without it; the whole family if there are none.
std::vector<std::string> like(const std::vector<std::string>& gpus, const Rates& rates, const Gpu& gpu) {
  std::vector<std::string> alike;
  for (const std::string& other : gpus) {
    const bool known = other != gpu.id && rates.contains(other);
    if (known && find_gpu(other).compute_capability == gpu.compute_capability) alike.push_back(other);
  }
  return alike.empty() ? gpus : alike;
}

// The median of what others reach of their peak in 8 bits over what they reach in 16 bits, whatever their family.
double narrow_ratio_of_others(const Rates& rates, std::string_view gpu) {
  std::vector<double> ratios;
  for (const auto& [other, r] : rates) {
    if (other != gpu && r.fp8 > 0 && r.bf16 > 0) ratios.push_back(r.fp8 / r.bf16);
  }
  return median(std::move(ratios));
}

}  // namespace

KernelRates rates_from_others(const KernelLaws& laws, std::string_view name) {
  const Gpu gpu = find_gpu(name);
  KernelRates r;
  if (const auto* family = family_of(laws.products, name)) {
    r.bf16 = fraction_from_others(family->gpus, laws.rates, gpu, &KernelRates::bf16);
    if (gpu.tflops.contains("fp8")) r.fp8 = std::min(1.0, r.bf16 * narrow_ratio_of_others(laws.rates, name));
    r.memory = median_of_others(family->gpus, laws.rates, name, &KernelRates::memory);
    r.start_us = median_of_others(family->gpus, laws.rates, name, &KernelRates::start_us);
  }
  if (const auto* family = family_of(laws.attention, name)) {
    const std::vector<std::string> gpus = like(family->gpus, laws.rates, gpu);
    r.attention = median_of_others(gpus, laws.rates, name, &KernelRates::attention);
    r.attention_tail = median_of_others(gpus, laws.rates, name, &KernelRates::attention_tail);
  }
  return r;
}

}  // namespace orrery
