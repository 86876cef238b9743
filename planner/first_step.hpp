// The first steps of a job: what they cost over a steady step, because host memory is pinned and state created then.
//
// Model. Every fresh pinned block costs cudaHostAlloc's time (sim::pin_time), on the host thread, which issues nothing
// meanwhile. What does not exist yet does not move: moments come into being on the device in the first optimizer step,
// zeroed at the device's memory rate. Who pins what when (reference: the sources named in lower_*.cpp; M masters, m
// moments):
//
//   policy       before the first step   first step                         second step
//   resident     -                       m created                          -
//   full-reload  -                       M pinned when state first leaves   m pinned when state leaves again
//   chunked      M                       m pinned chunk by chunk            -
//   windowed     -                       M pinned when masters first leave, m pinned in the optimizer step
//   cpu-adam     M                       gradients pinned, m touched        -
//   pipelined    all, in one region      -                                  -
//
// Measured (Megatron-LM, one H200; tests/data/megatron/measured-steps.json): resident host memory after the first step
// of full-reload holds the masters only, after the second all; under chunked all is there after the first, and its
// optimizer step takes as long as pinning the moments alone.
// Fresh pageable memory is charged like pinned memory: most of cudaHostAlloc is the kernel's page by page work
// (registering pages that exist takes a tenth: 0.033 of 0.34 s per GB, measured beside one H200).
// Not here: what the first forward costs by itself, with or without offload (loading kernels, tuning: 1.8 s in the
// measured runs); ranks of a host that hinder each other while they pin.
#pragma once

#include "planner/lower.hpp"

namespace ebb {

struct FirstSteps {
  Bytes pinned_before{0};     // by one rank, when the optimizer is built
  Bytes pinned_in_first{0};   // in the first step
  Bytes pinned_in_second{0};  // in the second
  Seconds optimizer{0};       // the first optimizer step
  Seconds first{0};           // the first whole step
  Seconds second{0};          // the second
};

/// `optimizer` and `step`: the steady durations of this rank or of the job's slowest. O(shards).
FirstSteps first_steps(const RankModel& rank, const Candidate& candidate, Seconds optimizer, Seconds step);

}  // namespace ebb
