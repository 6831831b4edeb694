// LevelDB's platform for one thread: found before LevelDB's own port/port.h. With one thread a lock
// is nothing, and who waits for background work does it himself.
#ifndef ASHLAR_DEMO_LEVELDB_PORT_H_
#define ASHLAR_DEMO_LEVELDB_PORT_H_

#include <snappy.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <string>

namespace leveldb {
namespace port {

static const bool kLittleEndian = true;

// Runs what was scheduled (memory_env.cc).
void RunBackgroundWork();

class Mutex {
 public:
  void Lock() {}
  void Unlock() {}
  void AssertHeld() {}
};

class CondVar {
 public:
  explicit CondVar(Mutex*) {}
  void Wait() { RunBackgroundWork(); }
  void Signal() {}
  void SignalAll() {}
};

typedef bool OnceType;
#define LEVELDB_ONCE_INIT false
inline void InitOnce(OnceType* once, void (*initializer)()) {
  if (*once) return;
  *once = true;
  initializer();
}

class AtomicPointer {
 public:
  AtomicPointer() : value_(nullptr) {}
  explicit AtomicPointer(void* value) : value_(value) {}
  void* Acquire_Load() const { return value_; }
  void* NoBarrier_Load() const { return value_; }
  void Release_Store(void* value) { value_ = value; }
  void NoBarrier_Store(void* value) { value_ = value; }

 private:
  void* value_;
};

inline bool Snappy_Compress(const char* input, size_t length, std::string* output) {
  output->resize(snappy::MaxCompressedLength(length));
  size_t compressed = 0;
  snappy::RawCompress(input, length, &(*output)[0], &compressed);
  output->resize(compressed);
  return true;
}

inline bool Snappy_GetUncompressedLength(const char* input, size_t length, size_t* result) {
  return snappy::GetUncompressedLength(input, length, result);
}

inline bool Snappy_Uncompress(const char* input, size_t length, char* output) {
  return snappy::RawUncompress(input, length, output);
}

inline bool GetHeapProfile(void (*)(void*, const char*, int), void*) { return false; }

// 0: use the portable one.
inline uint32_t AcceleratedCRC32C(uint32_t, const char*, size_t) { return 0; }

}  // namespace port
}  // namespace leveldb

#endif  // ASHLAR_DEMO_LEVELDB_PORT_H_
