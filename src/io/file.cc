#include "io/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <system_error>

#include "base/check.h"

namespace regard {
namespace {

// Calls again as long as a signal comes between; gives 0 or an errno.
template <class Call>
Files::Result repeated(Call call) {
  for (;;) {
    const auto value = call();
    if (value >= 0) return {.value = static_cast<std::int64_t>(value)};
    if (errno != EINTR) return {.error = errno};
  }
}

int descriptor(std::int64_t handle) { return static_cast<int>(handle); }

class Disk final : public Files {
 public:
  Result create(const std::string& path, const std::string& like) override {
    struct stat model;
    const bool same = ::stat(like.c_str(), &model) == 0 && S_ISREG(model.st_mode);
    const mode_t mode = same ? model.st_mode & 0777 : 0666;
    for (;;) {
      const Result opened = own(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      if (opened.error != EEXIST) return same && opened.error == 0 ? with_mode(opened, mode) : opened;
      if (const int error = make_way(path); error != 0 && error != ENOENT) return {.error = error};
    }
  }

  Result append(const std::string& path) override { return own(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666); }

  Result write(std::int64_t handle, std::string_view bytes) override {
    return repeated([&] { return ::write(descriptor(handle), bytes.data(), bytes.size()); });
  }

  int sync(std::int64_t handle) override {
    return repeated([&] { return ::fsync(descriptor(handle)); }).error;
  }

  int cut(std::int64_t handle, std::int64_t length) override {
    return repeated([&] { return ::ftruncate(descriptor(handle), length); }).error;
  }

  int close(std::int64_t handle) override {
    // On Linux the descriptor is gone whatever close says: a second call could hit somebody else's.
    return ::close(descriptor(handle)) == 0 || errno == EINTR ? 0 : errno;
  }

  int rename(const std::string& from, const std::string& to) override {
    return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  }

  int remove(const std::string& path) override { return ::unlink(path.c_str()) == 0 ? 0 : errno; }

  int sync_folder(const std::string& folder) override {
    const Result opened = repeated([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (opened.error != 0) return opened.error;
    const int error = sync(opened.value);
    close(opened.value);
    return error == EINVAL ? 0 : error;  // file systems that cannot sync a folder do not need it
  }

  std::string target(const std::string& path) override {
    std::error_code error;
    const std::filesystem::path found = std::filesystem::canonical(path, error);
    return error || !std::filesystem::is_symlink(path, error) ? path : found.string();
  }

  Result size(const std::string& path) override {
    struct stat about;
    if (::stat(path.c_str(), &about) != 0) return {.error = errno};
    if (S_ISDIR(about.st_mode)) return {.error = EISDIR};
    if (!S_ISREG(about.st_mode)) return {.error = EINVAL};
    return {.value = about.st_size};
  }

  Result read(const std::string& path, std::string& bytes) override {
    const Result opened = repeated([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
    if (opened.error != 0) return opened;
    struct stat about;
    int error = ::fstat(descriptor(opened.value), &about) == 0 ? 0 : errno;
    if (error == 0 && S_ISDIR(about.st_mode)) error = EISDIR;
    // Neither a pipe nor a device: those have no size, and may have no end.
    if (error == 0 && !S_ISREG(about.st_mode)) error = EINVAL;
    bytes.clear();
    try {
      if (error == 0) bytes.resize(static_cast<std::size_t>(about.st_size));
    } catch (const std::exception&) {  // too long for a string, or for the memory there is
      error = ENOMEM;
    }
    std::size_t done = 0;
    while (error == 0 && done < bytes.size()) {
      const Result got =
          repeated([&] { return ::read(descriptor(opened.value), bytes.data() + done, bytes.size() - done); });
      error = got.error;
      if (got.value == 0) break;  // it has become shorter meanwhile
      done += static_cast<std::size_t>(got.value);
    }
    bytes.resize(error == 0 ? done : 0);
    close(opened.value);
    return {.value = static_cast<std::int64_t>(done), .error = error};
  }

 private:
  // Opens and locks. Who had the file before may have renamed it between our opening and our locking: then what we
  // hold is not what the path names any more, and we start again.
  Result own(const std::string& path, int flags, mode_t mode) {
    for (;;) {
      const Result opened = repeated([&] { return ::open(path.c_str(), flags, mode); });
      if (opened.error != 0) return opened;
      const int file = descriptor(opened.value);
      const int locked = repeated([&] { return ::flock(file, LOCK_EX | LOCK_NB); }).error;
      if (locked != 0 && locked != ENOLCK && locked != EOPNOTSUPP && locked != ENOSYS) {
        close(opened.value);
        return {.error = locked == EWOULDBLOCK ? EBUSY : locked};
      }
      struct stat held, named;
      if (::fstat(file, &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
          held.st_dev == named.st_dev) {
        return opened;
      }
      close(opened.value);
    }
  }

  // What the umask has taken away is given back.
  Result with_mode(const Result& opened, mode_t mode) {
    struct stat about;
    const int file = descriptor(opened.value);
    if (::fstat(file, &about) == 0 && (about.st_mode & 0777) == mode) return opened;
    if (::fchmod(file, mode) == 0) return opened;
    const int error = errno;
    close(opened.value);
    return {.error = error};
  }

  // Removes what is called so, unless it is a folder, or a file that another process is writing.
  int make_way(const std::string& path) {
    struct stat about;
    if (::lstat(path.c_str(), &about) != 0) return errno;
    if (S_ISDIR(about.st_mode)) return EISDIR;
    if (!S_ISREG(about.st_mode)) return remove(path);  // of a link only the link
    constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    Result old = own(path, O_RDWR | kFlags, 0);  // NFS locks only what one may write
    if (old.error == EACCES) old = own(path, O_RDONLY | kFlags, 0);
    if (old.error != 0) return old.error;
    const int error = remove(path);  // while it is ours
    close(old.value);
    return error;
  }
};

}  // namespace

Files& disk() {
  static Disk real;
  return real;
}

void fail_file(const char* what, const std::string& path, int error) {
  const char* why = error == EBUSY    ? " (another process is writing it)"
                    : error == EINVAL ? " (a device or a pipe? expected a file)"
                                      : "";
  fail(ErrorKind::kFile, "cannot ", what, " '", path, "': ", std::generic_category().message(error), why);
}

void FileWriter::check(int error, const char* what) const {
  if (error != 0) fail_file(what, path_, error);
}

void FileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const Files::Result written = files_.write(handle_, bytes);
    check(written.error, "write");
    if (written.value <= 0) check(ENOSPC, "write");  // nothing went in, and no reason was given
    bytes.remove_prefix(std::min(bytes.size(), static_cast<std::size_t>(written.value)));
  }
}

void FileWriter::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void BufferedWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() >= kLarge) {
    flush();
    out_.write(bytes);
    return;
  }
  held_.reserve(kMost);
  if (held_.size() + bytes.size() > kMost) flush();
  held_.insert(held_.end(), bytes.begin(), bytes.end());
}

void BufferedWriter::flush() {
  if (held_.empty()) return;
  out_.write(std::span<const std::byte>(held_));
  held_.clear();
}

void FileWriter::sync() { check(files_.sync(handle_), "sync"); }
void FileWriter::cut(std::int64_t length) { check(files_.cut(handle_, length), "shorten"); }
void FileWriter::close() { check(files_.close(handle_), "close"); }

std::string temporary_of(const std::string& path) { return path + ".tmp"; }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void replace_file(Files& files, const std::string& path, const std::function<void(FileWriter&)>& write,
                  Lasting lasting) {
  const std::string target = files.target(path);
  const int there = files.size(target).error;
  if (there == EISDIR || there == EINVAL) fail_file("replace", path, there);
  const std::string temporary = temporary_of(target);
  const Files::Result created = files.create(temporary, target);
  if (created.error != 0) fail_file("create", temporary, created.error);
  FileWriter out(files, path, created.value);  // errors name the file that is meant, not the temporary one
  try {
    write(out);
    if (lasting == Lasting::kNow) out.sync();
    // Named before it is closed: until then it is locked, and no other process can empty it.
    if (const int error = files.rename(temporary, target); error != 0) fail_file("replace", path, error);
  } catch (...) {
    files.remove(temporary);  // before the lock on it is gone
    files.close(created.value);
    throw;
  }
  const int closed = files.close(created.value);
  if (lasting == Lasting::kSoon) {  // some file systems tell only now that there is no room
    if (closed != 0) fail_file("write", path, closed);
    return;
  }
  // Everything is synced: closing had nothing left that could fail.
  if (const int error = files.sync_folder(folder_of(target)); error != 0) fail_file("sync the folder of", path, error);
}

std::string read_file(Files& files, const std::string& path) {
  std::string bytes;
  if (const Files::Result read = files.read(path, bytes); read.error != 0) fail_file("read", path, read.error);
  return bytes;
}

bool exists(Files& files, const std::string& path) {
  const int error = files.size(path).error;
  return error != ENOENT && error != ENOTDIR;
}

}  // namespace regard
