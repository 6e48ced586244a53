#pragma once

#include "models/load/features.h"

namespace orrery::feature {

// Each of these features says whether a spec has a frozen model beside the one that trains; combinations.cpp lists the
// options with which it does not work.
inline constexpr Feature kTwoModels = {"workload", "a second, frozen model (workload: distill or dpo)",
                                       [](S s) { return s.second.has_value(); }};
inline constexpr Feature kComparedStates = {"distill.features",
                                            "hidden states compared with a teacher's (distill.features)",
                                            [](S s) { return s.second && !s.second->features.student.empty(); }};
inline constexpr Feature kStreamsOfEither = {
    "model.hyper_connections", "residual streams of either model",
    [](S s) { return s.model.hyper_connections || (s.second && s.second->model.hyper_connections); }};
inline constexpr Feature kHostedSecond = {"workload", "a second model's weights on the host (offload)",
                                          [](S s) { return s.second && s.second->offload; }};
inline constexpr Feature kOwnGpus = {"workload", "a second model on GPUs of its own (gpus)", has_second_apart};
inline constexpr Feature kUnlikeRanks = {"strategy", "ranks of a stage that do unlike work", is::unlike_ranks};
inline constexpr Feature kEndsOnOneStage = {
    "strategy.schedule", "a schedule that puts both ends of the model on one of several stages", is::both_ends};
inline constexpr Feature kDiskWeights = {"strategy.offload.parameters", "weights on disks (nvme)",
                                         [](S s) { return behind_host(s.strategy.offload.parameters); }};
inline constexpr Feature kPreferencePairs = {"workload", "pairs of samples (workload: dpo)", [](S s) {
                                               return s.second && s.second->role == SecondModel::Role::reference;
                                             }};
inline constexpr Feature kNoExpertsAtAll = {"model.moe", "models without experts",
                                            [](S s) { return !s.model.moe && !(s.second && s.second->model.moe); }};
inline constexpr Feature kNoSharedExpertsAtAll = {"model.moe", "models without shared experts", [](S s) {
                                                    const auto shares = [](const Model& m) {
                                                      return m.moe && m.moe->shared_feed_forward > 0;
                                                    };
                                                    return !shares(s.model) && !(s.second && shares(s.second->model));
                                                  }};

}  // namespace orrery::feature
