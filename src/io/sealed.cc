#include "io/sealed.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "io/json.h"

namespace regard {
namespace {

constexpr std::string_view kBefore = R"({"__metadata__":{"digest":")", kAfter = R"(","format":")";
constexpr std::size_t kAt = 8 + kBefore.size(), kDigits = 32, kFormatAt = kAt + kDigits + kAfter.size();
const std::string kZeros(kDigits, '0');

class Digest {
 public:
  Digest() { XXH3_128bits_reset(&state_); }
  void add(std::string_view bytes) { XXH3_128bits_update(&state_, bytes.data(), bytes.size()); }
  void add(std::span<const std::byte> bytes) { XXH3_128bits_update(&state_, bytes.data(), bytes.size()); }
  std::string text() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  XXH3_state_t state_;
};

bool has_place(std::string_view bytes) {
  return bytes.size() >= kFormatAt && bytes.substr(8, kBefore.size()) == kBefore &&
         bytes.substr(kAt + kDigits, kAfter.size()) == kAfter;
}

}  // namespace

std::string_view format_of(std::string_view sealed) {
  if (!has_place(sealed)) return "";
  const std::string_view behind = sealed.substr(kFormatAt, 64);
  return behind.substr(0, std::min(behind.find_first_of(" \""), behind.size()));
}

std::string digest_of(std::string_view sealed) {
  if (!has_place(sealed)) return "";
  Digest digest;
  digest.add(sealed.substr(0, kAt));
  digest.add(kZeros);
  digest.add(sealed.substr(kAt + kDigits));
  return digest.text();
}

std::string digest_of_bytes(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.text();
}

void set_digest(std::string& sealed, std::string_view digest) { sealed.replace(kAt, kDigits, digest); }

std::string sealed_header(const Format& format, const FileMetadata& metadata, std::vector<FileTensor>& tensors,
                          std::string_view more) {
  in_file_order(tensors);
  FileMetadata whole = {{"digest", kZeros},
                        {"format", fmt::format("{} {}.{}", format.name, format.major, format.minor)}};
  whole.insert(whole.end(), metadata.begin(), metadata.end());
  std::string header = safetensors_header(whole, tensors, more);
  Digest digest;
  digest.add(header);
  for (const FileTensor& tensor : tensors) digest.add(tensor.bytes);
  set_digest(header, digest.text());
  return header;
}

void write_sealed(Files& files, const std::string& path, const Format& format, const FileMetadata& metadata,
                  std::vector<FileTensor> tensors) {
  const std::string header = sealed_header(format, metadata, tensors);
  replace_file(files, path, [&](FileWriter& out) {
    out.write(header);
    for (const FileTensor& tensor : tensors) out.write(tensor.bytes);
  });
}

FormatVersion version_of(std::string_view said, const std::string& what, const Format& format) {
  const auto refuse = [&](const auto&... why) { fail(ErrorKind::kFile, what, why...); };
  const std::size_t blank = said.find(' '), dot = said.find('.', blank);
  if (blank == std::string_view::npos || dot == std::string_view::npos || said.substr(0, blank) != format.name) {
    refuse(" is not a ", format.name, " file: it says ", json_quote(said));
  }
  FormatVersion version;
  const auto number = [&](std::string_view text, int& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0)
      refuse(": no version in ", json_quote(said));
  };
  number(said.substr(blank + 1, dot - blank - 1), version.major);
  number(said.substr(dot + 1), version.minor);
  if (version.major > format.major) {
    refuse(" has format ", version.major, ".", version.minor, ", this version of Regard reads ", format.major,
           ".x at most; a newer Regard is needed");
  }
  return version;
}

Sealed parse_sealed(std::string bytes, const std::string& what, const Format& format) {
  const auto refuse = [&](const auto&... why) { fail(ErrorKind::kFile, what, why...); };
  const std::string expected = digest_of(bytes);
  if (expected.empty()) refuse(" is not a ", format.name, " file, or its beginning is damaged");
  std::string digest = bytes.substr(kAt, kDigits);
  if (digest != expected) refuse(" is damaged: its digest should be ", digest, ", it is ", expected);

  const std::string_view all = bytes;
  const FormatVersion version =
      version_of(all.substr(kFormatAt, std::min<std::size_t>(all.substr(kFormatAt, 64).find('"'), 64)), what, format);
  return {.major = version.major,
          .minor = version.minor,
          .digest = std::move(digest),
          .content = Safetensors::parse(std::move(bytes), what)};
}

Sealed read_sealed(Files& files, const std::string& path, const Format& format) {
  return parse_sealed(read_file(files, path), "'" + path + "'", format);
}

}  // namespace regard
