#include "models/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <sstream>

namespace ebb {

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const YamlEntry& entry : entries)
    if (kind == Kind::map && entry.key == key) return &entry.value;
  return nullptr;
}

std::string YamlNode::description() const {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::scalar:
      return '"' + (text.size() <= 40 ? text : text.substr(0, 37) + "...") + '"';
    case Kind::sequence:
      return "a list";
    case Kind::map:
      return "a mapping";
  }
  return "";
}

namespace {

/// Builds the tree. yaml-cpp parses nested nodes by recursion between a start event and its end event, so that
/// throwing at a depth limit here also bounds the parser's own stack.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(YamlNode& root, const std::string& text, const std::string& file)
      : root_(root), text_(text), file_(file) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(mark, YamlNode::Kind::null, "?", {}); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw InputError(place(mark), "aliases (*name) are not read, so that a small file cannot expand into a huge one",
                     "write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    require_closed_quote(mark);
    add(mark, YamlNode::Kind::scalar, tag, value);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open_.push_back(add(mark, YamlNode::Kind::sequence, tag, {}));
  }
  void OnSequenceEnd() override { open_.pop_back(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open_.push_back(add(mark, YamlNode::Kind::map, tag, {}));
    awaits_value_.push_back(false);
  }
  void OnMapEnd() override {
    open_.pop_back();
    awaits_value_.pop_back();
  }

 private:
  /// yaml-cpp 0.7 takes a quoted text that the file's last newline cuts off for a whole one, swallowing the keys in it.
  void require_closed_quote(const YAML::Mark& mark) const {
    const auto begin = static_cast<std::size_t>(mark.pos);
    if (begin >= text_.size() || (text_[begin] != '"' && text_[begin] != '\'')) return;
    const char quote = text_[begin];
    for (std::size_t i = begin + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\')
        ++i;  // an escaped character
      else if (text_[i] == quote && quote == '\'' && i + 1 < text_.size() && text_[i + 1] == quote)
        ++i;  // '' inside '...'
      else if (text_[i] == quote)
        return;
    }
    throw InputError(place(mark), "this quote is never closed", "close it");
  }

  Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  /// Adds a node where the events stand: as the root, a list item, a map's key or that key's value.
  YamlNode* add(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& tag, const std::string& text) {
    const Place at = place(mark);
    if (++nodes_ > kMostYamlNodes)
      throw InputError(at, "this file holds more than " + std::to_string(kMostYamlNodes) + " values",
                       "is it the right file?");
    if (open_.size() >= kMostYamlDepth)
      throw InputError(at, "this is nested deeper than " + std::to_string(kMostYamlDepth) + " levels",
                       "is it the right file?");
    // yaml-cpp tags quoted scalars "!" and plain ones "?"; anything longer was written by the user.
    if (tag.size() > 1) throw InputError(at, "tags (" + tag.substr(0, 40) + ") are not read", "leave the tag out");

    if (open_.empty()) return fill(root_, at, kind, text);
    YamlNode& parent = *open_.back();
    if (parent.kind == YamlNode::Kind::sequence) {
      parent.entries.push_back({"", at, {}});
      return fill(parent.entries.back().value, at, kind, text);
    }
    if (awaits_value_.back()) {
      awaits_value_.back() = false;
      YamlEntry& entry = parent.entries.back();
      // An absent value is reported at what follows it; its key is where to look.
      return fill(entry.value, kind == YamlNode::Kind::null ? entry.key_place : at, kind, text);
    }
    add_key(parent, at, kind, text);
    return nullptr;
  }

  void add_key(YamlNode& map, const Place& at, YamlNode::Kind kind, const std::string& text) {
    if (kind != YamlNode::Kind::scalar || text.empty())
      throw InputError(at, "a key must be a word", "write `key: value`");
    if (text == "<<") throw InputError(at, "merge keys (<<) are not read", "repeat the keys");
    for (const YamlEntry& entry : map.entries)
      if (entry.key == text)
        throw InputError(at, "the key \"" + text + "\" appears twice",
                         "it already stands in line " + std::to_string(entry.key_place.line));
    if (map.entries.size() >= kMostKeys) throw InputError(at, "this mapping has too many keys");
    map.entries.push_back({text, at, {}});
    awaits_value_.back() = true;
  }

  static YamlNode* fill(YamlNode& node, const Place& at, YamlNode::Kind kind, const std::string& text) {
    node.kind = kind;
    node.place = at;
    node.text = text;
    return &node;
  }

  static constexpr std::size_t kMostKeys = 1000;  // the duplicate check is quadratic

  YamlNode& root_;
  const std::string& text_;
  const std::string& file_;
  // Pointers into the tree stay valid: a vector grows only while none of its elements is open.
  std::vector<YamlNode*> open_;
  std::vector<bool> awaits_value_;  // one for each open map
  std::size_t nodes_ = 0;
};

}  // namespace

YamlNode parse_yaml(const std::string& text, const std::string& file) {
  std::istringstream in(text);
  YamlNode root;
  TreeBuilder builder(root, text, file);
  try {
    YAML::Parser parser(in);
    parser.HandleNextDocument(builder);
    YamlNode second;
    TreeBuilder rest(second, text, file);
    if (parser.HandleNextDocument(rest))
      throw InputError(second.place, "a second document begins here", "keep one document in a file");
  } catch (const YAML::Exception& error) {
    Place place{file};
    if (!error.mark.is_null()) place = {file, error.mark.line + 1, error.mark.column + 1};
    throw InputError(place, "this is not valid YAML (" + error.msg + ")",
                     "look for a missing colon, quote or bracket, or uneven indentation");
  }
  if (root.kind == YamlNode::Kind::null) throw InputError({file}, "this file is empty", "write `key: value` lines");
  return root;
}

}  // namespace ebb
