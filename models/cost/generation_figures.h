#pragma once

#include <string>

#include "models/cost/profile.h"

namespace orrery {

// Constants of the kernels that run only when a trained model generates text, fitted to measured kernels
// (models/data/fitted.json).
struct GenerationFigures {
  // The fraction of the memory bandwidth that matrix products with few rows and attention to the key/value cache reach,
  // and the fixed time of each, microseconds, which they take even if they move no bytes.
  double memory_part = 1, product_start_us = 0, attention_start_us = 0;
  // Direct all-reduces (direct_all_reduce.h): the fraction of NVLink's rate that they reach, and their fixed time,
  // microseconds, which an all-reduce of no bytes takes.
  double direct_part = 1, direct_start_us = 0;
  // The time that a small kernel takes in a CUDA graph, microseconds, in which it moves few bytes.
  double kernel_start_us = 0;
  // How unequally tokens choose experts where a spec does not say (model.moe.imbalance): the share of the r-th most
  // chosen expert is proportional to r^-expert_zipf.
  double expert_zipf = 0;
  // The part of the fp32 peak that attention on CUDA cores reaches (FlashAttention::on_cuda_cores): half at most, since
  // an element takes a conversion beside its multiplication.
  double vector_part = 1;
  // The time in which a server turns the text of a prompt into tokens, microseconds a token.
  double tokenise_us = 0;
};
const GenerationFigures& generation_figures();

// Returns what a benchmark of a stack's that answers one prompt takes beyond the prompt's pass, to set up a session,
// microseconds; 0 where none is known.
double session_us(const std::string& stack);

// Returns a GPU's constants as its kernels run where a trained model generates text (Profile::generates). The kernels
// to which these are fitted ran one after another in a CUDA graph, so that the gaps between them are in their times; a
// profile of the machine's own measurements keeps its numbers.
Profile generating(Profile profile);

}  // namespace orrery
