#pragma once

namespace orrery {

// The share of standard normal values below x.
double normal_share(double x);

// The standard normal value that a share of all values, between 0 and 1, lies below; within 1e-12.
double normal_quantile(double share);

// The expected largest of n standard normal values, n at least 1: the integral of x over the distribution share(x)^n
// (David and Nagaraja 2003, Order Statistics, section 3.1).
double largest_normal(double n);

}  // namespace orrery
