// What is told about a translation beside its text, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/json.h"
#include "serve/request.h"
#include "tasks/alignment.h"
#include "tasks/translator.h"

namespace regard::serve {

// {"level": "word", "source": [{"text": "他们", "begin": 0, "end": 2}, …], "target": […],
//  "links": [{"source": 0, "target": 0, "weight": 0.9}, …]}; begin and end count characters.
void write_alignment(JsonWriter& out, const Translator& translator, const TextPair& texts,
                     const Translator::Looked& looked, const AlignmentAsked& asked);

// {"source": ["▁他们", …, "</s>"], "target": […], "layers": [0, …], "heads": [0, …], "weights": [[[[…]]]]}:
// weights[layer][head][target][source]. Throws a Refusal if there are too many, or no such layer or head.
void write_attention(JsonWriter& out, const Translator& translator, const Translator::Looked& looked,
                     const AttentionAsked& asked, std::int64_t most);

void write_weights(JsonWriter& out, const float* weights, std::int64_t count);  // [0.25, …]

// {"log_probability": −3.2, "tokens": [{"text": "▁They", "log_probability": −0.03}, …]}
void write_score(JsonWriter& out, const Translator& translator, const Translator::Result& result, bool normalize,
                 bool per_token);

std::string mechanisms_json();  // as `regard list --json`
std::string_view openapi_json();

}  // namespace regard::serve
