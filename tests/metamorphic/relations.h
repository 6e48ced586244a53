#pragma once

#include <span>
#include <string_view>

#include "tests/metamorphic/checks.h"

namespace orrery::test {

// A relation that must hold for every spec, or between a spec and a similar one: a row of the table in relations.cpp.
struct Relation {
  std::string_view name;
  void (*function)(Checks& checks, const Subject& subject);
  double share;  // share of the specs on which it is checked, unless it is asked for
};
std::span<const Relation> relations();

// Identities within a report (identities.cpp).
void sane(Checks& checks, const Subject& subject);
void determinism(Checks& checks, const Subject& subject);
void unfolded(Checks& checks, const Subject& subject);
// Less to do, or faster parts, take no longer (monotony.cpp).
void faster_links(Checks& checks, const Subject& subject);
void faster_gpu(Checks& checks, const Subject& subject);
void lower_latency(Checks& checks, const Subject& subject);
void more_work(Checks& checks, const Subject& subject);
void weak_scaling(Checks& checks, const Subject& subject);
// Sharding and recomputation save memory (savings.cpp).
void sharding_order(Checks& checks, const Subject& subject);
void recompute_order(Checks& checks, const Subject& subject);
// FLOPs, memory and traffic against independent formulas in this folder, and against those that explain prints
// (counts.cpp).
void flops(Checks& checks, const Subject& subject);
void volumes_by_form(Checks& checks, const Subject& subject);
void formulas(Checks& checks, const Subject& subject);
// The trace's file (traced.cpp).
void traced(Checks& checks, const Subject& subject);
// The picture of the plan (pictured.cpp).
void pictured(Checks& checks, const Subject& subject);

// Checkpoints: their bytes, and the time that writing them costs (checkpoints.cpp).
void checkpoints(Checks& checks, const Subject& subject);
// A frozen model beside the one that trains: what it holds, and what the loss holds of it (two_models.cpp).
void two_models(Checks& checks, const Subject& subject);

// Checks that need no random specs (closed_forms.cpp, closed_traffic.cpp).
void bubbles(Checks& checks);
void traffic(Checks& checks);
void every_gpu(Checks& checks);
void searched(Checks& checks);

}  // namespace orrery::test
