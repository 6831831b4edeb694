// Runs the script on standard input against one LevelDB database in memory and prints what it read.
// A std::map beside it holds what should be there. One command a line:
//   fill FIRST COUNT STEP LENGTH   writes COUNT keys, STEP apart, values of 0 to LENGTH bytes
//   erase FIRST COUNT STEP         deletes them
//   read FIRST COUNT STEP          looks them up one by one
//   scan FIRST COUNT, back FIRST COUNT   iterates forwards, backwards
//   snapshot, release              keeps the present state, lets go of it
//   old FIRST COUNT STEP           reads the state that was kept
//   compact, reopen, check         rewrites all tables; recovers from the log; compares with the
//   map
#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "../report.h"
#include "leveldb/cache.h"
#include "leveldb/db.h"
#include "leveldb/filter_policy.h"
#include "leveldb/write_batch.h"
#include "port/port.h"

namespace {

using leveldb::Slice;
using leveldb::Status;

// FNV-1a: a short word for everything that was read.
class Digest {
 public:
  void Add(const Slice& data) {
    for (size_t i = 0; i < data.size(); i++) {
      state_ = (state_ ^ static_cast<unsigned char>(data[i])) * 1099511628211u;
    }
    state_ = (state_ ^ 0x100) * 1099511628211u;
  }
  unsigned long long value() const { return state_; }

 private:
  unsigned long long state_ = 14695981039346656037u;
};

class Session {
 public:
  Session() : filter_(leveldb::NewBloomFilterPolicy(10)), cache_(leveldb::NewLRUCache(2 << 20)) {
    Open();
  }

  ~Session() { Close(); }

  bool Run(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    Numbers numbers;
    words >> command >> numbers.first >> numbers.count >> numbers.step >> numbers.length;
    const auto action = Actions().find(command);
    if (action == Actions().end()) return false;
    action->second(*this, numbers);
    leveldb::port::RunBackgroundWork();
    return true;
  }

 private:
  struct Numbers {
    unsigned first = 0, count = 0, step = 1, length = 0;
  };
  using Action = void (*)(Session&, const Numbers&);

  static const std::map<std::string, Action>& Actions() {
    static const std::map<std::string, Action> actions = {
        {"fill", [](Session& s, const Numbers& n) { s.Fill(n.first, n.count, n.step, n.length); }},
        {"erase", [](Session& s, const Numbers& n) { s.Erase(n.first, n.count, n.step); }},
        {"read", [](Session& s, const Numbers& n) { s.Read(n.first, n.count, n.step, nullptr); }},
        {"old",
         [](Session& s, const Numbers& n) { s.Read(n.first, n.count, n.step, s.snapshot_); }},
        {"scan", [](Session& s, const Numbers& n) { s.Scan(n.first, n.count, true); }},
        {"back", [](Session& s, const Numbers& n) { s.Scan(n.first, n.count, false); }},
        {"snapshot", [](Session& s, const Numbers&) { s.snapshot_ = s.db_->GetSnapshot(); }},
        {"release", [](Session& s, const Numbers&) { s.Release(); }},
        {"compact", [](Session& s, const Numbers&) { s.db_->CompactRange(nullptr, nullptr); }},
        {"reopen", [](Session& s, const Numbers&) { s.Reopen(); }},
        {"check", [](Session& s, const Numbers&) { s.Compare(); }},
    };
    return actions;
  }

  static void Require(const Status& status) {
    if (status.ok()) return;
    printf("error: %s\n", status.ToString().c_str());
    exit(1);
  }

  static std::string Key(unsigned number) {
    char text[32];
    snprintf(text, sizeof text, "key/%02u/%08u", number % 17, number);
    return text;
  }

  // Pronounceable, so that it can be compressed, and different at every write.
  std::string Value(unsigned number, unsigned length) {
    static const char* const kSyllables[] = {"ka", "lo", "mi", "nu", "pe", "ra", "so", "ti"};
    std::string value;
    unsigned state = number * 2654435761u + 40503u * ++writes_;
    length = length ? state / 7 % (length + 1) : 0;
    while (value.size() < length) {
      state = state * 1664525u + 1013904223u;
      value += kSyllables[state >> 29];
    }
    return value;
  }

  void Open() {
    leveldb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 256 << 10;
    options.block_size = 2048;
    options.max_file_size = 512 << 10;
    options.filter_policy = filter_.get();
    options.block_cache = cache_.get();
    leveldb::DB* db = nullptr;
    Require(leveldb::DB::Open(options, "/demo", &db));
    db_.reset(db);
  }

  void Close() {
    Release();
    db_.reset();
  }

  void Reopen() {
    Close();
    Open();
  }

  void Release() {
    if (snapshot_) db_->ReleaseSnapshot(snapshot_);
    snapshot_ = nullptr;
  }

  void Fill(unsigned first, unsigned count, unsigned step, unsigned length) {
    leveldb::WriteBatch batch;
    for (unsigned i = 0; i < count; i++) {
      const std::string key = Key(first + i * step);
      const std::string value = Value(first + i, length);
      batch.Put(key, value);
      expected_[key] = value;
      if (i % 5 == 4 || i == count - 1) {
        Require(db_->Write(leveldb::WriteOptions(), &batch));
        batch.Clear();
      }
    }
    printf("filled %u, the map holds %zu\n", count, expected_.size());
  }

  void Erase(unsigned first, unsigned count, unsigned step) {
    for (unsigned i = 0; i < count; i++) {
      const std::string key = Key(first + i * step);
      Require(db_->Delete(leveldb::WriteOptions(), key));
      expected_.erase(key);
    }
    printf("erased %u, the map holds %zu\n", count, expected_.size());
  }

  void Read(unsigned first, unsigned count, unsigned step, const leveldb::Snapshot* snapshot) {
    leveldb::ReadOptions options;
    options.snapshot = snapshot;
    Digest digest;
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++) {
      std::string value;
      leveldb::StringValueSink sink(&value);
      const Status status = db_->Get(options, Key(first + i * step), &sink);
      if (!status.IsNotFound()) Require(status);
      found += status.ok();
      digest.Add(value);
    }
    printf("read %u, found %u, digest %016llx\n", count, found, digest.value());
  }

  void Scan(unsigned first, unsigned count, bool forwards) {
    std::unique_ptr<leveldb::Iterator> it(db_->NewIterator(leveldb::ReadOptions()));
    Digest digest;
    unsigned seen = 0;
    std::string last;
    for (it->Seek(Key(first)); it->Valid() && seen < count; forwards ? it->Next() : it->Prev()) {
      last = it->key().ToString() + "=" + it->value().ToString().substr(0, 12);
      digest.Add(it->key());
      digest.Add(it->value());
      seen++;
    }
    Require(it->status());
    printf("scanned %u to %s, digest %016llx\n", seen, last.c_str(), digest.value());
  }

  void Compare() {
    std::unique_ptr<leveldb::Iterator> it(db_->NewIterator(leveldb::ReadOptions()));
    auto expected = expected_.begin();
    for (it->SeekToFirst(); it->Valid() && expected != expected_.end(); it->Next(), ++expected) {
      if (it->key() != Slice(expected->first) || it->value() != Slice(expected->second)) break;
    }
    if (it->Valid() || expected != expected_.end()) {
      printf("error: the database differs from the map\n");
      exit(1);
    }
    printf("equal to the map, %zu entries\n", expected_.size());
  }

  // Declared in the order of their need: the database uses the cache and the filter to its end.
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<leveldb::DB> db_;
  const leveldb::Snapshot* snapshot_ = nullptr;
  std::map<std::string, std::string> expected_;
  unsigned writes_ = 0;
};

std::vector<std::string> ReadLines() {
  std::vector<std::string> lines;
  std::string line;
  for (int c; (c = getchar()) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    if (!line.empty() && line[0] != '#') lines.push_back(line);
    line.clear();
  }
  return lines;
}

}  // namespace

int main() {
  report_begin();
  {
    Session session;
    for (const std::string& line : ReadLines()) {
      if (!session.Run(line)) {
        printf("error: unknown command: %s\n", line.c_str());
        return 1;
      }
      report_sample();
    }
  }
  report_end();
  return 0;
}
