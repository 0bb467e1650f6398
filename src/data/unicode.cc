#include "data/unicode.h"

#include "base/check.h"
#include "base/utf8.h"
#if REGARD_TEXT_LIBRARIES
#include <utf8proc.h>
#endif

namespace regard {
namespace {

bool between(char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; }

// Unicode's blocks of Chinese characters and kana; the library does not know about scripts.
bool is_wide_letter(char32_t code) {
  if (code < 0x2E80) return false;
  return between(code, 0x2E80, 0x2FDF) || code == 0x3005 || code == 0x3007 || between(code, 0x3021, 0x3029) ||
         between(code, 0x3041, 0x30FF) || between(code, 0x31F0, 0x31FF) || between(code, 0x3400, 0x4DBF) ||
         between(code, 0x4E00, 0x9FFF) || between(code, 0xF900, 0xFAFF) || between(code, 0xFF66, 0xFF9F) ||
         between(code, 0x1AFF0, 0x1B16F) || between(code, 0x20000, 0x3FFFD);
}

bool is_wide_mark(char32_t code) {
  return between(code, 0x3000, 0x303F) || code == 0x30FB || between(code, 0xFE30, 0xFE4F) ||
         between(code, 0xFF01, 0xFF0F) || between(code, 0xFF1A, 0xFF20) || between(code, 0xFF3B, 0xFF40) ||
         between(code, 0xFF5B, 0xFF65);
}

#if !REGARD_TEXT_LIBRARIES
[[noreturn]] void no_library() {
  fail(ErrorKind::kInput, "this build has no utf8proc: it splits no text into words and changes no case");
}
#endif

}  // namespace

LetterClass letter_class(char32_t code) {
#if REGARD_TEXT_LIBRARIES
  if (code == U'\'' || code == 0x2019 || code == U'-' || code == U'/' || code == U'_' || code == U'@' || code == U'"') {
    return LetterClass::kJoining;
  }
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  switch (category) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
      return LetterClass::kSpace;
    default:
      break;
  }
  if (is_wide_mark(code) && !is_wide_letter(code)) return LetterClass::kWideMark;
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return is_wide_letter(code) ? LetterClass::kWideWord : LetterClass::kWord;
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PI:
      return LetterClass::kOpening;
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PF:
      return LetterClass::kClosing;
    case UTF8PROC_CATEGORY_PO:
      if (code == 0xA1 || code == 0xBF) return LetterClass::kOpening;
      return code == U'&' || code == U'*' || code == U'#' ? LetterClass::kStandsFree : LetterClass::kClosing;
    case UTF8PROC_CATEGORY_PC:
      return LetterClass::kJoining;
    default:
      return is_wide_letter(code) ? LetterClass::kWideWord : LetterClass::kStandsFree;
  }
#else
  static_cast<void>(code), static_cast<void>(&is_wide_letter), static_cast<void>(&is_wide_mark);
  no_library();
#endif
}

bool glued_by_rule(LetterClass before, LetterClass behind) {
  const auto wide = [](LetterClass each) { return each == LetterClass::kWideWord || each == LetterClass::kWideMark; };
  if (wide(before) || wide(behind)) return true;
  if (before == LetterClass::kOpening || behind == LetterClass::kClosing) return true;
  return before == LetterClass::kJoining || behind == LetterClass::kJoining;
}

char32_t to_lower(char32_t code) {
#if REGARD_TEXT_LIBRARIES
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
#else
  if (code < 0x80) return code >= U'A' && code <= U'Z' ? code + 32 : code;
  no_library();
#endif
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Letter letter = utf8::read(text, at);
    utf8::append(out, to_lower(letter.code));
    at += letter.length;
  }
  return out;
}

Cluster next_cluster(std::string_view text, std::size_t begin) {
#if REGARD_TEXT_LIBRARIES
  utf8::Letter letter = utf8::read(text, begin);
  Cluster cluster = {begin, begin + letter.length, letter.code};
  utf8proc_int32_t state = 0;
  while (cluster.end < text.size()) {
    const utf8::Letter next = utf8::read(text, cluster.end);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(letter.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state)) {
      break;
    }
    cluster.end += next.length;
    letter = next;
  }
  return cluster;
#else
  static_cast<void>(text), static_cast<void>(begin);
  no_library();
#endif
}

}  // namespace regard
