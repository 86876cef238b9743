// A made-up /proc and /sys: files under a directory of its own, gone with the object.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace ebb::test {

class FakeRoot {
 public:
  explicit FakeRoot(const std::filesystem::path& above = std::filesystem::temp_directory_path()) {
    std::string name = (above / "ebb-root-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path at = path_ + "/" + file;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace ebb::test
