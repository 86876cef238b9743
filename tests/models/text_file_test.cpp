// A path of the user's that is no text file of reasonable size is refused before any parser sees it.
#include "models/text_file.hpp"

#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

/// A file that lives as long as the object, in the test's working directory.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) { std::ofstream(name(), std::ios::binary) << bytes; }
  ~TemporaryFile() { std::filesystem::remove(name()); }
  static std::string name() { return "text_file_test.tmp"; }
};

std::string error_for(const std::string& bytes) {
  const TemporaryFile file(bytes);
  return error_of([] { read_text_file(TemporaryFile::name(), 1000); });
}

}  // namespace

TEST_CASE("what is no text file says so") {
  REQUIRE(error_of([] { read_text_file("no/such.yaml", 1000, "did you mean \"x\"?"); }) ==
          "no/such.yaml: there is no such file; did you mean \"x\"?");
  REQUIRE(error_of([] { read_text_file("", 1000); }) == "there is no such file");
  REQUIRE(error_of([] { read_text_file("/", 1000); }) == "/: this is a directory; give a file");
  REQUIRE(error_of([] { read_text_file("/dev/zero", 1000); }) == "/dev/zero: this is not a regular file; give a file");
  REQUIRE(error_for(std::string("ab\n\0c", 5)) ==
          "text_file_test.tmp:2:1: this is not a text file (a control character stands here); "
          "give a text file, or see whether this one was damaged on its way");
  REQUIRE(error_for("caf\xc3\xa9 \xff\n") == "text_file_test.tmp:1:7: this is not UTF-8; save the file as UTF-8");
}

TEST_CASE("a file beyond the limit is refused without reading it all") {
  const TemporaryFile file("");
  std::filesystem::resize_file(TemporaryFile::name(), 100'000'000'000);  // sparse
  REQUIRE(error_of([] { read_text_file(TemporaryFile::name(), 1 << 20); }) ==
          "text_file_test.tmp: this file is larger than 1.000 MiB; is it the right file?");
}

TEST_CASE("UTF-8 by RFC 3629: overlong forms, surrogates and cut characters are not text") {
  REQUIRE(error_for("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") == "");
  for (const char* bad : {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80",
                          "\xe2\x82", "\x80", "\xf5\x80\x80\x80"})
    REQUIRE(error_for(bad).find("this is not UTF-8") != std::string::npos);
}

TEST_CASE("a file's bytes come back unchanged") {
  const TemporaryFile file("a: 1\r\n\tb\n");
  REQUIRE(read_text_file(TemporaryFile::name(), 1000) == "a: 1\r\n\tb\n");
}
