// A safetensors file that knows what it is and whether it is whole: its metadata begins with a digest of the file and
// with the name and version of its format.
//
//     {"__metadata__":{"digest":"<32 hex digits>","format":"regard-model 1.0",…
//
// The digest is XXH3-128 over the whole file with these digits read as zeros. It stands at a fixed place and is checked
// before anything else is believed. It finds damage, not ill will: what is behind it is read with the same suspicion.
#pragma once

#include <string>
#include <vector>

#include "io/file.h"
#include "io/safetensors.h"

namespace regard {

struct Format {
  const char* name;  // "regard-model"
  int major = 1;     // files of a newer one are refused, those of an older one are read for ever
  int minor = 0;     // newer ones hold more, which may be ignored
};

struct Sealed {
  int major = 0, minor = 0;
  std::string digest;
  Safetensors content;
};

// Tensors may come in any order; the same ones give the same bytes. Metadata other than the above comes in the order
// given.
void write_sealed(Files& files, const std::string& path, const Format& format, const FileMetadata& metadata,
                  std::vector<FileTensor> tensors);

Sealed read_sealed(Files& files, const std::string& path, const Format& format);
Sealed parse_sealed(std::string bytes, const std::string& what, const Format& format);

// Everything before the data of such a file, for those who keep it in memory. Puts the tensors in order.
std::string sealed_header(const Format& format, const FileMetadata& metadata, std::vector<FileTensor>& tensors,
                          std::string_view more = {});

struct FormatVersion {
  int major = 0, minor = 0;
};
// Of "regard-model 1.0"; throws if that names another format or a newer major version.
FormatVersion version_of(std::string_view said, const std::string& what, const Format& format);

std::string_view format_of(std::string_view sealed);  // the name it says; "" if it has no place for one
std::string digest_of(std::string_view sealed);       // what should stand in it; "" if it has no place for a digest
std::string digest_of_bytes(std::string_view bytes);  // of anything
void set_digest(std::string& sealed, std::string_view digest);

}  // namespace regard
