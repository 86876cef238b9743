#include "replay/talk.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "models/quantity_text.hpp"
#include "models/terminal_text.hpp"

namespace ebb::replay {

namespace {

Talk wanted_talk;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

void set_talk(const Talk& wanted) { wanted_talk = wanted; }
const Talk& talk() { return wanted_talk; }

void remark(const std::string& text) {
  if (!wanted_talk.quiet) write_message("ebb-replay", text);
}

void detail(const std::string& text) {
  if (wanted_talk.verbose) write_message("ebb-replay", text);
}

Activity::Activity(std::string what) : what_(std::move(what)), begin_(now()) {}

Activity::~Activity() { detail(fmt::format("{} took {}", what_, format_seconds({now() - begin_}))); }

}  // namespace ebb::replay
