// A hostile or broken file ends in one message with its place, never in a crash, a hang or a huge allocation.
#include "models/yaml_tree.hpp"

#include "tests/catch.hpp"
#include "tests/models/error_of.hpp"

using namespace ebb;

namespace {

std::string yaml_error(const std::string& text) {
  return error_of([&] { parse_yaml(text, "f.yaml"); });
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("a document becomes nodes with places counted from one") {
  const YamlNode root = parse_yaml("a: 1\nb:\n  c: [x, \"y z\"]\nd:\n", "f.yaml");
  REQUIRE(root.kind == YamlNode::Kind::map);
  REQUIRE(root.find("a")->text == "1");
  REQUIRE(root.find("a")->place.text() == "f.yaml:1:4");
  const YamlNode* list = root.find("b")->find("c");
  REQUIRE(list->kind == YamlNode::Kind::sequence);
  REQUIRE(list->entries[1].value.text == "y z");
  REQUIRE(list->entries[1].value.place.text() == "f.yaml:3:10");
  REQUIRE(root.find("d")->kind == YamlNode::Kind::null);
  REQUIRE(root.find("d")->place.text() == "f.yaml:4:1");  // its key: there is no value to point at
  REQUIRE(root.find("e") == nullptr);
}

TEST_CASE("aliases, merge keys, tags, duplicate keys and second documents are refused at their place") {
  REQUIRE(yaml_error("a: &x 1\nb: *x\n") ==
          "f.yaml:2:4: aliases (*name) are not read, so that a small file cannot expand into a huge one; write the "
          "value out");
  REQUIRE(yaml_error("a:\n  <<: {b: 1}\n") == "f.yaml:2:3: merge keys (<<) are not read; repeat the keys");
  REQUIRE(yaml_error("a: !!int 3\n").starts_with("f.yaml:1:4: tags (tag:yaml.org,2002:int) are not read"));
  REQUIRE(yaml_error("a: 1\nb: 2\na: 3\n") == "f.yaml:3:1: the key \"a\" appears twice; it already stands in line 1");
  REQUIRE(yaml_error("a: 1\n---\nb: 2\n") == "f.yaml:3:1: a second document begins here; keep one document in a file");
  REQUIRE(yaml_error("? [a, b]\n: 1\n") == "f.yaml:1:3: a key must be a word; write `key: value`");
  REQUIRE(yaml_error("'': 1\n") == "f.yaml:1:1: a key must be a word; write `key: value`");
}

TEST_CASE("an alias bomb is refused at its first alias") {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 30; ++i) {
    std::string aliases;
    for (int k = 0; k < 9; ++k) aliases.append(k == 0 ? "*a" : ",*a").append(std::to_string(i - 1));
    const std::string name = std::to_string(i);
    bomb.append("a").append(name).append(": &a").append(name).append(" [").append(aliases).append("]\n");
  }
  REQUIRE(yaml_error(bomb).starts_with("f.yaml:2:"));
  REQUIRE(yaml_error(bomb).find("aliases (*name) are not read") != std::string::npos);
  REQUIRE(yaml_error("a: &a [*a]\n").find("aliases (*name) are not read") != std::string::npos);  // of itself
}

TEST_CASE("nesting is limited before any stack is") {
  REQUIRE(yaml_error(repeated("[", 40) + repeated("]", 40)).find("nested deeper than 32 levels") != std::string::npos);
  REQUIRE(yaml_error(repeated("[", 250'000) + repeated("]", 250'000)).find("nested deeper than 32 levels") !=
          std::string::npos);
  REQUIRE(yaml_error(repeated("[", 500'000)) != "");
  REQUIRE(yaml_error(repeated("{a: ", 40) + repeated("}", 40)).find("nested deeper than 32 levels") !=
          std::string::npos);
  REQUIRE(yaml_error(repeated("{a: ", 200'000)) != "");
  REQUIRE(yaml_error(repeated("- ", 400'000)).find("nested deeper than 32 levels") != std::string::npos);
  REQUIRE(yaml_error(repeated("? ", 400'000)).find("a key must be a word") != std::string::npos);
  std::string stairs;
  for (int i = 0; i < 700; ++i) stairs.append(static_cast<std::size_t>(i), ' ').append("a:\n");
  REQUIRE(yaml_error(stairs).find("nested deeper than 32 levels") != std::string::npos);
}

TEST_CASE("a file of too many values is refused") {
  REQUIRE(yaml_error("a: [" + repeated("1,", 200'000) + "]").find("holds more than 100000 values") !=
          std::string::npos);
  std::string keys;
  for (int i = 0; i < 5000; ++i) keys.append("k").append(std::to_string(i)).append(": 1\n");
  REQUIRE(yaml_error(keys).find("too many keys") != std::string::npos);
}

TEST_CASE("what is not YAML says where it stopped making sense") {
  REQUIRE(yaml_error("").starts_with("f.yaml: this file is empty"));
  REQUIRE(yaml_error("# only a comment\n").starts_with("f.yaml: this file is empty"));
  REQUIRE(yaml_error("a: [1, 2\n").starts_with("f.yaml:2:1: this is not valid YAML"));
  REQUIRE(yaml_error("a: 1\nb: \"open\nc: 3\n") == "f.yaml:2:4: this quote is never closed; close it");
  REQUIRE(yaml_error("a: 'it''s open\n") == "f.yaml:1:4: this quote is never closed; close it");
  REQUIRE(yaml_error("a: \"escaped \\\" quote\"\nb: 'it''s'\n") == "");
  REQUIRE(yaml_error("a: 1\n b: 2\n").starts_with("f.yaml:2:3: this is not valid YAML"));
  REQUIRE(yaml_error("a: b: c\n").starts_with("f.yaml:1:5: this is not valid YAML"));
}
