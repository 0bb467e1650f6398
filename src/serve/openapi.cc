// What GET /openapi.json tells: every path, what it takes and what it gives. A test reads it and compares it with the
// paths that the server has.
#include "serve/answers.h"

namespace regard::serve {

std::string_view openapi_json() {
  static constexpr std::string_view kText = R"json({
"openapi": "3.0.3",
"info": {"title": "Regard", "version": "1", "description": "Translations, and where the model looked."},
"components": {
  "schemas": {
    "Texts": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "Error": {"type": "object", "required": ["error", "id"],
      "properties": {"error": {"type": "string"}, "id": {"type": "string"}}},
    "Translate": {"type": "object", "required": ["q"], "additionalProperties": false, "properties": {
      "q": {"$ref": "#/components/schemas/Texts"},
      "source": {"type": "string", "default": "auto"},
      "target": {"type": "string"},
      "model": {"type": "string", "description": "a name that /models lists, instead of the languages"},
      "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
      "alternatives": {"type": "integer", "minimum": 0, "default": 0},
      "beam": {"type": "integer", "minimum": 1, "default": 5},
      "alignment": {"type": "boolean", "default": false},
      "level": {"type": "string", "enum": ["word", "character", "piece"], "default": "word"},
      "threshold": {"type": "number", "minimum": 0, "maximum": 1},
      "attention": {"oneOf": [{"type": "boolean"}, {"type": "object", "additionalProperties": false, "properties": {
        "layer": {"type": "integer", "minimum": 0},
        "head": {"type": "integer", "minimum": -1, "description": "-1: the mean of all"}}}]},
      "stream": {"type": "boolean", "default": false, "description": "server-sent events: token by token"},
      "trace": {"type": "boolean", "default": false, "description": "the answer is a trace file of all maps"},
      "api_key": {"type": "string"}, "secret": {"type": "string"}}},
    "Translated": {"type": "object", "required": ["translatedText"], "properties": {
      "translatedText": {"$ref": "#/components/schemas/Texts"},
      "detectedLanguage": {}, "alternatives": {"type": "array"}, "alignment": {}, "attention": {}}},
    "Edit": {"type": "object", "required": ["q"], "additionalProperties": false, "properties": {
      "q": {"type": "string"}, "source": {"type": "string"}, "target": {"type": "string"}, "model": {"type": "string"},
      "alternatives": {"type": "integer", "minimum": 0}, "beam": {"type": "integer", "minimum": 1},
      "mute": {"type": "array", "items": {"type": "object", "required": ["layer", "head"], "properties": {
        "map": {"type": "string", "enum": ["cross", "encoder", "decoder"], "default": "cross"},
        "layer": {"type": "integer"}, "head": {"type": "integer"}}}},
      "hide": {"type": "array", "items": {"type": "integer"}, "description": "tokens of the source"},
      "pin": {"type": "array", "items": {"type": "object", "required": ["target"], "properties": {
        "target": {"type": "integer"}, "source": {"type": "integer"},
        "weights": {"type": "array", "items": {"type": "number"}},
        "layer": {"type": "integer"}, "head": {"type": "integer"}}}},
      "prefix": {"type": "array", "items": {"type": "string"}, "description": "pieces that the translation begins with"},
      "attention": {}, "trace": {"type": "boolean"}, "api_key": {"type": "string"}}},
    "Align": {"type": "object", "required": ["q", "translation"], "additionalProperties": false, "properties": {
      "q": {"$ref": "#/components/schemas/Texts"}, "translation": {"$ref": "#/components/schemas/Texts"},
      "source": {"type": "string"}, "target": {"type": "string"}, "model": {"type": "string"},
      "level": {"type": "string", "enum": ["word", "character", "piece"]},
      "threshold": {"type": "number", "minimum": 0, "maximum": 1}, "api_key": {"type": "string"}}},
    "Score": {"type": "object", "required": ["q", "translation"], "additionalProperties": false, "properties": {
      "q": {"$ref": "#/components/schemas/Texts"}, "translation": {"$ref": "#/components/schemas/Texts"},
      "source": {"type": "string"}, "target": {"type": "string"}, "model": {"type": "string"},
      "per_token": {"type": "boolean"}, "normalize": {"type": "boolean"}, "api_key": {"type": "string"}}},
    "Detect": {"type": "object", "required": ["q"], "additionalProperties": false, "properties": {
      "q": {"type": "string"}, "api_key": {"type": "string"}}},
    "Rows": {"type": "array", "minItems": 1, "maxItems": 64, "items": {"type": "array", "minItems": 1, "maxItems": 64,
      "items": {"type": "number", "minimum": -1000000, "maximum": 1000000}}},
    "Attend": {"type": "object", "additionalProperties": false, "properties": {
      "line": {"type": "string", "default": "scaled_dot", "description": "a mechanism, as docs/mechanisms.md has them"},
      "q": {"$ref": "#/components/schemas/Rows"}, "k": {"$ref": "#/components/schemas/Rows"},
      "v": {"$ref": "#/components/schemas/Rows"},
      "sentence": {"type": "string", "description": "instead of q, k and v: at most 64 words"},
      "width": {"type": "integer", "minimum": 1, "maximum": 64, "default": 8},
      "seed": {"type": "integer", "minimum": 0, "default": 1},
      "scale": {"type": "number"}, "temperature": {"type": "number"},
      "length": {"type": "integer", "minimum": 0}, "documents": {"type": "array", "items": {"type": "integer"}},
      "mask": {"type": "array"}, "bias": {"$ref": "#/components/schemas/Rows"}, "api_key": {"type": "string"}}}
  },
  "responses": {"Error": {"description": "what is wrong, in words",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}}
},
"paths": {
  "/translate": {"post": {"summary": "translate texts", "requestBody": {"required": true, "content": {
      "application/json": {"schema": {"$ref": "#/components/schemas/Translate"}},
      "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Translate"}}}},
    "responses": {"200": {"description": "the translations", "content": {
      "application/json": {"schema": {"$ref": "#/components/schemas/Translated"}}, "text/event-stream": {}}},
      "default": {"$ref": "#/components/responses/Error"}}}},
  "/edit": {"post": {"summary": "what if it looked elsewhere", "requestBody": {"required": true, "content": {
      "application/json": {"schema": {"$ref": "#/components/schemas/Edit"}}}},
    "responses": {"200": {"description": "before and after"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/align": {"post": {"summary": "which words of given pairs belong together", "requestBody": {"required": true,
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Align"}}}},
    "responses": {"200": {"description": "units and links"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/score": {"post": {"summary": "how likely given translations are", "requestBody": {"required": true,
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Score"}}}},
    "responses": {"200": {"description": "log-probabilities"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/detect": {"post": {"summary": "the language of a text, by its letters", "requestBody": {"required": true,
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Detect"}}}},
    "responses": {"200": {"description": "languages"}, "default": {"$ref": "#/components/responses/Error"}}}},
  "/attend": {"post": {"summary": "the lab: a mechanism on small numbers, step by step", "requestBody": {
      "required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Attend"}}}},
    "responses": {"200": {"description": "scores, weights and context"},
      "default": {"$ref": "#/components/responses/Error"}}}},
  "/languages": {"get": {"summary": "from which languages to which", "responses": {"200": {"description": "a list"}}}},
  "/models": {"get": {"summary": "the models", "responses": {"200": {"description": "a list"}}}},
  "/mechanisms": {"get": {"summary": "the mechanisms of attention", "responses": {"200": {"description": "a list"}}}},
  "/health": {"get": {"summary": "whether it is there", "responses": {"200": {"description": "it is"}}}},
  "/metrics": {"get": {"summary": "counters, as Prometheus reads them", "responses": {"200": {"description": "text"}}}},
  "/openapi.json": {"get": {"summary": "this", "responses": {"200": {"description": "this"}}}}
}
}
)json";
  return kText;
}

}  // namespace regard::serve
