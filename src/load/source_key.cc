#include "load/source_key.h"

#include <fmt/format.h>

#include <algorithm>

#include "load/sha256.h"

namespace octavo {
namespace {

constexpr std::size_t kSampleBytes = 4096;

}  // namespace

std::string source_key(const ModelSource& source) {
  Sha256 hash;
  hash.add("octavo source 1");
  for (const FileMap* file : source.maps) {
    const FileIdentity& id = file->identity();
    hash.add(fmt::format(";{} {} {}", id.size, id.mtime_ns, id.inode));
  }
  for (const auto header : source.headers) hash.add(header);
  // Ends, not beginnings: a file that was not written to its end is more likely than any other damage.
  for (const StoredTensor& tensor : source.tensors) {
    hash.add(tensor.bytes.last(std::min(kSampleBytes, tensor.bytes.size())));
  }
  return hash.hex();
}

std::string source_sha256(std::span<const FileMap* const> files) {
  std::vector<std::string> of_files;
  for (const FileMap* file : files) {
    Sha256 hash;
    hash.add(file->bytes());
    of_files.push_back(hash.hex());
  }
  return join_sha256(of_files);
}

std::string join_sha256(const std::vector<std::string>& of_files) {
  if (of_files.size() == 1) return of_files.front();
  Sha256 hash;
  for (const std::string& one : of_files) hash.add(one);
  return hash.hex();
}

}  // namespace octavo
