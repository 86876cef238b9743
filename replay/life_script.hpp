// The standard life of a proof, as data: steps, skipped steps, a save, a kill, a resume, a second save, a resume on
// another number of ranks; and the same training without any of it, which has to give the same numbers.
//
// A life is told in legs. A leg is what one process does, from init to its end; nothing of it but its checkpoints is
// left for the next. So a kill is the end of a leg that did not save last.
//
//   interrupted    own        init, steps to `save_at`, save, steps to `kill_at`; load that save while running
//   (reload),
//                             the same steps again; killed
//                  resumed    init, load, the same steps a third time, on to `reshard_at`, save
//                  resharded  on another number of ranks: init, load, save what was loaded, steps to the end
//                  fresh      init, only the parameters of the last save, two steps
//   uninterrupted  own        init, steps to `reshard_at`, save
//                  resharded, fresh: as above, without the save between
//   Without another number of ranks the resumed leg, and the uninterrupted one, goes on to the end and saves there.
//
// Not here: plans, executors, comparison (life_equivalence.hpp).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "replay/life.hpp"

namespace ebb::replay {

struct LifeShape {
  int steps = 20;
  std::vector<int> skips = {3};  // training steps (1, 2, ...) with `skip_value` in a gradient of the last rank
  float skip_value = std::numeric_limits<float>::infinity();
  int save_at = 6;
  int kill_at = 8;  // this many steps are lost from save_at on
  int reshard_at = 13;
  bool reshard = true;
};

/// The life above where `steps` is at least 20, else one squeezed into them: the first step skipped, too.
LifeShape standard_life(int steps);
inline constexpr int kShortLife = 8;

/// InputError, naming the option, for a life that has no room for all this.
void check_shape(const LifeShape& shape);

/// "8 steps: steps 1, 3 skipped (inf), saved after 4, killed after 5, ...".
std::string to_text(const LifeShape& shape);

enum class LegKind : std::uint8_t { own, resumed, resharded, fresh };
std::string_view name_of(LegKind kind);

struct Leg {
  LegKind kind = LegKind::own;
  LifeScript script;
  std::vector<int> taken;  // by step of the script: which training step it is; fresh: counted from 1
  bool other_ranks() const { return kind == LegKind::resharded; }
};

struct LifeSetting {
  TrainingOptions training;
  std::string directory;             // for the checkpoints of one life
  std::int64_t last_rank = 0;        // where gradients are spoiled
  std::int64_t last_other_rank = 0;  // on the other number of ranks
};

std::vector<Leg> interrupted_life(const LifeShape& shape, const LifeSetting& setting);
std::vector<Leg> uninterrupted_life(const LifeShape& shape, const LifeSetting& setting);

/// What a save that was killed half-way leaves behind, for the save of `step` to find: a .partial with a cut file.
void leave_unfinished_save(const std::string& checkpoints, int step);
/// Where the legs of a life on its own ranks have their checkpoints.
std::string own_checkpoints(const std::string& directory);

}  // namespace ebb::replay
