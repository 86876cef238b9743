// What the `ebb` commands report, as plain data: the planner fills it in, the writers beside it turn it into JSON or
// into text for a terminal. Fields are named like the keys of the JSON documents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/units.hpp"
#include "reports/life.hpp"

namespace ebb::reports {

/// A candidate's settings in one of the forms that people paste (planner/paste_forms.hpp).
struct PasteForm {
  std::string format;              // flags, yaml, bridge, verl
  std::vector<std::string> lines;  // none: nothing to set, or no keys for it, as `notes` say
  std::vector<std::string> notes;
};

/// One policy with its parameters, evaluated. Parameters that the policy does not use are empty.
struct Candidate {
  std::string policy;
  std::optional<Numel> chunk_numel;
  std::optional<std::int64_t> chunk_size_mb;
  std::optional<double> fraction;
  std::optional<int> slots;
  std::optional<Bytes> cap;        // tidal, where it is not the default
  Bytes live_cap{0};               // tidal: the cap in force, given or default
  bool cap_keeps = true;           // ... and state stays on the device in what it leaves beside the peak
  std::vector<std::string> flags;  // argument tokens
  std::vector<PasteForm> forms;
  std::string requirement;  // key "requires"
  std::string takers;       // text only: who takes the flags
  bool deployable = false;
  bool feasible = false;
  Bytes device_peak{0};
  Bytes device_reserved{0};         // upper bound
  Bytes device_reserved_likely{0};  // by replay of the allocator
  std::string deciding_phase;       // of device_reserved: step, load or save
  Bytes device_resume{0};           // device_reserved of the job resumed with optimizer state; 0: not asked for
  Bytes device_between_steps{0};
  std::vector<NamedBytes> device_terms;
  Bytes host_pinned_per_rank{0};
  Bytes host_pinned_per_host{0};
  Bytes host_pinned_per_socket{0};  // beside the socket with most of the job's GPUs
  Bytes host_pageable_per_host{0};  // beside them at most: both together are what must fit
  std::string host_deciding_phase;  // in which they do: step, init, load or save
  Seconds optimizer{0};
  Seconds step{0};
  double slowdown = 1;
  Seconds first_step{0};
  Seconds second_step{0};
  Bytes first_steps_pinned{0};  // host bytes that a rank pins in these two
  std::string reason;
};

/// What every document says about itself and its job.
struct Header {
  std::string job;
  std::string ebb_version;
  std::string model;
  std::string cluster;
  std::int64_t gpus = 0;
  std::int64_t gpus_per_host = 0;
  Bytes device_budget{0};
  Bytes host_budget{0};
  bool compute_measured = false;              // forward and backward from the job, not by roofline
  std::vector<std::string> cluster_defaults;  // figures that the cluster leaves to Ebb, and where they come from
};

struct PlanReport {
  Header header;
  std::string objective = "step";          // what the recommended one is best in: step, memory or balanced
  std::vector<std::string> worst_case;     // --robust: what was assumed at its worst; empty without
  std::optional<std::size_t> recommended;  // into candidates
  std::vector<Candidate> candidates;       // in table order; Ebb's own schedules last
  std::vector<Candidate> front;            // no other needs less memory and is as fast; by memory; for JSON and HTML
  std::string shortfall;                   // when nothing is recommended
  std::vector<std::string> cures;
  std::string next_command;
  std::string megatron;  // the one asked for; "" for any
};

struct SimulateReport {
  Header header;
  std::vector<std::string> worst_case;  // as in PlanReport
  Candidate candidate;
  std::vector<Phase> phases;             // of the job's whole life
  std::vector<std::string> host_limits;  // what stands against pinning that much
};

struct LayoutShard {
  std::string name;
  Numel numel{0};
  std::int64_t bucket = 0;     // into LayoutReport::buckets
  std::int64_t group = 0;      // parameter group of its optimizer: 0 decayed, 1 not
  std::int64_t optimizer = 0;  // chained optimizer: 0 dense, 1 expert
  Numel offset{0};             // first element inside the parameter
};
struct LayoutBucket {
  Numel start{0};  // inside its buffer
  Numel numel{0};  // with padding
  Numel unpadded{0};
  std::int64_t group = 0;  // sharding group: 0 dense, 1 expert
  std::int64_t buffer = 0;
};
struct LayoutChunk {
  Numel numel{0};
  std::vector<std::int64_t> shards;  // into LayoutReport::shards
};

struct LayoutReport {
  Header header;
  std::int64_t rank = 0;
  std::string coordinates;  // "tensor 0, context 0, ..."
  Numel owned{0};
  Numel largest_shard{0};
  std::vector<LayoutShard> shards;
  std::vector<LayoutBucket> buckets;
  std::optional<std::vector<LayoutChunk>> chunks;  // when a packing was asked for
};

}  // namespace ebb::reports
