// fork() while four threads allocate, with handlers of fork that were registered by a constructor,
// allocate, and take a lock under which the threads allocate too.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static void before(void) {
  free(malloc(100));
  pthread_mutex_lock(&own);
}
static void after(void) {
  pthread_mutex_unlock(&own);
  free(malloc(100));
}
__attribute__((constructor(101))) static void register_first(void) {
  pthread_atfork(before, after, after);
}

static int stop;
static void* work(void* unused) {
  void* blocks[100] = {0};
  for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); ++i) {
    free(blocks[i % 100]);
    pthread_mutex_lock(&own);
    blocks[i % 100] = malloc(i * 37 % 3000);
    pthread_mutex_unlock(&own);
  }
  for (int i = 0; i < 100; ++i) free(blocks[i]);
  return unused;
}

int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (size_t size = 0; size < 1000; ++size) free(malloc(size));
      _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  puts("fork ok");
  return 0;
}
