// Trains the model of letters_training.h: train_letters PATH [--resume]. The tests kill it at any moment.
#include <cstdio>
#include <string_view>

#include "regard/error.h"
#include "train/letters_training.h"

int main(int count, char** words) {
  if (count < 2) return 2;
  try {
    regard::LettersTraining letters;
    regard::LoopSettings settings = regard::LettersTraining::settings(words[1]);
    settings.resume = count > 2 && std::string_view(words[2]) == "--resume";
    regard::train(settings, letters.task(), regard::Context{.threads = 1});
  } catch (const regard::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
