// What a job and a candidate must satisfy before anything is computed from them: the rules (rules.hpp), refused all at
// once, and requests for a candidate, completed or refused. Every error names the place of the key and the cure. Not
// here: the rules themselves, and the syntax of the files (models/).
#pragma once

#include <optional>
#include <string>

#include "models/job.hpp"
#include "models/policy.hpp"
#include "planner/flags.hpp"

namespace ebb {

/// InputError that lists every violated rule, a line each: of the job, and of the policy that it names. `megatron` is
/// what the user runs.
void check(const Job& job, Megatron megatron = Megatron::any);

/// A candidate as the user wrote it: what is not given is empty.
struct CandidateRequest {
  std::optional<Policy> policy;
  std::optional<Numel> chunk_numel;
  std::optional<std::int64_t> chunk_size_mb;
  std::optional<double> fraction;
  std::optional<int> slots;
  std::optional<Bytes> cap;
};

/// How messages name the fields of a request: "--chunk-numel" on the command line, the key's place in a job.
struct RequestPlaces {
  Place policy, chunk_numel, chunk_size_mb, fraction, slots, cap;
};

/// What is wrong with a request: the field as the job's `offload` block calls it, and what to do.
struct RequestProblem {
  std::string field, problem, cure;
};

/// A field out of range, or one that the request's policy does not use. Without a policy the fields only limit what a
/// search tries.
std::optional<RequestProblem> problem_of(const CandidateRequest& request);

/// InputError for problem_of(request).
void check_request(const CandidateRequest& request, const RequestPlaces& places);

/// The candidate that the request describes, with defaults for what its policy can leave out (windowed: chunk 0 and
/// fraction 1; cpu-adam: fraction 1; pipelined: 2 slots of 4 Mi elements, the fastest that was measured on an H200).
/// InputError: no policy, what check_request rejects, or chunked without chunk_numel.
Candidate candidate_of(const CandidateRequest& request, const RequestPlaces& places);

/// InputError that lists every rule that forbids the policy to this job. Precondition: check(job) passed.
void check_policy(const Job& job, Policy policy);

/// InputError for what check_policy rejects, and when the candidate would cut the state into more chunks than a
/// schedule of slots may have. Precondition: check(job) passed.
void check(const Job& job, const Candidate& candidate, const RequestPlaces& places);

/// A chunk of more elements than any rank's optimizer owns, in words, with what follows from it; "" otherwise. It is no
/// error: the candidate means what it says. Preconditions: check(job) and check() of the candidate passed.
std::string oversize_of(const Job& job, const Candidate& candidate);

/// InputError for an unknown word, with the nearest policy.
Policy parse_policy(std::string_view word, const Place& place);

}  // namespace ebb
