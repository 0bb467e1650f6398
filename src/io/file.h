// Files. Everything that is written goes through one interface, `Files`, so that tests can make any call of it fail,
// and can see what a loss of power would leave behind.
//
//     replace_file(disk(), "zh-en.model", [&](FileWriter& out) { out.write(header); out.write(weights); });
//
// A file is replaced as a whole or not at all: the new one is written beside it, synced, given its name, and the folder
// is synced. Whatever fails, and whenever the power goes, the name stands for the old bytes or for the new ones. Of a
// link it is the file it leads to. Who may read and write it stays as it was. A folder, a device or a pipe is an Error:
// a file in its place would do harm
// (/dev/null).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

// The calls of the operating system that are used, one to one. Each gives an errno as `error`; 0: it worked.
class Files {
 public:
  struct Result {
    std::int64_t value = 0;
    int error = 0;
  };
  virtual ~Files() = default;

  // Both give a handle as value. Until it is closed no other process gets one: it is told EBUSY.
  // New and empty; what was called so before is removed, of a link only the link. It has the permissions of `like` if
  // there is such a file, else the usual ones.
  virtual Result create(const std::string& path, const std::string& like) = 0;
  virtual Result append(const std::string& path) = 0;  // what is there stays; made if there is nothing
  virtual Result write(std::int64_t handle, std::string_view bytes) = 0;  // gives how many; may be fewer
  virtual int sync(std::int64_t handle) = 0;
  virtual int cut(std::int64_t handle, std::int64_t length) = 0;  // what is behind that goes
  virtual int close(std::int64_t handle) = 0;                     // the handle is gone even if it fails

  virtual int rename(const std::string& from, const std::string& to) = 0;  // what was called `to` before is gone
  virtual int remove(const std::string& path) = 0;
  virtual int sync_folder(const std::string& folder) = 0;

  virtual std::string target(const std::string& path) { return path; }   // where a link leads; else the path itself
  virtual Result size(const std::string& path) = 0;                      // EINVAL: a device or a pipe has none
  virtual Result read(const std::string& path, std::string& bytes) = 0;  // all of it
};

Files& disk();  // the real one

// What a file is being filled through. An Error of kind kFile says what could not be done to which file, and why.
class FileWriter {
 public:
  FileWriter(Files& files, std::string path, std::int64_t handle)
      : files_(files), path_(std::move(path)), handle_(handle) {}
  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes);
  void sync();
  void cut(std::int64_t length);
  void close();  // throws if it fails; the handle is gone then too

  const std::string& path() const { return path_; }
  std::int64_t handle() const { return handle_; }

 private:
  void check(int error, const char* what) const;
  Files& files_;
  std::string path_;
  std::int64_t handle_;
};

// For those who write many small things: they go to the file many at a time. What was not flushed is not written.
class BufferedWriter {
 public:
  explicit BufferedWriter(FileWriter& out) : out_(out) {}
  void write(std::span<const std::byte> bytes);
  void flush();

 private:
  static constexpr std::size_t kMost = 256 << 10;  // stays in the cache
  static constexpr std::size_t kLarge = 16 << 10;  // goes by itself: copying it would cost more than a call
  FileWriter& out_;
  std::vector<std::byte> held_;
};

// kSoon: the system writes it to the disk when it likes to. Nothing is waited for; if the power goes meanwhile, what
// the name stands for may be incomplete. For what can be made again and tells if it is damaged.
enum class Lasting : std::uint8_t { kNow, kSoon };

void replace_file(Files& files, const std::string& path, const std::function<void(FileWriter&)>& write,
                  Lasting lasting = Lasting::kNow);
std::string temporary_of(const std::string& path);  // where a new one is written

std::string read_file(Files& files, const std::string& path);
bool exists(Files& files, const std::string& path);
std::string folder_of(const std::string& path);

// "cannot write 'zh-en.model': No space left on device"
[[noreturn]] void fail_file(const char* what, const std::string& path, int error);

}  // namespace regard
