// Makes up meanings.
#pragma once

#include "data/grammar/meaning.h"
#include "regard/random.h"

namespace regard::grammar {

Meaning make_meaning(RandomKey key);  // the same key, the same meaning
Meaning they_are_watching();

}  // namespace regard::grammar
