// The model of torch's caching allocator against torch on a GPU, call by call
// (tests/data/measured/torch-allocator-trace.jsonl; torch_allocator_trace.py beside it says what the lines are).
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/errors.hpp"
#include "models/memory/caching_allocator.hpp"
#include "tests/catch.hpp"

using namespace ebb;
using memory::CachingAllocator;
using memory::CachingAllocatorOptions;
using nlohmann::json;

namespace {

constexpr std::int64_t kAllocatedUnit = 512;
constexpr std::int64_t kReservedUnit = 2 << 20;

struct Call {
  std::string op;
  std::uint32_t id = 0;
  std::int64_t bytes = 0;
  std::uint32_t stream = 0;
  Bytes allocated;
  Bytes reserved;
};

struct Sequence {
  std::string name;
  CachingAllocatorOptions options;
  std::vector<Call> calls;
};

std::vector<Sequence> recorded() {
  std::ifstream in(std::string(EBB_TEST_DATA) + "/measured/torch-allocator-trace.jsonl");
  std::vector<Sequence> sequences;
  for (std::string line; std::getline(in, line);) {
    const json j = json::parse(line);
    if (j.is_array()) {
      const std::int64_t allocated = j.at(4);
      const std::int64_t reserved = j.at(5);
      sequences.back().calls.push_back(
          {j.at(0), j.at(1), j.at(2), j.at(3), {allocated * kAllocatedUnit}, {reserved * kReservedUnit}});
      continue;
    }
    CachingAllocatorOptions options;
    options.expandable_segments = j.at("expandable");
    // The driver cannot give quite all that it calls free: in sequences that fill the device it refused what would have
    // left 1.1 MiB and granted what left 3.1 MiB.
    options.capacity = Bytes{j.at("free")} - 2_MiB;
    if (j.at("allowed") > 0) options.allowed = {j.at("allowed")};
    sequences.push_back(
        {std::string(j.at("name")) + (options.expandable_segments ? " (expandable)" : ""), options, {}});
  }
  return sequences;
}

class Replay {
 public:
  explicit Replay(const CachingAllocatorOptions& options) : allocator(options) {}

  /// Does what the call did; false: it did not come out the same.
  bool operator()(const Call& call) {
    bool same = true;
    if (call.op == "a" || call.op == "o") {
      bool got = true;
      try {
        live_[call.id] = allocator.allocate({call.bytes}, StreamId{call.stream});
      } catch (const InputError&) {
        got = false;
      }
      same = got == (call.op == "a");
    } else if (call.op == "f" || call.op == "w") {
      std::vector<CachingAllocator::Use> uses;  // a use is numbered by its stream: a synchronisation ends them all
      for (std::uint32_t stream = 0; stream < 8; ++stream) {
        if (call.op == "w" && (call.stream >> stream & 1) != 0) uses.push_back(stream);
      }
      allocator.free(live_.at(call.id), uses);
      live_.erase(call.id);
    } else if (call.op == "s") {
      allocator.end(call.stream);
    } else if (call.op == "e") {
      allocator.empty_cache();
    } else {
      REQUIRE(call.op == "z");
      same = allocator.driver_allocations() == call.bytes && allocator.retries() == call.stream;
    }
    return same && allocator.allocated() == call.allocated && allocator.reserved() == call.reserved;
  }

  CachingAllocator allocator;

 private:
  std::map<std::uint32_t, CachingAllocator::Block> live_;
};

}  // namespace

TEST_CASE("caching allocator: allocated and reserved are what torch counted after every recorded call") {
  const auto sequences = recorded();
  REQUIRE(sequences.size() == 30);
  std::size_t calls = 0;
  for (const Sequence& sequence : sequences) {
    Replay replay(sequence.options);
    for (std::size_t n = 0; n < sequence.calls.size(); ++n, ++calls) {
      const Call& call = sequence.calls[n];
      const bool same = replay(call);
      CAPTURE(sequence.name, n, call.op, call.id, call.bytes, call.stream);
      CAPTURE(replay.allocator.allocated().value, call.allocated.value);
      CAPTURE(replay.allocator.reserved().value, call.reserved.value);
      CAPTURE(replay.allocator.driver_allocations(), replay.allocator.retries());
      REQUIRE(same);
    }
  }
  REQUIRE(calls == 10427);
}

namespace {

double mib(Bytes bytes) { return static_cast<double>(bytes.value) / (1 << 20); }

/// Plays the trace's next part; its highest allocated bytes.
Bytes play_part(std::istream& trace, CachingAllocator& allocator, std::map<int, CachingAllocator::Block>& live) {
  Bytes peak = allocator.allocated();
  for (std::string word; trace >> word && word != "p";) {
    int tensor = 0;
    trace >> tensor;
    if (word == "r") {
      allocator.free(live.at(tensor));
      continue;
    }
    Bytes bytes{0};
    trace >> bytes.value;
    live[tensor] = allocator.allocate(bytes, StreamId{0});
    peak = std::max(peak, allocator.allocated());
  }
  return peak;
}

}  // namespace

TEST_CASE("a whole job's allocations on a full H200: what torch counted, retry and all") {
  std::ifstream in(std::string(EBB_TEST_DATA) + "/measured/torch-job-trace.json");
  const json document = json::parse(in);
  for (const json& run : document.at("runs")) {
    const double free_mib = document.at("free_mib");
    CachingAllocatorOptions options;
    options.capacity = Bytes{static_cast<std::int64_t>(free_mib * (1 << 20))};
    options.expandable_segments = run.at("expandable");
    CachingAllocator allocator(options);
    std::map<int, CachingAllocator::Block> live;
    std::ifstream trace(std::string(EBB_TEST_DATA) + "/measured/torch-job-trace.txt");
    Bytes peak{0};
    for (const json& part : run.at("parts")) {
      peak = std::max(peak, play_part(trace, allocator, live));
      CHECK(mib(allocator.allocated()) == Approx(part.at("allocated").get<double>()).margin(0.06));
      CHECK(mib(allocator.reserved()) == part.at("reserved").get<double>());
      CHECK(mib(peak) == Approx(part.at("peak_allocated").get<double>()).margin(0.06));
      CHECK(allocator.retries() == part.at("retries").get<std::int64_t>());
    }
  }
}
