// NewerState: where the newest value of each owned element's state lies while a plan runs: in a buffer on the device,
// on the host, or both. Finds reads of a copy that is old, and the loss of the only one that is not.
//
// The ops are taken in plan order. That says enough: two accesses to the same elements that might run in another order
// are a hazard of their own (verify.hpp), so a plan without those does to each element what the plan's order does.
//
//   op                                        the device's copy             the host's copy
//   what `initial` buffers hold at the start  newest, in that buffer        old
//   copy in from the host's state             newest, if the host's was     must be the newest
//   copy in from a checkpoint buffer          newest                        old
//   zero_state, make_masters (kernels)        newest                        old
//   adam                                      must be newest; newest        old
//   cast, find_largest, quantize              must be newest
//   copy out to the host's state              must be newest                newest
//   copy out to a checkpoint buffer           must be newest
//   fetch, make_masters (host)                old                           newest
//   host Adam                                 old                           must be newest; newest
//   store                                                                   must be newest
//   release, other elements in the buffer     gone; must not be the only newest
//   end of the plan                           what lives on has what it holds: the next part counts on it
//
// Of several copies on the device the last one filled counts. State that does not exist yet (moments before the first
// step) is nowhere on the device and is taken to be on the host. Not here: parameters and gradients, and whether what
// was never made is read from the host.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "models/plan.hpp"
#include "planner/hazard.hpp"

namespace ebb {

class NewerState {
 public:
  explicit NewerState(const Plan& plan);

  /// The next op. O(log cells + cells touched), where a cell is a run of elements with the same history.
  void run(OpId id, const Op& op, std::vector<Hazard>& hazards);
  /// After the last op.
  void finish(std::vector<Hazard>& hazards);

 private:
  /// Of one state: which buffer has its newest value (none: no buffer), since when, and whether the host's is older.
  struct Copy {
    BufferId buffer;
    OpId writer;  // none: since before the plan
    bool newer = false;
  };
  struct Cell {
    std::int64_t end = 0;
    std::array<Copy, 3> copies;  // by state
  };
  using Cells = std::map<std::int64_t, Cell>;  // by begin; disjoint
  /// The first run of elements that something is wrong with, and of which states.
  struct Fault {
    ElementRange range;
    std::uint8_t states = 0;
    Copy copy;
  };

  bool tracked(BufferId buffer) const;
  std::uint8_t states_of(BufferId buffer) const;
  Cells::iterator first_at(std::int64_t at);
  Cells::iterator cut(ElementRange range);
  template <class Wrong>
  Fault find(ElementRange range, std::uint8_t states, Wrong wrong);
  Fault absent(ElementRange range, std::uint8_t states, BufferId from);
  void place(ElementRange range, std::uint8_t states, const Copy& copy);
  void drop(ElementRange range, std::uint8_t states, BufferId from);
  void make_newer(ElementRange range, std::uint8_t states, OpId writer);
  void make_current(ElementRange range, std::uint8_t states);

  void kernel(OpId id, const Op& op, std::vector<Hazard>& hazards);
  void copy_in(OpId id, const Op& op, std::vector<Hazard>& hazards);
  void host_work(OpId id, const Op& op, std::vector<Hazard>& hazards);
  void read_device(OpId id, const Op& op, std::vector<Hazard>& hazards);
  void read_host(OpId id, const Op& op, std::vector<Hazard>& hazards);
  void fill(OpId id, const Op& op, bool newer, std::vector<Hazard>& hazards);
  void leave(OpId id, BufferId buffer, std::string_view how, std::vector<Hazard>& hazards);
  void report(HazardKind kind, OpId id, const Fault& fault, std::string_view how, std::vector<Hazard>& hazards) const;

  const Plan& plan_;
  std::uint8_t on_device_ = 0;         // states that some device buffer is for
  Cells cells_;                        // elements whose newest value is on the device, perhaps on the host as well
  std::vector<ElementRange> present_;  // by buffer: which elements lie there
  std::vector<bool> alive_;            // by buffer
};

}  // namespace ebb
