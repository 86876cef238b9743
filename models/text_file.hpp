// Reading and writing whole text files, with the checks that every file of the user's goes through before any parser
// sees it: it exists, is a regular file, is not huge, and is text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "models/errors.hpp"

namespace ebb {

/// The file's bytes. InputError: missing, a directory or another special file, larger than `most_bytes`, a zero byte,
/// or not UTF-8 (with the line and column of the first such byte). IoError: it cannot be opened or read.
/// `cure` completes the message for a missing file, e.g. with the nearest name that exists.
std::string read_text_file(const std::filesystem::path& path, std::int64_t most_bytes, const std::string& cure = "");

/// Where byte `offset` of `text` stands. Columns count bytes, as the YAML parser's do.
Place place_of_byte(std::string_view text, std::size_t offset, const std::string& file);

}  // namespace ebb
