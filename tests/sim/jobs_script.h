#pragma once

namespace orrery::test {

// The begin of a bash script that stands in for the program for GPU ranks: with --jobs PIPE it starts itself once for
// each job that comes through the pipe, with the words of the job, until one fails.
inline constexpr char kJobsScript[] = R"sh(#!/bin/bash
if [[ $1 == --jobs ]]; then
  while read -r line; do
    eval "words=($(sed 's/^\[//; s/\]$//; s/","/" "/g' <<<"$line"))"
    "$0" "${words[@]}" || exit
  done < "$2"
  exit 0
fi
)sh";

}  // namespace orrery::test
