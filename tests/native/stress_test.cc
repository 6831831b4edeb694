// The native library under threads: one lock around each call. Runs under TSan too.
#include <ashlar.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "profile.h"
#include "support.h"

namespace {

constexpr unsigned thread_count = 8;
constexpr unsigned steps = test::sanitized ? 40000 : 100000;

struct Block {
  unsigned char* at = nullptr;
  size_t size = 0;
};

// Blocks that one thread leaves for any other to check and free.
struct Exchange {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::vector<Block> blocks;

  void put(const Block& block) {
    pthread_mutex_lock(&mutex);
    blocks.push_back(block);
    pthread_mutex_unlock(&mutex);
  }
  bool take(Block& block) {
    pthread_mutex_lock(&mutex);
    bool const any = !blocks.empty();
    if (any) {
      block = blocks.back();
      blocks.pop_back();
    }
    pthread_mutex_unlock(&mutex);
    return any;
  }
};

void work(uint64_t seed, Exchange& exchange, std::atomic<unsigned>& faults) {
  test::Random random(seed);
  std::vector<Block> own;
  auto check = [&](const Block& block) {
    if (!test::filled(block.at, block.size, test::address(block.at) + block.size))
      faults.fetch_add(1);
  };
  auto accept = [&](void* at, size_t size) {
    if (at == nullptr || ashlar_usable_size(at) < size) faults.fetch_add(1);
    test::fill(at, size, test::address(at) + size);
    own.push_back({static_cast<unsigned char*>(at), size});
  };
  for (unsigned i = 0; i < steps; ++i) {
    size_t const size = random.one_in(100) ? random.between(1000, 60000) : random.between(1, 600);
    unsigned const kind = static_cast<unsigned>(random.below(16));
    Block block;
    if (own.size() < 20 || (kind < 6 && own.size() < 2000)) {
      if (kind == 0) {
        void* const at = ashlar_calloc(1, size);
        if (!test::all_zero(at, size)) faults.fetch_add(1);
        accept(at, size);
      } else if (kind == 1) {
        accept(ashlar_aligned_alloc(128, size), size);
      } else {
        accept(ashlar_malloc(size), size);
      }
    } else if (kind < 8) {
      std::swap(own[random.below(own.size())], own.back());
      block = own.back();
      own.pop_back();
      check(block);
      void* const at = ashlar_realloc(block.at, size);
      if (!test::filled(at, std::min(size, block.size) / 8 * 8,
                        test::address(block.at) + block.size))
        faults.fetch_add(1);
      accept(at, size);
    } else if (kind < 10) {
      std::swap(own[random.below(own.size())], own.back());
      exchange.put(own.back());
      own.pop_back();
    } else if (kind < 12) {
      if (exchange.take(block)) {
        check(block);
        ashlar_free(block.at);
      }
    } else {
      std::swap(own[random.below(own.size())], own.back());
      check(own.back());
      ashlar_free(own.back().at);
      own.pop_back();
    }
    if (i % 4096 == 0 && ashlar_check() != 0) faults.fetch_add(1);
  }
  for (const Block& block : own) exchange.put(block);
}

// Catches any call that is not under the lock, and blocks that only their maker can free.
HEAP_TEST(Stress, eight_threads_free_each_others_blocks) {
  uint64_t const seed = test::printed_seed();
  Exchange exchange;
  std::atomic<unsigned> faults{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] { work(seed + i, exchange, faults); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults.load(), 0u);
  Block block;
  while (exchange.take(block)) {
    EXPECT_TRUE(test::filled(block.at, block.size, test::address(block.at) + block.size));
    ashlar_free(block.at);
  }
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  EXPECT_EQ(stats.live_blocks, 0u);
  EXPECT_EQ(stats.allocations, stats.frees);
  EXPECT_GE(stats.allocations, uint64_t{steps});
}

// Catches a lock that another thread held at the fork and that nobody opens in the child.
HEAP_TEST(Stress, child_of_a_busy_process_can_allocate) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&stop] {
      while (!stop.load()) ashlar_free(ashlar_malloc(100));
    });
  }
  int good = 0;
  constexpr int forks = test::sanitized ? 20 : 100;
  for (int i = 0; i < forks && good == i; ++i) {
    pid_t const child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(30);
      for (size_t size : {10, 100, 1000, 10000, 100000}) {
        void* const block = ashlar_malloc(size);
        if (block == nullptr) _exit(1);
        memset(block, 1, size);
        ashlar_free(block);
      }
      _exit(ashlar_check() == 0 ? 0 : 2);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, forks);
}

#if TEST_CHECKS_MISUSE

// Catches a double free that is lost because another thread freed first.
TEST(Stress, double_free_by_another_thread) {
  test::Ending const ending = test::end_of([] {
    void* const block = ashlar_malloc(100);
    void* const neighbour = ashlar_malloc(100);
    ashlar_free(block);
    std::thread([block] { ashlar_free(block); }).join();
    ashlar_free(neighbour);
  });
  EXPECT_EQ(ending.signal, 6) << ending.error_output;
  EXPECT_EQ(ending.error_output.rfind("ashlar: ", 0), 0u) << ending.error_output;
}

#endif

}  // namespace
