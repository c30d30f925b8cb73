// Identifies the weights of a model: quickly, and by all of its bytes.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/file_map.h"
#include "load/model_source.h"

namespace octavo {

/// See Checkpoint::source_key().
[[nodiscard]] std::string source_key(const ModelSource& source);

/// SHA-256 (hex) of all bytes of a model's files: of one file as sha256sum tells it, of several see join_sha256.
[[nodiscard]] std::string source_sha256(std::span<const FileMap* const> files);
/// The SHA-256 of the files' SHA-256s, as hex, in order; of a single file its own.
[[nodiscard]] std::string join_sha256(const std::vector<std::string>& of_files);

}  // namespace octavo
