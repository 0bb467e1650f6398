// Disks that misbehave: one whose calls fail, one that forgets what was not synced.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file.h"
#include "regard/random.h"
#include "support/folder.h"

namespace regard {

// Hands on to another; from call number `first_failing` on (counted from 0) so many fail with `error`.
class FailingFiles final : public Files {
 public:
  explicit FailingFiles(Files& files) : files_(files) {}
  std::int64_t first_failing = std::numeric_limits<std::int64_t>::max();
  std::int64_t failing = 1;
  int error = EIO;
  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();  // that one write takes
  std::int64_t calls = 0;                                            // those that can fail
  std::string last;                                                  // which one failed

  Result create(const std::string& path, const std::string& like) override {
    return fails("create") ? failed() : files_.create(path, like);
  }
  Result append(const std::string& path) override { return fails("append") ? failed() : files_.append(path); }
  Result write(std::int64_t handle, std::string_view bytes) override {
    return fails("write") ? failed() : files_.write(handle, bytes.substr(0, most_bytes));
  }
  int sync(std::int64_t handle) override { return fails("sync") ? error : files_.sync(handle); }
  int cut(std::int64_t handle, std::int64_t length) override {
    return fails("cut") ? error : files_.cut(handle, length);
  }
  int close(std::int64_t handle) override {
    const int result = files_.close(handle);
    return fails("close") ? error : result;
  }
  int rename(const std::string& from, const std::string& to) override {
    return fails("rename") ? error : files_.rename(from, to);
  }
  int remove(const std::string& path) override { return files_.remove(path); }  // else nothing could be cleaned up
  int sync_folder(const std::string& folder) override {
    return fails("sync_folder") ? error : files_.sync_folder(folder);
  }
  Result size(const std::string& path) override { return files_.size(path); }
  Result read(const std::string& path, std::string& bytes) override {
    return fails("read") ? failed() : files_.read(path, bytes);
  }

 private:
  bool fails(const char* what) {
    const std::int64_t number = calls++;
    const bool now = number >= first_failing && number - first_failing < failing;
    if (now) last = what;
    return now;
  }
  Result failed() const { return {.error = error}; }
  Files& files_;
};

// A disk in memory, all in one folder. What is not synced is remembered as a list of changes; after_power_loss() gives
// a disk on which any of them may have happened, writes also in part, by sectors.
class MemoryFiles final : public Files {
 public:
  Result create(const std::string& path, const std::string&) override {
    if (now_.contains(path)) {
      change(now_[path], {.cut = 0});
    } else {
      link(path, std::make_shared<Inode>());
    }
    return open(path);
  }
  Result append(const std::string& path) override {
    if (!now_.contains(path)) link(path, std::make_shared<Inode>());
    return open(path);
  }
  Result write(std::int64_t handle, std::string_view bytes) override {
    bytes = bytes.substr(0, kMostBytes);
    const auto& inode = open_[static_cast<std::size_t>(handle)];
    change(inode, {.at = inode->now.size(), .bytes = std::string(bytes)});
    return {.value = static_cast<std::int64_t>(bytes.size())};
  }
  int sync(std::int64_t handle) override {
    const auto& inode = open_[static_cast<std::size_t>(handle)];
    inode->safe = inode->now;
    inode->pending.clear();
    return 0;
  }
  int cut(std::int64_t handle, std::int64_t length) override {
    change(open_[static_cast<std::size_t>(handle)], {.cut = length});
    return 0;
  }
  int close(std::int64_t) override { return 0; }
  int rename(const std::string& from, const std::string& to) override {
    const auto found = now_.find(from);
    if (found == now_.end()) return ENOENT;
    const auto inode = found->second;
    now_.erase(found);
    now_[to] = inode;
    pending_.push_back({{from, nullptr}, {to, inode}});
    return 0;
  }
  int remove(const std::string& path) override {
    if (now_.erase(path) == 0) return ENOENT;
    pending_.push_back({{path, nullptr}});
    return 0;
  }
  int sync_folder(const std::string&) override {
    safe_ = now_;
    pending_.clear();
    return 0;
  }
  Result size(const std::string& path) override {
    const auto found = now_.find(path);
    if (found == now_.end()) return {.error = ENOENT};
    return {.value = static_cast<std::int64_t>(found->second->now.size())};
  }
  Result read(const std::string& path, std::string& bytes) override {
    const auto found = now_.find(path);
    if (found == now_.end()) return {.error = ENOENT};
    bytes = found->second->now;
    return {.value = static_cast<std::int64_t>(bytes.size())};
  }

  std::map<std::string, std::string> after_power_loss(RandomKey key) const {
    std::uint64_t drawn = 0;
    const auto chance = [&](std::uint32_t one_in) { return random_below(key, drawn++, one_in) == 0; };
    auto names = safe_;
    const bool in_order = chance(2);  // a journal loses the end; others lose any
    const std::size_t kept =
        static_cast<std::size_t>(random_below(key, drawn++, static_cast<std::uint32_t>(pending_.size() + 1)));
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if (in_order ? i >= kept : chance(2)) continue;
      for (const auto& [name, inode] : pending_[i]) {
        if (inode == nullptr) {
          names.erase(name);
        } else {
          names[name] = inode;
        }
      }
    }
    std::map<std::string, std::string> found;
    for (const auto& [name, inode] : names) {
      std::string bytes = inode->safe;
      for (const Change& each : inode->pending) {
        if (each.cut >= 0) {
          if (chance(2)) bytes.resize(std::min(bytes.size(), static_cast<std::size_t>(each.cut)));
          continue;
        }
        constexpr std::size_t kSector = 512;
        const bool whole = chance(3), grown = chance(2);
        if (grown) bytes.resize(std::max(bytes.size(), each.at + each.bytes.size()), '\0');
        for (std::size_t begin = 0; begin < each.bytes.size(); begin += kSector) {
          if (!whole && chance(2)) continue;
          const std::string part = each.bytes.substr(begin, kSector);
          bytes.resize(std::max(bytes.size(), each.at + begin + part.size()), '\0');
          bytes.replace(each.at + begin, part.size(), part);
        }
      }
      found[name] = bytes;
    }
    return found;
  }
  // The same disk, as the next start of the machine finds it.
  static MemoryFiles found(const std::map<std::string, std::string>& files) {
    MemoryFiles disk;
    for (const auto& [name, bytes] : files) {
      auto inode = std::make_shared<Inode>();
      inode->now = inode->safe = bytes;
      disk.now_[name] = disk.safe_[name] = inode;
    }
    return disk;
  }

 private:
  static constexpr std::size_t kMostBytes = 1500;  // so that one file is several writes
  struct Change {
    std::size_t at = 0;
    std::string bytes = {};
    std::int64_t cut = -1;  // to this length, if not −1
  };
  struct Inode {
    std::string now, safe;  // what programs see; what is on the disk for sure
    std::vector<Change> pending;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;

  static void change(const std::shared_ptr<Inode>& inode, const Change& change) {
    if (change.cut >= 0) {
      inode->now.resize(static_cast<std::size_t>(change.cut));
    } else {
      inode->now += change.bytes;
    }
    inode->pending.push_back(change);
  }
  void link(const std::string& path, const std::shared_ptr<Inode>& inode) {
    now_[path] = inode;
    pending_.push_back({{path, inode}});
  }
  Result open(const std::string& path) {
    open_.push_back(now_[path]);
    return {.value = static_cast<std::int64_t>(open_.size() - 1)};
  }

  Names now_, safe_;
  std::vector<std::vector<std::pair<std::string, std::shared_ptr<Inode>>>> pending_;  // each happens as a whole
  std::vector<std::shared_ptr<Inode>> open_;
};

}  // namespace regard
