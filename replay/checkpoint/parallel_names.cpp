#include "replay/checkpoint/parallel_names.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace ebb::replay::checkpoint {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kGroups = {
    {{"tp", "tensor"}, {"etp", "expert tensor"}, {"ep", "expert"}, {"pp", "pipeline"}}};

/// A name without its places, and the size of each group (1 where the name has no place in it).
struct Name {
  std::string_view base;
  std::array<std::int64_t, kGroups.size()> size = {1, 1, 1, 1};
};

/// "tp 0/2" of " [tp 0/2]" at the end of `text`, taken off it.
std::optional<std::string_view> take_place(std::string_view& text) {
  const std::size_t begin = text.rfind(" [");
  if (!text.ends_with(']') || begin == std::string_view::npos) return std::nullopt;
  const std::string_view place = text.substr(begin + 2, text.size() - begin - 3);
  text = text.substr(0, begin);
  return place;
}

Name parse(std::string_view text) {
  Name name{.base = text};
  while (const auto place = take_place(text)) {
    for (std::size_t g = 0; g < kGroups.size(); ++g) {
      if (!place->starts_with(kGroups[g].first) || place->substr(kGroups[g].first.size()).substr(0, 1) != " ") continue;
      const std::string_view size = place->substr(place->find('/') + 1);
      std::from_chars(size.data(), size.data() + size.size(), name.size[g]);
      name.base = text;
    }
    if (name.base.size() != text.size()) break;  // brackets of the name's own
  }
  return name;
}

}  // namespace

std::string other_parallel_size(const std::string& wanted, std::span<const Parameter> saved) {
  const Name mine = parse(wanted);
  for (const Parameter& parameter : saved) {
    const Name other = parse(parameter.name);
    if (other.base != mine.base) continue;
    std::string text;
    for (std::size_t g = 0; g < kGroups.size(); ++g)
      if (other.size[g] != mine.size[g])
        text += fmt::format("{}of {} parallel size {}, the job of {}", text.empty() ? "it is " : "; ",
                            kGroups[g].second, other.size[g], mine.size[g]);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace ebb::replay::checkpoint
