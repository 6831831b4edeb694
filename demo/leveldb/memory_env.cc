// LevelDB's environment in memory: files are lists of blocks, scheduled work waits in a queue until
// somebody would block for it, and there is no clock.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leveldb/env.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"
#include "port/port.h"

namespace leveldb {
namespace {

using Task = std::pair<void (*)(void*), void*>;

std::deque<Task>& Queue() {
  static std::deque<Task> queue;
  return queue;
}

class File {
 public:
  uint64_t size() const { return size_; }

  void Append(const Slice& data) {
    const char* from = data.data();
    size_t left = data.size();
    while (left > 0) {
      const size_t offset = size_ % kBlockBytes;
      if (offset == 0) blocks_.push_back(std::unique_ptr<char[]>(new char[kBlockBytes]));
      const size_t part = std::min(left, kBlockBytes - offset);
      memcpy(blocks_.back().get() + offset, from, part);
      from += part;
      left -= part;
      size_ += part;
    }
  }

  // The bytes from `offset` on, at most `count`; less only at the end of the file.
  Slice Read(uint64_t offset, size_t count, char* scratch) const {
    if (offset >= size_) return Slice(scratch, 0);
    count = static_cast<size_t>(std::min<uint64_t>(count, size_ - offset));
    for (size_t done = 0; done < count;) {
      const size_t start = static_cast<size_t>((offset + done) % kBlockBytes);
      const size_t part = std::min(count - done, kBlockBytes - start);
      memcpy(scratch + done,
             blocks_[static_cast<size_t>((offset + done) / kBlockBytes)].get() + start, part);
      done += part;
    }
    return Slice(scratch, count);
  }

 private:
  static constexpr size_t kBlockBytes = 8192;
  std::vector<std::unique_ptr<char[]>> blocks_;
  uint64_t size_ = 0;
};

using FilePointer = std::shared_ptr<File>;

class Sequential : public SequentialFile {
 public:
  explicit Sequential(FilePointer file) : file_(std::move(file)) {}
  Status Read(size_t count, Slice* result, char* scratch) override {
    *result = file_->Read(position_, count, scratch);
    position_ += result->size();
    return Status::OK();
  }
  Status Skip(uint64_t count) override {
    position_ = std::min(position_ + count, file_->size());
    return Status::OK();
  }

 private:
  FilePointer file_;
  uint64_t position_ = 0;
};

class RandomAccess : public RandomAccessFile {
 public:
  explicit RandomAccess(FilePointer file) : file_(std::move(file)) {}
  Status Read(uint64_t offset, size_t count, Slice* result, char* scratch) const override {
    *result = file_->Read(offset, count, scratch);
    return Status::OK();
  }

 private:
  FilePointer file_;
};

class Writable : public WritableFile {
 public:
  explicit Writable(FilePointer file) : file_(std::move(file)) {}
  Status Append(const Slice& data) override {
    file_->Append(data);
    return Status::OK();
  }
  Status Close() override { return Status::OK(); }
  Status Flush() override { return Status::OK(); }
  Status Sync() override { return Status::OK(); }

 private:
  FilePointer file_;
};

class Silent : public Logger {
 public:
  void Logv(const char*, va_list) override {}
};

class MemoryEnv : public Env {
 public:
  Status NewSequentialFile(const std::string& name, SequentialFile** result) override {
    return Open<Sequential>(name, result);
  }
  Status NewRandomAccessFile(const std::string& name, RandomAccessFile** result) override {
    return Open<RandomAccess>(name, result);
  }
  Status NewWritableFile(const std::string& name, WritableFile** result) override {
    files_[name] = std::make_shared<File>();
    return Open<Writable>(name, result);
  }
  Status NewAppendableFile(const std::string& name, WritableFile** result) override {
    if (!FileExists(name)) files_[name] = std::make_shared<File>();
    return Open<Writable>(name, result);
  }
  bool FileExists(const std::string& name) override { return files_.count(name) != 0; }
  Status GetChildren(const std::string& folder, std::vector<std::string>* result) override {
    const std::string prefix = folder + "/";
    result->clear();
    for (auto it = files_.lower_bound(prefix); it != files_.end(); ++it) {
      if (it->first.compare(0, prefix.size(), prefix) != 0) break;
      result->push_back(it->first.substr(prefix.size()));
    }
    return Status::OK();
  }
  Status DeleteFile(const std::string& name) override {
    return files_.erase(name) ? Status::OK() : Missing(name);
  }
  Status CreateDir(const std::string&) override { return Status::OK(); }
  Status DeleteDir(const std::string&) override { return Status::OK(); }
  Status GetFileSize(const std::string& name, uint64_t* size) override {
    const auto it = files_.find(name);
    if (it == files_.end()) return Missing(name);
    *size = it->second->size();
    return Status::OK();
  }
  Status RenameFile(const std::string& from, const std::string& to) override {
    const auto it = files_.find(from);
    if (it == files_.end()) return Missing(from);
    files_[to] = it->second;
    files_.erase(it);
    return Status::OK();
  }
  Status LockFile(const std::string&, FileLock** lock) override {
    *lock = new FileLock;
    return Status::OK();
  }
  Status UnlockFile(FileLock* lock) override {
    delete lock;
    return Status::OK();
  }
  void Schedule(void (*function)(void*), void* argument) override {
    Queue().emplace_back(function, argument);
  }
  void StartThread(void (*function)(void*), void* argument) override { function(argument); }
  Status GetTestDirectory(std::string* path) override {
    *path = "/test";
    return Status::OK();
  }
  Status NewLogger(const std::string&, Logger** result) override {
    *result = new Silent;
    return Status::OK();
  }
  uint64_t NowMicros() override { return ++now_; }
  // LevelDB sleeps to let its background thread catch up.
  void SleepForMicroseconds(int) override { port::RunBackgroundWork(); }

 private:
  static Status Missing(const std::string& name) { return Status::NotFound(name, "no such file"); }

  template <typename Kind, typename Base>
  Status Open(const std::string& name, Base** result) {
    const auto it = files_.find(name);
    *result = it == files_.end() ? nullptr : new Kind(it->second);
    return *result ? Status::OK() : Missing(name);
  }

  std::map<std::string, FilePointer> files_;
  uint64_t now_ = 0;
};

}  // namespace

void port::RunBackgroundWork() {
  // A task may schedule the next one, which then runs here too, not on its stack.
  while (!Queue().empty()) {
    const Task task = Queue().front();
    Queue().pop_front();
    task.first(task.second);
  }
}

Env* Env::Default() {
  static MemoryEnv* const env = new MemoryEnv;
  return env;
}

}  // namespace leveldb
