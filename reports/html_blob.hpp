// Columns of numbers for the page: one block of little-endian arrays, deflated and in base64. A browser inflates it
// with what it has built in (DecompressionStream), also from a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::reports {

class HtmlBlob {
 public:
  /// Where a column went, for the page's JSON: byte offset (a multiple of 8), number of elements.
  struct Column {
    std::size_t at = 0;
    std::size_t count = 0;
  };

  Column add(const std::vector<std::uint8_t>& values);
  Column add(const std::vector<std::uint32_t>& values);
  Column add(const std::vector<double>& values);

  /// zlib format, base64. Throws std::bad_alloc alone.
  std::string deflated() const;

 private:
  Column place(std::size_t count);

  std::string bytes_;
};

std::string base64(std::string_view bytes);

/// Text as part of a page: & < > " and ' become references; bytes that are not UTF-8 U+FFFD.
std::string escaped(std::string_view text);

/// JSON text inside a script element: `<`, `>`, `&`, U+2028 and U+2029 as \u escapes, so that no end tag, comment or
/// line separator stands in it.
std::string json_in_html(std::string_view json);

}  // namespace ebb::reports
