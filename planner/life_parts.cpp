#include "planner/life_parts.hpp"

#include <array>

namespace ebb {

std::span<const LifePart> followers(LifePart part) {
  static constexpr std::array kFresh = {LifePart::load, LifePart::load_params, LifePart::first_step,
                                        LifePart::first_skip};
  static constexpr std::array kLoaded = {LifePart::first_step, LifePart::first_skip};
  static constexpr std::array kSteady = {LifePart::step, LifePart::skip, LifePart::save, LifePart::reload};
  switch (part) {
    case LifePart::init:
    case LifePart::first_skip:
      return kFresh;
    case LifePart::load_params:
      return kLoaded;
    case LifePart::load:
    case LifePart::reload:
    case LifePart::first_step:
    case LifePart::step:
    case LifePart::skip:
    case LifePart::save:
      return kSteady;
  }
  return {};
}

}  // namespace ebb
