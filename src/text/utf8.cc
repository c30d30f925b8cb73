#include "text/utf8.h"

namespace octavo {

namespace {

struct LeadByte {
  std::size_t length;               // of the whole character; 0: no character starts so
  unsigned char second_min = 0x80;  // the second byte is narrower than the others: no overlong forms,
  unsigned char second_max = 0xBF;  // no surrogates, nothing above U+10FFFF
};

LeadByte classify(unsigned char lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xC2) return {0};
  if (lead < 0xE0) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Unit read_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const LeadByte lead = classify(byte(0));
  if (lead.length == 1) return {byte(0), 1, true, false};
  if (lead.length == 0) return {kReplacementCharacter, 1, false, false};

  char32_t code_point = byte(0) & (0x7Fu >> lead.length);
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (at + i == text.size()) return {kReplacementCharacter, i, false, true};
    const unsigned char low = i == 1 ? lead.second_min : 0x80;
    const unsigned char high = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < low || byte(i) > high) return {kReplacementCharacter, i, false, false};
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  return {code_point, lead.length, true, false};
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
  }
  put(0x80 | (code_point & 0x3F));
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = read_utf8(text, at);
    out += unit.valid ? text.substr(at, unit.length) : kReplacementUtf8;
    at += unit.length;
  }
  return out;
}

}  // namespace octavo
