#include "data/lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

#if REGARD_TEXT_LIBRARIES
#include <simdjson.h>
#include <zlib.h>
#endif

namespace regard {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;

[[noreturn]] void cannot_read(const std::string& name, int error) {
  fail(ErrorKind::kFile, "cannot read '", name, "': ", std::strerror(error));
}

// A file as its system gives it.
class RawFile {
 public:
  explicit RawFile(const std::string& path) : name_(path == "-" ? "the standard input" : path) {
    check(!path.empty(), "a file without a name cannot be read");
    if (path == "-") {
      handle_ = STDIN_FILENO;
    } else {
      // A named pipe would make us wait here for somebody who writes, deaf to everything else.
      handle_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
      if (handle_ < 0) cannot_read(name_, errno);
      fcntl(handle_, F_SETFL, O_RDONLY);
      owned_ = true;
    }
    struct stat about = {};
    if (fstat(handle_, &about) == 0) {
      const bool folder = S_ISDIR(about.st_mode);
      if (folder && owned_) close(handle_);
      if (folder) cannot_read(name_, EISDIR);
      seekable_ = owned_ && S_ISREG(about.st_mode);
      nobody_writes_ = owned_ && S_ISFIFO(about.st_mode);
      size_ = static_cast<std::uint64_t>(std::max<off_t>(about.st_size, 0));
    }
  }
  ~RawFile() {
    if (owned_) close(handle_);
  }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  std::size_t read(char* to, std::size_t count) {
    while (nobody_writes_ && !is_ready(-1)) {  // else read would say that this is the end
    }
    nobody_writes_ = false;
    while (true) {
      const ssize_t got = ::read(handle_, to, count);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) cannot_read(name_, errno);
    }
  }
  bool is_ready(int milliseconds) const {
    pollfd wanted = {.fd = handle_, .events = POLLIN, .revents = 0};
    const int found = poll(&wanted, 1, milliseconds);
    return found > 0 || (found < 0 && errno != EINTR);  // an end or a mistake is something, too: read will tell
  }
  void seek(std::uint64_t byte) {
    if (byte > size_ || lseek(handle_, static_cast<off_t>(byte), SEEK_SET) < 0) {
      fail(ErrorKind::kFile, "cannot go on in '", name_, "' at byte ", byte, ": the file has ", size_,
           " (was it replaced?)");
    }
  }
  bool seekable() const { return seekable_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int handle_ = -1;
  bool owned_ = false;
  bool seekable_ = false;
  bool nobody_writes_ = false;  // of a named pipe: nobody may have written yet
  std::uint64_t size_ = 0;
};

#if REGARD_TEXT_LIBRARIES
// One gzip file, which may be several after one another.
class Unpacker {
 public:
  explicit Unpacker(const std::string& name) : name_(name) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) fail(ErrorKind::kLimit, "not enough memory to unpack ", name);
  }
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // Packed bytes in, text out; says how many of either it has used.
  struct Used {
    std::size_t in, out;
  };
  Used unpack(std::string_view in, char* out, std::size_t count) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(count);
    if (ended_) {
      while (stream_.avail_in > 0 && *stream_.next_in == 0) {  // tape blocks are filled up with zeros
        ++stream_.next_in;
        --stream_.avail_in;
      }
      if (stream_.avail_in > 0) {
        inflateReset(&stream_);
        ended_ = false;
      }
    }
    if (!ended_) {
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        ended_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        fail(ErrorKind::kFile, "cannot read '", name_, "': damaged gzip",
             stream_.msg == nullptr ? "" : text(" (", stream_.msg, ")"));
      }
    }
    return {in.size() - stream_.avail_in, count - stream_.avail_out};
  }
  bool ended() const { return ended_; }

 private:
  std::string name_;
  z_stream stream_ = {};
  bool ended_ = false;
};
#endif

// The text of a file: unpacked if it is packed.
class TextSource {
 public:
  explicit TextSource(const std::string& path) : raw_(path), block_(kBlock) {}

  std::size_t read(char* to, std::size_t count) {
    if (!started_) start();
#if REGARD_TEXT_LIBRARIES
    while (unpacker_) {
      if (begin_ == end_ && !done_) refill();
      const bool ended = unpacker_->ended();
      if (begin_ == end_ && done_) {
        if (!ended) fail(ErrorKind::kFile, "cannot read '", raw_.name(), "': gzip that ends too early");
        return 0;
      }
      const Unpacker::Used used = unpacker_->unpack({block_.data() + begin_, end_ - begin_}, to, count);
      begin_ += used.in;
      if (used.out > 0) return used.out;
    }
#endif
    if (begin_ == end_) {
      if (done_) return 0;
      refill();
    }
    const std::size_t some = std::min(count, end_ - begin_);
    std::memcpy(to, block_.data() + begin_, some);
    begin_ += some;
    return some;
  }

  bool is_ready(int milliseconds) const { return begin_ < end_ || done_ || raw_.is_ready(milliseconds); }
  void seek(std::uint64_t byte) {  // plain files
    raw_.seek(byte);
    begin_ = end_ = 0;
    done_ = false;
  }
  void rewind() {
    seek(0);
    start();
  }
  bool packed() {
    if (!started_) start();
#if REGARD_TEXT_LIBRARIES
    return unpacker_.has_value();
#else
    return false;
#endif
  }
  bool seekable() const { return raw_.seekable(); }
  std::size_t held() const { return block_.size(); }
  const std::string& name() const { return raw_.name(); }

 private:
  void refill() {
    begin_ = 0;
    end_ = raw_.read(block_.data(), block_.size());
    done_ = end_ == 0;
  }
  void start() {  // not before it is read: a terminal would wait for its first line
    started_ = true;
    refill();
    while (end_ == 1 && block_[0] == '\x1f') {  // a pipe may hand over one byte
      const std::size_t more = raw_.read(block_.data() + end_, block_.size() - end_);
      if (more == 0) break;
      end_ += more;
    }
    const bool gzip = end_ >= 2 && block_[0] == '\x1f' && block_[1] == '\x8b';
#if REGARD_TEXT_LIBRARIES
    unpacker_.reset();
    if (gzip) unpacker_.emplace(raw_.name());
#else
    check(!gzip, "'", raw_.name(), "' is gzip; this build has no zlib: unpack it first");
#endif
  }

  RawFile raw_;
  std::vector<char> block_;
  std::size_t begin_ = 0, end_ = 0;
  bool done_ = false, started_ = false;
#if REGARD_TEXT_LIBRARIES
  std::optional<Unpacker> unpacker_;
#endif
};

std::string_view file_stem(std::string_view name) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name;
}

}  // namespace

std::string_view to_text(LineFault fault) {
  switch (fault) {
    case LineFault::kEmpty:
      return "empty";
    case LineFault::kNotUtf8:
      return "not UTF-8";
    case LineFault::kNul:
      return "with a NUL";
    case LineFault::kTooLong:
      return "too long";
    case LineFault::kColumns:
      return "too few columns";
    case LineFault::kJson:
      return "no JSON with both fields";
  }
  return "";
}

void LineReport::add(LineFault fault, const std::string& file, std::uint64_t line, std::string what) {
  const auto index = static_cast<std::size_t>(fault);
  ++counts_[index];
  if (places_[index].size() < kPlaces) places_[index].push_back({file, line, std::move(what)});
}

std::uint64_t LineReport::dropped() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts_) sum += count;
  return sum;
}

std::string LineReport::text() const {
  std::string out;
  for (std::size_t i = 0; i < kLineFaults; ++i) {
    if (counts_[i] == 0) continue;
    out += regard::text(counts_[i],
                        counts_[i] == 1 ? " line left out: " : " lines left out: ", to_text(static_cast<LineFault>(i)),
                        ": ");
    for (std::size_t place = 0; place < places_[i].size(); ++place) {
      const Place& each = places_[i][place];
      out += regard::text(place == 0 ? "" : ", ", each.file, ":", each.line);
      if (!each.what.empty()) out += " (" + each.what + ")";
    }
    out += counts_[i] > places_[i].size() ? ", …\n" : "\n";
  }
  return out;
}

class LineReader::Impl {
 public:
  Impl(const std::string& path, std::size_t longest) : source_(path), longest_(longest), block_(kBlock) {}

  bool next(Line& line) {
    line.text.clear();
    line.bytes = 0;
    line.too_long = false;
    bool found = false, any = false;
    std::uint64_t taken = 0;
    while (!found) {
      if (begin_ == end_) {
        begin_ = 0;
        end_ = source_.read(block_.data(), block_.size());
        if (end_ == 0) break;
      }
      any = true;
      const char* start = block_.data() + begin_;
      const auto* newline = static_cast<const char*>(std::memchr(start, '\n', end_ - begin_));
      found = newline != nullptr;
      const std::size_t count = found ? static_cast<std::size_t>(newline - start) : end_ - begin_;
      // One byte more than allowed is kept: it may be the carriage return.
      const std::size_t room = longest_ + 1 + kMark.size() - std::min(line.text.size(), longest_ + 1 + kMark.size());
      line.text.append(start, std::min(count, room));
      line.bytes += count;
      begin_ += count + (found ? 1 : 0);
      taken += count + (found ? 1 : 0);
    }
    if (!any) return false;
    const bool complete = line.bytes == line.text.size();
    if (position_.line == 0 && std::string_view(line.text).starts_with(kMark)) {
      line.text.erase(0, kMark.size());
      line.bytes -= kMark.size();
    }
    if (complete && line.text.ends_with('\r')) {
      line.text.pop_back();
      --line.bytes;
    }
    line.too_long = line.bytes > longest_;
    if (line.too_long) line.text.clear();
    if (line.text.capacity() > 2 * kBlock && line.text.size() < kBlock) line.text.shrink_to_fit();
    position_.byte += taken;
    line.number = ++position_.line;
    return true;
  }

  bool is_ready(int milliseconds) {
    return std::memchr(block_.data() + begin_, '\n', end_ - begin_) != nullptr || source_.is_ready(milliseconds);
  }
  LinePosition position() const { return position_; }
  bool can_seek() const { return source_.seekable(); }

  void seek(const LinePosition& to) {
    if (to == position_) return;
    if (source_.seekable() && !source_.packed()) {
      // The byte before has to be a newline, or this is not the file that the position was taken from.
      source_.seek(to.byte == 0 ? 0 : to.byte - 1);
      begin_ = end_ = 0;
      if (to.byte > 0) {
        end_ = source_.read(block_.data(), block_.size());
        const bool last = end_ == 1 && block_[0] != '\n';  // a last line without a newline
        if (end_ == 0 || (block_[0] != '\n' && !last)) wrong(to);
        begin_ = 1;
      }
      position_ = to;
      return;
    }
    if (to.line < position_.line) {
      check(source_.seekable(), "cannot go back in ", source_.name(), " to line ", to.line, " from line ",
            position_.line, ": it can be read only once");
      source_.rewind();
      begin_ = end_ = 0;
      position_ = {};
    }
    Line line;
    while (position_.line < to.line) {
      if (!next(line)) wrong(to);
    }
    if (position_.byte != to.byte) wrong(to);
  }

  std::size_t held() const { return source_.held() + block_.size(); }
  const std::string& name() const { return source_.name(); }

 private:
  static constexpr std::string_view kMark = "\xEF\xBB\xBF";

  [[noreturn]] void wrong(const LinePosition& to) const {
    fail(ErrorKind::kFile, "cannot go on in '", source_.name(), "' behind line ", to.line, ": no line ends at byte ",
         to.byte, " (was the file replaced?)");
  }

  TextSource source_;
  std::size_t longest_;
  std::vector<char> block_;
  std::size_t begin_ = 0, end_ = 0;
  LinePosition position_;
};

LineReader::LineReader(const std::string& path, std::size_t longest) : impl_(std::make_unique<Impl>(path, longest)) {}
LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;
bool LineReader::next(Line& line) { return impl_->next(line); }
bool LineReader::is_ready(int milliseconds) { return impl_->is_ready(milliseconds); }
LinePosition LineReader::position() const { return impl_->position(); }
void LineReader::seek(const LinePosition& position) { impl_->seek(position); }
bool LineReader::can_seek() const { return impl_->can_seek(); }
std::size_t LineReader::held() const { return impl_->held(); }
const std::string& LineReader::name() const { return impl_->name(); }

bool is_whole(std::string_view text, const std::string& file, std::uint64_t line, LineReport& report) {
  if (text.find_first_not_of(" \t\r\v\f") == std::string_view::npos) {
    report.add(LineFault::kEmpty, file, line, "");
    return false;
  }
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
    report.add(LineFault::kNul, file, line, regard::text("byte ", at + 1));
    return false;
  }
  if (const std::size_t at = utf8::first_wrong(text); at != text.size()) {
    report.add(LineFault::kNotUtf8, file, line, regard::text("byte ", at + 1));
    return false;
  }
  return true;
}

class PairReader::Impl {
 public:
  explicit Impl(PairFiles files) : files_(std::move(files)), source_(checked(files_).source, files_.longest) {
    if (files_.format != PairFormat::kLines) return;
    check(files_.source != "-" || files_.target != "-",
          "both sides cannot come from the standard input: "
          "give pairs in one stream, separated by tabs");
    target_.emplace(files_.target, files_.longest);
  }

  bool next(LinePair& pair) {
    while (true) {
      const bool more = source_.next(line_);
      if (target_ && target_->next(other_) != more) unequal(more);
      if (!more) return false;
      pair.line = line_.number;
      ++report_.read;
      if (take(pair)) return true;
    }
  }

  PairPosition position() const {
    const LinePosition at = source_.position();
    return {at.line, at.byte, target_ ? target_->position().byte : 0};
  }
  void seek(const PairPosition& to) {
    source_.seek({to.line, to.source_byte});
    if (target_) target_->seek({to.line, to.target_byte});
  }
  bool can_seek() const { return source_.can_seek() && (!target_ || target_->can_seek()); }
  bool is_ready(int milliseconds) {
    return source_.is_ready(milliseconds) && (!target_ || target_->is_ready(milliseconds));
  }
  std::size_t held() const {
    return source_.held() + (target_ ? target_->held() : 0) + line_.text.capacity() + other_.text.capacity();
  }
  std::string name() const { return target_ ? source_.name() + " and " + target_->name() : source_.name(); }
  const LineReport& report() const { return report_; }

 private:
  static const PairFiles& checked(PairFiles& files) {
    if (files.format == PairFormat::kByName) {
      const std::string_view stem = file_stem(files.source);
      files.format = !files.target.empty()                                 ? PairFormat::kLines
                     : stem.ends_with(".jsonl") || stem.ends_with(".json") ? PairFormat::kJson
                                                                           : PairFormat::kTable;
    }
    check(files.format != PairFormat::kLines || !files.target.empty(), "'", files.source,
          "': line-aligned text takes two files, got one");
    check(files.format == PairFormat::kLines || files.target.empty(), "'", files.source, "': a table takes one file, '",
          files.target, "' is one more");
    check(files.source_column > 0 && files.target_column > 0, "columns are counted from 1, got ", files.source_column,
          " and ", files.target_column);
    check(files.longest > 0 && files.longest <= (std::size_t{1} << 30),
          "the longest line may have 1 to 2^30 bytes, got ", files.longest);
    return files;
  }

  bool fits(const LineReader::Line& line, const std::string& file) {
    if (!line.too_long) return true;
    report_.add(LineFault::kTooLong, file, line.number, text(line.bytes, " bytes, at most ", files_.longest));
    return false;
  }

  bool take(LinePair& pair) {
    if (!fits(line_, source_.name())) return false;
    switch (files_.format) {
      case PairFormat::kTable:
        if (!columns(pair)) return false;
        break;
      case PairFormat::kJson:
        if (!fields(pair)) return false;
        break;
      case PairFormat::kByName:
      case PairFormat::kLines:
        if (!fits(other_, target_->name())) return false;
        pair.source.assign(line_.text);
        pair.target.assign(other_.text);
        break;
    }
    return is_whole(pair.source, source_.name(), pair.line, report_) &&
           is_whole(pair.target, target_ ? target_->name() : source_.name(), pair.line, report_);
  }

  bool columns(LinePair& pair) {
    const std::int64_t last = std::max(files_.source_column, files_.target_column);
    std::string_view rest = line_.text;
    for (std::int64_t column = 1; column <= last; ++column) {
      const std::size_t end = rest.find('\t');
      const std::string_view cell = rest.substr(0, end);
      if (column == files_.source_column) pair.source.assign(cell);
      if (column == files_.target_column) pair.target.assign(cell);
      if (end == std::string_view::npos) {
        if (column == last) return true;
        const bool blank = line_.text.find_first_not_of(" \r") == std::string::npos;
        report_.add(blank ? LineFault::kEmpty : LineFault::kColumns, source_.name(), line_.number,
                    blank ? "" : text(column, " of ", last));
        return false;
      }
      rest.remove_prefix(end + 1);
    }
    return true;
  }

  bool fields(LinePair& pair) {
#if REGARD_TEXT_LIBRARIES
    if (line_.text.find_first_not_of(" \t\r") == std::string::npos) {
      report_.add(LineFault::kEmpty, source_.name(), line_.number, "");
      return false;
    }
    if (const std::size_t at = line_.text.find('\0'); at != std::string::npos) {
      report_.add(LineFault::kNul, source_.name(), line_.number, text("byte ", at + 1));
      return false;
    }
    simdjson::dom::element root;
    const auto reject = [&](const std::string& what) {
      report_.add(LineFault::kJson, source_.name(), line_.number, what);
      return false;
    };
    if (const auto error = parser_.parse(line_.text).get(root)) return reject(simdjson::error_message(error));
    simdjson::dom::object object;
    if (root.get(object)) return reject("no object");
    for (const bool first : {true, false}) {
      const std::string& field = first ? files_.source_field : files_.target_field;
      std::string_view value;
      if (object[field].get(value)) return reject("no text '" + field + "'");
      (first ? pair.source : pair.target).assign(value);
    }
    return true;
#else
    static_cast<void>(pair);
    fail(ErrorKind::kInput, "'", source_.name(), "': this build reads no JSON lines: make a table of them");
#endif
  }

  [[noreturn]] void unequal(bool source_goes_on) {
    LineReader& shorter = source_goes_on ? *target_ : source_;
    LineReader& longer = source_goes_on ? source_ : *target_;
    const std::uint64_t count = shorter.position().line;
    while (longer.next(line_)) {
    }
    fail(ErrorKind::kFile, "'", shorter.name(), "' ends after line ", count, ", '", longer.name(), "' has ",
         longer.position().line, " lines: line-aligned files must have equally many");
  }

  PairFiles files_;
  LineReader source_;
  std::optional<LineReader> target_;
  LineReader::Line line_, other_;
  LineReport report_;
#if REGARD_TEXT_LIBRARIES
  simdjson::dom::parser parser_;
#endif
};

PairReader::PairReader(PairFiles files) : impl_(std::make_unique<Impl>(std::move(files))) {}
PairReader::~PairReader() = default;
PairReader::PairReader(PairReader&&) noexcept = default;
PairReader& PairReader::operator=(PairReader&&) noexcept = default;
bool PairReader::next(LinePair& pair) { return impl_->next(pair); }
PairPosition PairReader::position() const { return impl_->position(); }
void PairReader::seek(const PairPosition& position) { impl_->seek(position); }
bool PairReader::can_seek() const { return impl_->can_seek(); }
std::size_t PairReader::held() const { return impl_->held(); }
std::string PairReader::name() const { return impl_->name(); }
const LineReport& PairReader::report() const { return impl_->report(); }
bool PairReader::is_ready(int milliseconds) { return impl_->is_ready(milliseconds); }

const LineReport& PairStream::report() const {
  static const LineReport nothing;
  return nothing;
}

void PairList::seek(const PairPosition& position) {
  check(position.line <= pairs_->size(), name_, " has ", pairs_->size(), " pairs, cannot go on behind pair ",
        position.line);
  at_ = static_cast<std::size_t>(position.line);
}

std::string no_pair_text(const PairStream& stream) {
  const std::string said = stream.name() + " has no pair";
  const LineReport& report = stream.report();
  if (report.dropped() == 0) return said;
  auto most = LineFault::kEmpty;
  for (std::size_t i = 0; i < kLineFaults; ++i) {
    if (report.count(static_cast<LineFault>(i)) > report.count(most)) most = static_cast<LineFault>(i);
  }
  const LineReport::Place& first = report.places(most).front();
  return text(said, ": ", report.dropped(), report.dropped() == 1 ? " line left out" : " lines left out", "; ",
              first.file, ":", first.line, ": ", to_text(most), first.what.empty() ? "" : " (" + first.what + ")");
}

}  // namespace regard
