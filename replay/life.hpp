// Life: a job from the building of its optimizer over steps, skipped steps and saves to a resume, on one set of
// programs: the script, and what comes out of it. Two executors: reference_life() on the CPU, execute_life() on GPUs;
// both read and write real checkpoints.
//
// A resume is a script that begins with init and load: everything of the run before is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/execute.hpp"
#include "replay/program.hpp"
#include "replay/reference.hpp"
#include "replay/training.hpp"

namespace ebb::replay {

struct LifeEvent {
  enum class Kind : std::uint8_t {
    init,
    load,         // all state of the checkpoint; between steps: LifePart::reload
    load_params,  // the parameters alone
    steps,
    save,
  };
  Kind kind = Kind::steps;
  int steps = 0;
  std::string directory;  // load, load_params: the checkpoint; save: where checkpoints go, as a step of their own
  bool measured = false;  // save: LifeScript::beside_save is called right before and right after it
};

struct LifeScript {
  TrainingOptions training;
  std::vector<LifeEvent> events;
  std::size_t keep = 2;  // checkpoints that a save leaves in its directory; 0: all
  std::function<void()> beside_save = {};
};

/// Of one part, in the order of appearance.
struct PartPeak {
  LifePart part = LifePart::step;
  Bytes live{0};     // as the executor allocated and released
  Bytes planned{0};  // LiveMeter over the plan
};

/// What a save or a load moved, of one rank.
struct CheckpointFigures {
  bool saved = true;
  std::string directory;
  Bytes bytes{0};
  double seconds = 0;          // the whole part, until all is on the disk
  double storage_seconds = 0;  // of them: reading or writing files
};

struct LifeNumbers {
  std::vector<StepNumbers> steps;
  TrainingPlace place;            // at the end
  std::uint64_t final_state = 0;  // as RankNumbers'
  std::uint64_t parameters = 0;   // of it: parameters (quantised ones with scales)
  std::int64_t strays = 0;        // reference only
  std::vector<PartPeak> peaks;
  std::vector<CheckpointFigures> checkpoints;
  MemoryFigures memory;  // GPUs only
};

/// One rank's programs and the plans they stand on.
struct LifeRank {
  LifePrograms programs;
};

/// All ranks of the job (or of the host, on GPUs). `held_back`: as in ReferenceOptions.
std::vector<LifeNumbers> reference_life(std::span<const LifeRank> ranks, const LifeScript& script,
                                        std::optional<StreamKind> held_back = std::nullopt, std::size_t most_on = 0);

struct LifeRun {
  std::vector<LifeNumbers> ranks;
  bool first_process = true;
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<std::string> remarks;
};
/// Of `options` it takes devices, compute, framework_time, poison, slow, keep_free. Errors of execute(), and those of
/// checkpoints; whatever happens, nothing stays allocated.
LifeRun execute_life(std::span<const LifeRank> ranks, const LifeScript& script, const ExecuteOptions& options);

}  // namespace ebb::replay
