// `regard info`: what is in a model or a checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cli/command.h"
#include "cli/text.h"
#include "io/json.h"
#include "io/model_file.h"
#include "train/checkpoint.h"

namespace regard::cli {
namespace {

// Names come from the file: what a terminal would obey is written out.
std::string plain(std::string_view text) {
  const std::string quoted = json_quote(text);
  return quoted.substr(1, quoted.size() - 2);
}

// An object as rows of two columns, what is in objects under it as "outer.inner".
using Rows = std::vector<std::pair<std::string, std::string>>;
void flatten(const Json& object, const std::string& prefix, Rows& rows) {
  for (const auto& [key, value] : object.object()) {
    const std::string name = prefix + plain(key);
    if (value.kind() == Json::Kind::kObject) {
      flatten(value, name + ".", rows);
    } else {
      rows.emplace_back(name, value.kind() == Json::Kind::kText ? plain(value.text()) : value.to_json());
    }
  }
}

void print_rows(const char* title, const Rows& rows) {
  if (rows.empty()) return;
  std::size_t width = 0;
  for (const auto& [name, value] : rows) width = std::max(width, letters(name));
  fmt::print("\n{}\n", title);
  for (const auto& [name, value] : rows) fmt::print("  {}  {}\n", padded(name, width), value);
}

std::string shape_text(const FileTensor& tensor) { return fmt::format("[{}]", fmt::join(tensor.shape, ", ")); }

struct Contents {
  Rows tokenizers, tensors;
  std::uint64_t weights = 0;       // numbers
  std::size_t weight_tensors = 0;  // scales, and those of a checkpoint that are no weights, do not count
  std::uint64_t bytes = 0;
};

Contents contents_of(const Safetensors& file, bool checkpoint) {
  Contents out;
  std::vector<const FileTensor*> sorted;
  for (const FileTensor& tensor : file.tensors()) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const FileTensor* tensor : sorted) {
    out.bytes += tensor->bytes.size();
    const auto kind = file.metadata().find(tensor->name);
    if (kind != file.metadata().end() && tensor->name.starts_with("tokenizer/")) {
      out.tokenizers.emplace_back(plain(tensor->name.substr(10)),
                                  fmt::format("{}, {} bytes", plain(kind->second), with_commas(tensor->bytes.size())));
      continue;
    }
    out.tensors.emplace_back(plain(tensor->name), fmt::format("{:<4} {}", name_of(tensor->type), shape_text(*tensor)));
    if (checkpoint ? !tensor->name.starts_with("weights/") : tensor->name.ends_with("/scale")) continue;
    out.weights += tensor->bytes.size() / bytes_of(tensor->type);
    ++out.weight_tensors;
  }
  return out;
}

int tell(const std::string& path, bool json) {
  std::string bytes = read_file(disk(), path);
  const std::size_t size = bytes.size();
  const bool checkpoint = format_of(bytes) == kCheckpointFormat.name;
  const Format& format = checkpoint ? kCheckpointFormat : kModelFormat;
  const Sealed sealed = parse_sealed(std::move(bytes), "'" + path + "'", format);
  const Contents contents = contents_of(sealed.content, checkpoint);
  const auto object = [&](const char* key) {
    const auto found = sealed.content.metadata().find(key);
    if (found == sealed.content.metadata().end()) fail(ErrorKind::kFile, sealed.content.what(), ": there is no ", key);
    const Json value = Json::parse(found->second, std::string(key) + " of " + sealed.content.what());
    value.object();  // throws if it is none
    return value;
  };
  const std::vector<const char*> told = checkpoint ? std::vector{"identity", "state"} : std::vector{"config"};

  if (json) {
    JsonWriter out;
    out.begin_object().key("file").value(path).key("bytes").value(static_cast<std::uint64_t>(size));
    out.key("format").value(format.name).key("version").value(fmt::format("{}.{}", sealed.major, sealed.minor));
    out.key("digest").value(sealed.digest).key("weights").value(contents.weights);
    for (const char* key : told) out.key(key).raw(object(key).to_json());
    out.key("tensors").begin_array();
    for (const FileTensor& tensor : sealed.content.tensors()) {
      out.begin_object()
          .key("name")
          .value(tensor.name)
          .key("dtype")
          .value(name_of(tensor.type))
          .key("shape")
          .begin_array();
      for (const std::int64_t each : tensor.shape) out.value(each);
      out.end_array();
      const auto kind = sealed.content.metadata().find(tensor.name);
      if (kind != sealed.content.metadata().end()) out.key("tokenizer").value(kind->second);
      out.end_object();
    }
    fmt::print("{}\n", out.end_array().end_object().text());
    return 0;
  }

  fmt::print("file     {}, {} bytes\n", path, with_commas(size));
  fmt::print("format   {} {}.{}\n", format.name, sealed.major, sealed.minor);
  fmt::print("digest   {}, as it should be\n", sealed.digest);
  fmt::print("weights  {} in {} tensors\n", with_commas(contents.weights), contents.weight_tensors);
  for (const char* key : told) {
    Rows rows;
    flatten(object(key), "", rows);
    std::erase_if(rows, [](const auto& row) { return row.first.starts_with("optimizer.counts."); });  // one a parameter
    print_rows(key, rows);
  }
  print_rows("tokenisers", contents.tokenizers);
  print_rows("tensors", contents.tensors);
  return 0;
}

const AddCommand info({
    .name = "info",
    .summary = "what is in a model or a checkpoint: settings, tokenisers, weights",
    .example = "regard info zh-en.model",
    .build = [](App& app) -> Run {
      auto path = std::make_shared<std::string>();
      auto json = std::make_shared<bool>(false);
      app.add_option("MODEL", *path, "the file")->required();
      app.add_flag("--json", *json, "as JSON");
      return [path, json](const Context&) { return tell(*path, *json); };
    },
});

}  // namespace
}  // namespace regard::cli
