// What the module regard_pieces.so offers. SentencePiece's library takes longer to load than everything else together
// and is needed only when a vocabulary is trained: so it is linked into this module alone, which train_pieces.cc opens.
// Everything crosses as plain C: the module and the program may have been made by different compilers.
#pragma once

#include <cstddef>

extern "C" {

struct RegardPiecesText {
  const char* data;
  std::size_t size;
};

// Functions that end with an int give 1 if all went well; else a text for the user is in `error`.
struct RegardPiecesModule {
  int version;  // kRegardPiecesVersion

  // `next` gives the next text to learn from, 0 at the end; `done` gets the bytes of the model.
  int (*train)(const char* options, int (*next)(void* user, RegardPiecesText* text),
               void (*done)(void* user, RegardPiecesText model), void* user, char* error, std::size_t error_size);

  // As the library itself does it, for tests: ids of a text, and a text of ids. Only for models that one has made.
  void* (*open)(RegardPiecesText model);  // nullptr: it will not have it
  void (*close)(void* opened);
  int (*encode)(void* opened, RegardPiecesText text, void (*token)(void* user, int id, unsigned begin, unsigned end),
                void* user);
  int (*decode)(void* opened, const int* ids, std::size_t count, void (*done)(void* user, RegardPiecesText text),
                void* user);
};

typedef const RegardPiecesModule* RegardPiecesOpen(void);  // the module's symbol regard_pieces_module
}

inline constexpr int kRegardPiecesVersion = 1;
