// Settings of a translation model that is trained for a moment: what it writes is nonsense, but the same every time.
#pragma once

#include "tasks/train_translation.h"

namespace regard {

inline TranslationSettings quick_training() {
  TranslationSettings settings;
  settings.tokenizer = "words";
  settings.batch_tokens = 400;
  settings.warmup = 10;
  settings.rate = 5e-3;
  settings.stop_after = "30u";
  settings.valid_every = "100u";
  settings.longest_text = 40;
  return settings;
}

}  // namespace regard
