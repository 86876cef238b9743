// The header of safetensors files: what the format's description allows is read, nothing else, whatever bytes come.
#include "replay/checkpoint/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"
#include "tests/models/mutate.hpp"
#include "tests/replay/checkpoint_cases.hpp"

namespace ebb::test {

namespace {

std::string with_length(const std::string& json) {
  std::string text;
  for (std::size_t i = 0; i < 8; ++i) text += static_cast<char>(json.size() >> (8 * i) & 0xffU);
  return text + json;
}

ck::Header parsed(const std::string& json, std::int64_t data) {
  const std::string text = with_length(json);
  const std::int64_t all = static_cast<std::int64_t>(text.size()) + data;
  REQUIRE(ck::header_bytes(text, all, "f") == static_cast<std::int64_t>(text.size()));
  return ck::parse_header(text, all, "f");
}

}  // namespace

TEST_CASE("a header as the format's description has it is read") {
  const ck::Header header = parsed(
      R"({"__metadata__":{"k":"v\u00e9\ud83d\ude00\n"}, "b":{"shape":[2,3],"dtype":"BF16","data_offsets":[8,20]},
"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"scalar":{"dtype":"F16","shape":[],"data_offsets":[20,22]}}  )",
      22);
  CHECK(header.metadata == std::vector<std::pair<std::string, std::string>>{{"k", "v\xc3\xa9\xf0\x9f\x98\x80\n"}});
  CHECK(header.tensors == std::vector<ck::Tensor>{{"a", Dtype::fp32, {2}, 0, 8},
                                                  {"b", Dtype::bf16, {2, 3}, 8, 20},
                                                  {"scalar", Dtype::fp16, {}, 20, 22}});
  CHECK(parsed("{}", 0).tensors.empty());
}

TEST_CASE("what is written is read back and its data begins at a multiple of 4096") {
  for (std::size_t length = 1; length < 9000; length += 97) {
    const ck::Header header{.metadata = {{"\"", "\\\n\x01"}},
                            .tensors = {{std::string(length, 'x'), Dtype::fp8, {7}, 0, 7}}};
    const std::string text = ck::header_text(header);
    CHECK(text.size() % 4096 == 0);
    const auto all = static_cast<std::int64_t>(text.size()) + 7;
    CHECK(ck::header_bytes(text, all, "f") == static_cast<std::int64_t>(text.size()));
    CHECK(ck::parse_header(text, all, "f") == header);
  }
}

TEST_CASE("every violation of the format is refused") {
  const std::string tensor = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  CHECK(parsed("{" + tensor + "}", 8).tensors.size() == 1);
  const std::vector<std::string> wrong = {
      " {" + tensor + "}",
      "{" + tensor,
      "{" + tensor + "}x",
      "{" + tensor + ",}",
      "{" + tensor + "," + tensor + "}",
      "[]",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
      R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[02],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
      R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})",
      R"({"a":{"dtype":"F32","shape":[2]}})",
      R"({"a":[]})",
      R"({"__metadata__":{"k":1}})",
      R"({"__metadata__":{"k":{}}})",
      R"({"a\ud800":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      R"({"a\x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      "{\"a\n\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})"};
  for (const std::string& json : wrong) {
    INFO(json);
    CHECK(error_of([&] { parsed(json, 8); }).starts_with("f: "));
  }
  CHECK(error_of([&] { parsed("{" + tensor + "}", 7); }).find("truncated") != std::string::npos);
  CHECK(error_of([&] { parsed("{" + tensor + "}", 9); }).find("appended") != std::string::npos);
}

TEST_CASE("lengths beyond the file or the format's limit are refused before anything is read") {
  const auto refused = [](std::uint64_t length, std::int64_t file_bytes) {
    std::string first;
    for (std::size_t i = 0; i < 8; ++i) first += static_cast<char>(length >> (8 * i) & 0xffU);
    return !error_of([&] { ck::header_bytes(first, file_bytes, "f"); }).empty();
  };
  CHECK_FALSE(refused(2, 10));
  CHECK(refused(2, 9));
  CHECK(refused(0, 100));
  CHECK(refused(100'000'001, std::int64_t{1} << 40));
  CHECK(refused(~std::uint64_t{0}, 100));
  CHECK(refused(std::uint64_t{1} << 63, 100));
  CHECK(!error_of([] { ck::header_bytes("1234567", 7, "f"); }).empty());
}

TEST_CASE("random damage ends in a refusal or in a description of the whole file") {
  const std::string json =
      R"({"__metadata__":{"k":"v\u00e9"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]},"c":{"dtype":"F8_E4M3","shape":[],"data_offsets":[14,15]}})";
  std::mt19937 random(5);
  int passed = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string text = with_length(mutate(json, random));
    const auto all = static_cast<std::int64_t>(text.size()) + 15;
    try {
      const ck::Header header = ck::parse_header(text, all, "f");
      ++passed;
      std::int64_t end = 0;
      for (const ck::Tensor& tensor : header.tensors) {
        REQUIRE(tensor.begin == end);
        end = tensor.end;
      }
      REQUIRE(end == 15);
    } catch (const InputError&) {
    }
  }
  CHECK(passed > 0);
  CHECK(passed < 100'000);
}

}  // namespace ebb::test
