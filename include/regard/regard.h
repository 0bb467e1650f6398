/* Regard for C, and for every language that can call C.
 *
 *     regard_context* context = regard_context_new();
 *     if (regard_attend_additive(context, &input, output, NULL) != REGARD_OK) puts(regard_last_error());
 *     regard_context_free(context);
 *
 * A function that can fail returns a regard_status; regard_last_error() says in one line what went wrong. Arrays are
 * dense, the last dimension runs fastest, and belong to the caller. Nothing is thrown and nothing ends the process:
 * wrong arguments (a null pointer, a negative size, sizes whose product has no number) are errors like others.
 *
 * Different threads may call at the same time, also with the same context; only freeing must wait until nobody uses it.
 */
#ifndef REGARD_REGARD_H
#define REGARD_REGARD_H

#include <stddef.h>
#include <stdint.h>

#include "regard/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum regard_status {
  REGARD_OK = 0,
  REGARD_INPUT = 1,     /* an argument or a request that makes no sense */
  REGARD_FILE = 2,      /* a file that cannot be read, written or trusted */
  REGARD_LIMIT = 3,     /* memory, or a stated maximum */
  REGARD_CANCELLED = 4, /* regard_context_cancel was called */
  REGARD_INTERNAL = 5   /* a mistake in Regard itself */
} regard_status;

REGARD_API const char* regard_version(void); /* of the library that runs: "0.1.0" */

/* What went wrong in the last call of this thread that failed; "" if none did. Good until the next one fails. */
REGARD_API const char* regard_last_error(void);

/* How calls may behave. NULL instead of a context: one thread a core, no limits. */
typedef struct regard_context regard_context;
REGARD_API regard_context* regard_context_new(void); /* NULL if there is no memory */
REGARD_API void regard_context_free(regard_context* context);
REGARD_API regard_status regard_context_set_threads(regard_context* context, int threads); /* 0: one a core */
/* Bytes of tensors that one call may hold; 0: no limit. */
REGARD_API regard_status regard_context_set_memory_limit(regard_context* context, uint64_t bytes);
/* Calls with this context, running or to come, end with REGARD_CANCELLED. From any thread. */
REGARD_API regard_status regard_context_cancel(regard_context* context);

/* Additive attention (Bahdanau et al. 2015): a query looks at the keys of its item and reads their values,
 *     output = sum over j of p_j * values_j,    p = softmax over j of theta . tanh(query + key_j)
 * Queries and keys arrive projected to the width in which they are compared. Item i sees its first lengths[i] keys; one
 * that sees none reads zeros. */
typedef struct regard_additive {
  int64_t batch, queries, keys;
  int64_t hidden;         /* width of queries and keys */
  int64_t width;          /* of values and output */
  const float* query;     /* [batch, queries, hidden] */
  const float* key;       /* [batch, keys, hidden] */
  const float* value;     /* [batch, keys, width] */
  const float* theta;     /* [hidden] */
  const int32_t* lengths; /* [batch]; NULL: all keys are visible */
} regard_additive;

/* What is kept of a call so that its weights can be asked for later, on its own: the caller's arrays may be gone. */
typedef struct regard_trace regard_trace;

/* output: [batch, queries, width]. trace: NULL if nobody will ask for weights. Same bits either way, for any number of
 * threads and any neighbours in the batch. After an error *trace is NULL and output holds nothing of use. */
REGARD_API regard_status regard_attend_additive(const regard_context* context, const regard_additive* input,
                                                float* output, regard_trace** trace);

/* The weights of one item: [queries, keys], zeros where a key is not visible; each row sums to one, or to zero if the
 * item sees no key. count: how many floats there is room for, queries * keys. */
REGARD_API regard_status regard_trace_weights(const regard_trace* trace, int64_t item, float* weights, size_t count);
REGARD_API void regard_trace_free(regard_trace* trace);

/* Trains a small model on made-up data for a moment and hashes all its bits: 32 hexadecimal digits and a zero. Every
 * machine with AVX2 or AVX-512 gives the same; size: 33 or more. */
REGARD_API regard_status regard_reference_hash(const regard_context* context, char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
