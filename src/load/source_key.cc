#include "load/source_key.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "load/sha256.h"

namespace octavo {
namespace {

constexpr std::size_t kSampleBytes = 4096;

/// Of each page that is not in memory, a disk reads many; of scattered samples that would be most of the file.
void advise(const ModelSource& source, int advice) {
  for (const FileMap* file : source.maps) {
    ::madvise(const_cast<std::byte*>(file->bytes().data()), file->bytes().size(), advice);
  }
}

}  // namespace

std::string source_key(const ModelSource& source) {
  Sha256 hash;
  hash.add("octavo source 1");
  for (const FileMap* file : source.maps) {
    const FileIdentity& id = file->identity();
    hash.add(fmt::format(";{} {} {}", id.size, id.mtime_ns, id.inode));
  }
  for (const auto header : source.headers) hash.add(header);
  advise(source, MADV_RANDOM);
  // Ends, not beginnings: a file that was not written to its end is more likely than any other damage.
  for (const StoredTensor& tensor : source.tensors) {
    hash.add(tensor.bytes.last(std::min(kSampleBytes, tensor.bytes.size())));
  }
  advise(source, MADV_NORMAL);
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
