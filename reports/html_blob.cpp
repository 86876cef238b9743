#include "reports/html_blob.hpp"

#include <zlib.h>

#include <bit>
#include <new>

#include "models/errors.hpp"

namespace ebb::reports {

namespace {

template <class Unsigned>
void append(std::string& bytes, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

/// Bytes of the UTF-8 sequence at `i`; 0: it is none. RFC 3629: no overlong forms, surrogates or more than U+10FFFF.
std::size_t sequence_at(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U; };
  const auto follows = [&](std::size_t k) { return (byte(k) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!follows(1) || !follows(2)) return 0;
    if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
    return 4;
  }
  return 0;
}

std::string_view reference_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

HtmlBlob::Column HtmlBlob::place(std::size_t count) {
  while (bytes_.size() % 8 != 0) bytes_.push_back('\0');
  return {bytes_.size(), count};
}

HtmlBlob::Column HtmlBlob::add(const std::vector<std::uint8_t>& values) {
  const Column column = place(values.size());
  for (const std::uint8_t value : values) bytes_.push_back(static_cast<char>(value));
  return column;
}

HtmlBlob::Column HtmlBlob::add(const std::vector<std::uint32_t>& values) {
  const Column column = place(values.size());
  for (const std::uint32_t value : values) append(bytes_, value);
  return column;
}

HtmlBlob::Column HtmlBlob::add(const std::vector<double>& values) {
  const Column column = place(values.size());
  for (const double value : values) append(bytes_, std::bit_cast<std::uint64_t>(value));
  return column;
}

std::string HtmlBlob::deflated() const {
  uLongf size = compressBound(static_cast<uLong>(bytes_.size()));
  std::string packed(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes_.data()), static_cast<uLong>(bytes_.size()), 9);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  EBB_ASSERT(result == Z_OK);  // the buffer is large enough
  packed.resize(size);
  return base64(packed);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text.push_back(i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=');
  }
  return text;
}

std::string escaped(std::string_view text) {
  std::string html;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_at(text, i);
    if (length == 0) {
      html += "\xef\xbf\xbd";  // U+FFFD
      ++i;
      continue;
    }
    const std::string_view reference = reference_of(text[i]);
    html += reference.empty() ? text.substr(i, length) : reference;
    i += length;
  }
  return html;
}

std::string json_in_html(std::string_view json) {
  std::string html;
  html.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = json.substr(i, 3);
    if (rest == "\xe2\x80\xa8" || rest == "\xe2\x80\xa9") {
      html += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (json[i] == '<') {
      html += "\\u003c";
    } else if (json[i] == '>') {
      html += "\\u003e";
    } else if (json[i] == '&') {
      html += "\\u0026";
    } else {
      html += json[i];
    }
  }
  return html;
}

}  // namespace ebb::reports
