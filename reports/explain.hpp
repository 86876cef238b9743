// `ebb explain` as plain data: the planner fills it in (planner/explain.hpp says how each figure comes about).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/units.hpp"
#include "reports/answer.hpp"
#include "reports/life.hpp"

namespace ebb::reports {

/// One operation of the path that the step took.
struct PathOperation {
  std::int64_t op = 0;  // into the plan's ops
  std::string phase;
  std::string what;
  std::string stream;
  Seconds start{0};
  Seconds end{0};
  std::string waited_for;  // why it started no earlier
  Seconds waited{0};       // before start, with nothing of the path under way
};

/// Operations of the path alike: one phase, one kind, one stream.
struct PathSegment {
  std::string phase;
  std::string what;
  std::string stream;
  std::string waited_for;  // what most of its operations waited for
  std::int64_t operations = 0;
  Seconds time{0};
  double percent = 0;  // of the step, in tenths; all together 100
};

struct Bottleneck {
  std::string resource;  // compute, link, device memory, collectives, host
  Seconds time{0};       // on the path
  std::string sentence;
};

/// A candidate beside the explained one.
struct Neighbour {
  std::string change;  // "next smaller chunk"
  Candidate candidate;
  std::string verdict;
};

/// What shards, which Megatron keeps whole, say about chunks.
struct ShardLimit {
  std::string parameter;  // that the largest shard is of
  std::int64_t rank = 0;
  Numel largest{0};
  Bytes window{0};          // its state
  std::string chunk;        // the candidate's own limit: "400,000,000 elements", "128 MiB of moments"; "" for none
  bool decides = false;     // the largest shard is above it: the chunk is the shard
  bool cut = false;         // Ebb's own schedules cut shards
  std::string explanation;  // how the shard comes about
  struct Lever {
    std::string argument;  // "--ddp-bucket-size 10000000"
    Numel largest{0};      // the largest shard with it
  };
  std::vector<Lever> levers;                // those that were tried and lower it
  std::vector<std::string> without_effect;  // ... and those that do not
};

/// What no schedule on this hardware that moves what the candidate moves can be below.
struct LowerBound {
  std::string name;
  Seconds time{0};
  std::string origin;
};

struct MemoryBound {
  Bytes least{0};  // allocated at the peak with no optimizer state on the device at all
  Bytes peak{0};   // the candidate's
  std::int64_t rank = 0;
};

/// The job changed in one way, searched again.
struct WhatIf {
  std::string change;
  std::string recommendation;  // "" : nothing fits, or the changed job is not valid
  std::vector<std::string> flags;
  bool differs = false;
  std::optional<Seconds> step;
  std::optional<Bytes> needs;  // reserved at most
  std::string note;            // why there is no answer
};

/// A phase in which tidal takes longer than resident, or less where negative; of the step phase all of it.
struct TidePart {
  std::string phase;
  Seconds time{0};
};

/// What `tidal` would reach (planner/explain_tide.cpp), and the fluid bound of its schedule; all of the slowest rank.
struct Tide {
  enum class Limit : std::uint8_t { nothing, link, valley, cap, second_pass };
  std::int64_t rank = 0;
  Numel piece{0};
  Seconds step{0};              // the whole step, simulated
  Bytes peak{0};                // allocated
  Seconds exposed{0};           // over resident's step without its optimizer
  std::vector<TidePart> parts;  // of it
  Seconds bound{0};             // least exposed time: the fluid relaxation
  Seconds even_bound{0};        // about the same with even shares of the link: a yardstick, which small copies can pass
  Bytes state{0};
  Bytes kept{0};      // never moves
  Bytes in{0};        // can come in before the step, counted in compute time
  Bytes out{0};       // can leave behind it
  Bytes room{0};      // for state while the optimizer steps
  Bytes cap{0};       // live bytes stay below
  bool keeps = true;  // state stays on the device in what the cap leaves beside the peak
  Limit limit = Limit::nothing;
};

struct Explanation {
  std::int64_t rank = 0;  // the slowest: the path is its
  Seconds step{0};
  std::vector<PathSegment> segments;
  std::vector<PathOperation> path;   // the first kMostPathOperations
  std::int64_t path_operations = 0;  // of the whole path
  Bottleneck bottleneck;
  Seconds optimizer{0};            // the step phase
  Seconds added{0};                // over resident's step
  std::vector<LowerBound> bounds;  // of the step phase, for the bytes that the candidate moves in it
  MemoryBound memory;
  std::vector<Neighbour> neighbours;
  ShardLimit shard;
  std::optional<Tide> tide;
  std::vector<WhatIf> what_ifs;
};

/// Where the numbers come from.
struct ExplainReport {
  Header header;
  Candidate candidate;
  std::string chosen;                   // why this candidate
  std::vector<std::string> worst_case;  // as in PlanReport
  std::optional<std::string> phase;     // asked for; phases has no other then, and there is no explanation
  std::vector<Phase> phases;
  Curve curve;
  std::optional<Explanation> explanation;
};

}  // namespace ebb::reports
