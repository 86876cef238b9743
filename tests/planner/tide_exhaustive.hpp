// The least exposed time of any schedule of whole pieces, by exhaustive search: for tests on tiny instances.
#pragma once

#include <vector>

namespace ebb {

/// In whole units of time and of work: a piece is `work` units, a direction moves at most h2d (d2h) of them in a unit
/// of time, both together at most `both`. Rooms are in pieces, one for each unit of time.
struct TinyTide {
  int pieces = 0;
  int work = 1;
  int h2d = 1;
  int d2h = 1;
  int both = 2;
  int latency = 0;  // of a copy
  int update = 0;   // of a piece: 0 or 1
  std::vector<int> rise;
  std::vector<int> fall;
  int step_room = 1;
};

/// The least time by which one period of the steady state is longer than its rise and its fall. Everything is tried in
/// every unit of time: starting a copy or not, any split of the links, keeping any number of pieces through the peak,
/// and making the forward, the backward and the first update wait.
int least_exposed(const TinyTide& tide);

}  // namespace ebb
