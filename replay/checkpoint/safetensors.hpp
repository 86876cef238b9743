// The header of a safetensors file (https://github.com/huggingface/safetensors, "Format"): 8 bytes of little-endian
// length N, N bytes of JSON that begin with '{' and may end in spaces, then the data of all tensors without holes.
// Offsets count from the first byte of data. Written here so that data begins at a multiple of 4096; read strictly:
// what this accepts is exactly one well-formed description of the whole file, and whatever bytes come, it ends in a
// Header or in an InputError.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/dtype.hpp"

namespace ebb::replay::checkpoint {

struct Tensor {
  std::string name;
  Dtype type = Dtype::fp32;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Tensor&) const = default;
};

struct Header {
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Tensor> tensors;  // ascending by begin, each where the last ends
  bool operator==(const Header&) const = default;
};

/// The format's own limit: readers refuse longer headers.
inline constexpr std::int64_t kMostHeaderBytes = 100'000'000;

/// The first bytes of a file with these tensors, a multiple of 4096; deterministic.
std::string header_text(const Header& header);

/// How many bytes length and header take, from the file's first 8. InputError naming `file`.
std::int64_t header_bytes(std::string_view first_8, std::int64_t file_bytes, const std::string& file);
/// `text`: the file's first header_bytes(). InputError naming `file` and the place.
Header parse_header(std::string_view text, std::int64_t file_bytes, const std::string& file);

}  // namespace ebb::replay::checkpoint
