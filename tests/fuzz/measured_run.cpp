#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "sim/whatif/whatif_text.h"
#include "tests/fuzz/fuzz.h"

// Reads a measured run, which is a file in memory because its readers open files, and asks questions about it.
void orrery::fuzz::read_measured_run(std::string_view bytes) {
  static const int file = memfd_create("run", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, bytes.data(), bytes.size(), 0) < 0) std::abort();
  WhatifQuestion question;
  question.network = 2;
  question.even_stages = true;
  const WhatifAnswer answered = answer(orrery::read_measured_run({"/proc/self/fd/" + std::to_string(file)}), question);
  whatif_text(answered, question, {});
  whatif_json(answered, question);
}
