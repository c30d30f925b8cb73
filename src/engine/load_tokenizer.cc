#include <filesystem>

#include "engine/vocab_from_gguf.h"
#include "octavo/tokenizer.h"

namespace octavo {

namespace {

Result<std::unique_ptr<Tokenizer>> from_folder(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return Error{ErrorCode::kNotFound, "the folder " + folder.string() + " has no tokenizer.json", "tokenizer"};
  }
  return Error{ErrorCode::kUnsupported,
               file.string() + ": tokenizers in Hugging Face's format are not supported yet; use a GGUF file",
               "tokenizer"};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return from_folder(path);
  OCTAVO_TRY(const GgufFile file, GgufFile::open(path));
  OCTAVO_TRY(Vocab vocab, vocab_from_gguf(file));
  Result<std::unique_ptr<Tokenizer>> tokenizer = make_tokenizer(std::move(vocab));
  if (tokenizer) return tokenizer;
  Error error = std::move(tokenizer).error();
  error.message = path + ": " + error.message;
  return error;
}

}  // namespace octavo
