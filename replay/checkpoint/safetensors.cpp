#include "replay/checkpoint/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "models/errors.hpp"
#include "models/units.hpp"
#include "replay/checkpoint/file.hpp"
#include "replay/checkpoint/header_json.hpp"

namespace ebb::replay::checkpoint {

namespace {

constexpr std::array<std::pair<std::string_view, Dtype>, 4> kTypes = {
    {{"F32", Dtype::fp32}, {"BF16", Dtype::bf16}, {"F16", Dtype::fp16}, {"F8_E4M3", Dtype::fp8}}};
constexpr std::string_view kMetadata = "__metadata__";
constexpr std::size_t kMostDimensions = 16;

std::string_view word_of(Dtype type) {
  for (const auto& [word, known] : kTypes)
    if (known == type) return word;
  EBB_ASSERT(false);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      out += c;
  }
  return out + '"';
}

std::string tensor_text(const Tensor& tensor) {
  return fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted(tensor.name),
                     word_of(tensor.type), fmt::join(tensor.shape, ","), tensor.begin, tensor.end);
}

Dtype read_type(Cursor& json) {
  const std::string word = json.text();
  for (const auto& [known, type] : kTypes)
    if (known == word) return type;
  json.reject("this dtype is none that a checkpoint has");
}

/// Elements of `shape`, nothing where they pass 2^62.
std::optional<std::int64_t> numel_of(const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t numel = 1;
  for (const std::int64_t extent : shape) {
    if (extent != 0 && numel > kMost / extent) return std::nullopt;
    numel *= extent;
  }
  return numel;
}

Tensor read_tensor(Cursor& json, std::string name) {
  Tensor tensor;
  tensor.name = std::move(name);
  int seen = 0;
  const auto once = [&](int bit) {
    if (seen & bit) json.reject("a key stands here twice");
    seen |= bit;
  };
  json.object([&](const std::string& key) {
    if (key == "dtype") {
      once(1);
      tensor.type = read_type(json);
    } else if (key == "shape") {
      once(2);
      tensor.shape = json.integers(kMostDimensions);
    } else if (key == "data_offsets") {
      once(4);
      const std::vector<std::int64_t> offsets = json.integers(2);
      if (offsets.size() != 2) json.reject("expected two offsets");
      tensor.begin = offsets[0];
      tensor.end = offsets[1];
    } else {
      json.reject("an unknown key of a tensor");
    }
  });
  if (seen != 7) json.reject("a tensor needs dtype, shape and data_offsets");
  const std::optional<std::int64_t> numel = numel_of(tensor.shape);
  if (!numel || *numel > (std::int64_t{1} << 60) || tensor.end - tensor.begin != *numel * size_of(tensor.type))
    json.reject("shape and data_offsets contradict each other");
  return tensor;
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

std::string header_text(const Header& header) {
  std::string json = "{";
  const auto separate = [&json] { json += json.size() == 1 ? "" : ","; };
  if (!header.metadata.empty()) {
    json += quoted(kMetadata) + ":{";
    for (std::size_t i = 0; i < header.metadata.size(); ++i)
      json += fmt::format("{}{}:{}", i == 0 ? "" : ",", quoted(header.metadata[i].first),
                          quoted(header.metadata[i].second));
    json += '}';
  }
  for (const Tensor& tensor : header.tensors) {
    separate();
    json += tensor_text(tensor);
  }
  json += '}';
  json.resize(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(json.size()) + 8, kAlignment) - 8), ' ');
  std::string text;
  for (std::uint64_t length = json.size(), i = 0; i < 8; ++i) text += static_cast<char>(length >> (8 * i) & 0xffU);
  return text + json;
}

std::int64_t header_bytes(std::string_view first_8, std::int64_t file_bytes, const std::string& file) {
  if (first_8.size() < 8 || file_bytes < 8)
    throw InputError({file}, "too short for a safetensors file", "it is truncated, or no checkpoint");
  const std::uint64_t length = little_endian(first_8);
  if (length < 2 || length > static_cast<std::uint64_t>(kMostHeaderBytes))
    throw InputError({file}, fmt::format("its first 8 bytes give a header of {} bytes", length),
                     "this is no safetensors file, or its beginning is damaged");
  const std::int64_t bytes = static_cast<std::int64_t>(length) + 8;
  if (bytes > file_bytes)
    throw InputError({file}, fmt::format("its header should have {} bytes, the file has {}", bytes, file_bytes),
                     "it is truncated");
  return bytes;
}

Header parse_header(std::string_view text, std::int64_t file_bytes, const std::string& file) {
  EBB_ASSERT(text.size() > 8);
  Header header;
  Cursor json(text, 8, file);
  if (text[8] != '{') json.reject("expected '{'");
  std::set<std::string> names;
  json.object([&](std::string key) {
    if (!names.insert(key).second) json.reject("a name stands here twice");
    if (key != kMetadata) {
      header.tensors.push_back(read_tensor(json, std::move(key)));
      return;
    }
    json.object([&](std::string name) { header.metadata.emplace_back(std::move(name), json.text()); });
  });
  if (!json.at_end()) json.reject("something stands behind the header's end");
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::int64_t end = 0;
  for (const Tensor& tensor : header.tensors) {
    if (tensor.begin != end)
      throw InputError({file},
                       fmt::format("tensor \"{}\" begins at byte {} of the data, not at {}", tensor.name.substr(0, 100),
                                   tensor.begin, end),
                       "take another checkpoint");
    end = tensor.end;
  }
  const std::int64_t all = static_cast<std::int64_t>(text.size()) + end;
  if (all != file_bytes)
    throw InputError({file}, fmt::format("it should have {} bytes and has {}", all, file_bytes),
                     all > file_bytes ? "it is truncated" : "something was appended");
  return header;
}

}  // namespace ebb::replay::checkpoint
