#include "models/text_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "models/quantity_text.hpp"

namespace ebb {

namespace {

/// Length of the UTF-8 character at text[i], 0 when it is malformed (RFC 3629: no overlong forms, no surrogates).
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U; };
  const auto follows = [&](std::size_t k) { return (byte(k) & 0xC0U) == 0x80U; };
  const unsigned first = byte(i);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(i + 1) ? 2 : 0;
  const unsigned second = byte(i + 1);
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return follows(i + 1) && follows(i + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && second < 0x90;
    const bool beyond = first == 0xF4 && second > 0x8F;
    return follows(i + 1) && follows(i + 2) && follows(i + 3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

void require_text(std::string_view text, const std::string& file) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    const bool control = static_cast<unsigned char>(text[i]) < 0x20 && !std::strchr("\t\n\r", text[i]);
    if (text[i] == '\0' || control)
      throw InputError(place_of_byte(text, i, file), "this is not a text file (a control character stands here)",
                       "give a text file, or see whether this one was damaged on its way");
    if (length == 0) throw InputError(place_of_byte(text, i, file), "this is not UTF-8", "save the file as UTF-8");
    i += length;
  }
}

}  // namespace

Place place_of_byte(std::string_view text, std::size_t offset, const std::string& file) {
  offset = std::min(offset, text.size());
  Place place{file, 1, 1};
  for (std::size_t i = 0; i < offset; ++i) {
    ++place.column;
    if (text[i] != '\n') continue;
    ++place.line;
    place.column = 1;
  }
  return place;
}

std::string read_text_file(const std::filesystem::path& path, std::int64_t most_bytes, const std::string& cure) {
  const std::string file = path.string();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found || file.empty() || file.find('\0') != std::string::npos)
    throw InputError({file}, "there is no such file", cure);
  if (status.type() == std::filesystem::file_type::directory)
    throw InputError({file}, "this is a directory", "give a file");
  if (status.type() == std::filesystem::file_type::none) throw IoError(file + ": cannot read: " + error.message());
  if (status.type() != std::filesystem::file_type::regular)
    throw InputError({file}, "this is not a regular file", "give a file");

  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError(file + ": cannot open: " + std::strerror(errno));
  // Never more than one byte over the limit, whatever the file system says about the size.
  std::string text(static_cast<std::size_t>(std::min<std::uintmax_t>(std::filesystem::file_size(path, error),
                                                                     static_cast<std::uintmax_t>(most_bytes) + 1)),
                   '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) throw IoError(file + ": cannot read: " + std::strerror(errno));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (static_cast<std::int64_t>(text.size()) > most_bytes)
    throw InputError({file}, "this file is larger than " + format_bytes({most_bytes}), "is it the right file?");
  require_text(text, file);
  return text;
}

}  // namespace ebb
