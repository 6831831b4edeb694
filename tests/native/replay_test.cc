// Traces of real programs, replayed in checking mode. The trace's own counts are pinned, so that a
// replay of nothing fails.
#include "../replay/replay.h"

#include <ashlar.h>
#include <unistd.h>

#include <string>

#include "names.h"
#include "profile.h"
#include "support.h"
#ifdef ASHLAR_FAKE_OS
#include "fake_os/fake_os.h"
#endif

namespace {

struct Trace {
  const char* name;
  unsigned long operations;
  uint64_t peak_live_bytes;
};
constexpr Trace traces[] = {{"jq", 415683, 12673678},
                            {"lua", 761981, 4120442},
                            {"php", 593414, 14529205},
                            {"sqlite", 299456, 8052063}};

// `most`: committed bytes per peak live byte, in percent. Catches memory that is lost.
void replay(const Trace& trace, size_t most) {
  std::string path = ASHLAR_TRACE_DIR "/";
  path.append(trace.name).append(".mtr");
  ASSERT_EQ(access(path.c_str(), R_OK), 0) << path << ": unpack tests/traces first";
  replay_options const options{
      .checks = 1, .check_every = test::sanitized ? 200000ul : 20000ul, .validate = ashlar_check};
  replay_result result;
  ashlar_stats_t before;
  ashlar_stats(&before);
  ASSERT_EQ(replay_trace(path.c_str(), &options, &result), 0)
      << result.failure << " at operation " << result.failed_at << "; " << ashlar_last_message();
  EXPECT_EQ(result.operations, trace.operations);
  EXPECT_EQ(result.peak_live_bytes, trace.peak_live_bytes);

  ashlar_stats_t stats;
  ashlar_stats(&stats);
  EXPECT_EQ(stats.live_blocks, 0u);
  EXPECT_EQ(stats.live_bytes, 0u);
  EXPECT_EQ(stats.frees, stats.allocations);
  EXPECT_GT(stats.allocations, 100000u);
  EXPECT_LE(stats.allocations, result.allocations);
  EXPECT_GE(stats.used_peak_bytes, result.peak_live_bytes);
  EXPECT_LT(stats.committed_bytes, result.peak_live_bytes * most / 100 + (size_t{1} << 20));
  printf("%s: used %.3f committed %.3f of the peak, %zu grows\n", trace.name,
         static_cast<double>(stats.used_peak_bytes) / static_cast<double>(result.peak_live_bytes),
         static_cast<double>(stats.committed_bytes) / static_cast<double>(result.peak_live_bytes),
         stats.grow_count);
}

// Each catches what only real programs' mixes of sizes and lifetimes bring out.
HEAP_TEST(Replay, jq) { replay(traces[0], 125); }
HEAP_TEST(Replay, lua) { replay(traces[1], 125); }
HEAP_TEST(Replay, php) { replay(traces[2], 125); }
HEAP_TEST(Replay, sqlite) { replay(traces[3], 125); }

#ifdef ASHLAR_FAKE_OS
// Catches a region that is taken for the next one's neighbour: a stranger stands between any two.
HEAP_TEST(Replay, lua_with_strangers_between_all_grows) {
  fake_os::stranger_before_every_grow(1);
  replay(traces[1], 220);
  EXPECT_TRUE(fake_os::strangers_intact());
}
#endif

// Catches a replay that would pass on any file: the replayer itself reports what it can't read.
TEST(Replay, refuses_what_is_no_trace) {
  replay_options const options{};
  replay_result result;
  EXPECT_NE(replay_trace("/dev/null", &options, &result), 0);
  EXPECT_NE(replay_trace(ASHLAR_TRACE_DIR "/missing.mtr", &options, &result), 0);
}

}  // namespace
