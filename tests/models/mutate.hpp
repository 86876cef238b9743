// Random damage to a text, for tests of readers.
#pragma once

#include <random>
#include <string>

namespace ebb::test {

/// One to four edits: a byte replaced, some erased, a piece copied elsewhere. Never empty.
inline std::string mutate(std::string text, std::mt19937& random) {
  for (auto edits = 1 + random() % 4; edits > 0; --edits) {
    const std::size_t at = random() % text.size();
    switch (random() % 3) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + random() % 8);
        break;
      default:
        text = text.substr(0, at) + text.substr(random() % text.size(), random() % 16) + text.substr(at);
    }
    if (text.empty()) text.assign(1, ' ');
  }
  return text;
}

}  // namespace ebb::test
