// A file's bytes, as a test compares them.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ebb::test {

inline std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace ebb::test
