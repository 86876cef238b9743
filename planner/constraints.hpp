// What a job and a candidate must satisfy before anything is computed from them: sizes that divide, settings that
// Megatron-LM accepts together. Every error names the place of the key and the cure. Not here: the syntax of the files
// (models/) and what merely makes a policy undeployable (flags.hpp).
#pragma once

#include <optional>
#include <string>

#include "models/job.hpp"
#include "models/policy.hpp"

namespace ebb {

/// InputError for the first violated rule, in the order ranges, parallel sizes, pipeline, tensor, experts, context,
/// batch, optimizer instances, precision, recomputation, budget, offload.
/// Source of the rules: Megatron-LM main d98e8a64dd, megatron/training/arguments.py and core/transformer.
void check(const Job& job);

/// A candidate as the user wrote it: what is not given is empty.
struct CandidateRequest {
  std::optional<Policy> policy;
  std::optional<Numel> chunk_numel;
  std::optional<std::int64_t> chunk_size_mb;
  std::optional<double> fraction;
  std::optional<int> slots;
};

/// How messages name the fields of a request: "--chunk-numel" on the command line, the key's place in a job.
struct RequestPlaces {
  Place policy, chunk_numel, chunk_size_mb, fraction, slots;
};

/// InputError for a field out of range, or for one that the request's policy does not use. Without a policy the fields
/// only limit what a search tries.
void check_request(const CandidateRequest& request, const RequestPlaces& places);

/// The candidate that the request describes, with defaults for what its policy can leave out (windowed: chunk 0 and
/// fraction 1; cpu-adam: fraction 1; pipelined: 2 slots of 4 Mi elements, the fastest that was measured on an H200).
/// InputError: no policy, what check_request rejects, or chunked without chunk_numel.
Candidate candidate_of(const CandidateRequest& request, const RequestPlaces& places);

/// InputError when the candidate would cut this job's state into more chunks than a schedule of slots may have.
/// Precondition: check(job) passed.
void check(const Job& job, const Candidate& candidate, const RequestPlaces& places);

/// InputError for an unknown word, with the nearest policy.
Policy parse_policy(std::string_view word, const Place& place);

}  // namespace ebb
