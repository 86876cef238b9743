#include "models/text_output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "models/errors.hpp"
#include "models/terminal_text.hpp"

namespace ebb {

namespace {

void fail(const std::string& where) {
  if (errno == EPIPE) return;
  throw IoError(fmt::format("cannot write to {}: {}", where, std::strerror(errno)));
}

}  // namespace

void write_stdout(const std::string& text) {
  const std::string shown = terminal_text(text, ::isatty(STDOUT_FILENO) == 1 ? Styles::kept : Styles::escaped);
  const bool written = std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size();
  if (!written || std::fflush(stdout) != 0) fail("standard output");
}

void write_text_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return fail(path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  // fclose writes what is still buffered, so it must succeed too; it must run in either case.
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) fail(path);
}

}  // namespace ebb
