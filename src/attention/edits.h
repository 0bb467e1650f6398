// What if: hidden keys, scaled heads, replaced rows of one call. None of it is known to the schedules: what is hidden
// is a mask, and a row that is replaced is hidden from all and then written over by an operation of its own.
#pragma once

#include "attention/mechanism.h"

namespace regard {

void check_edits(const Edits& edits, const Shape& all);  // all: [batch, heads, queries, keys]

// Before the passes: the call's mask hides what is hidden; replaced rows are copied to the tape.
void edit_call(const Edits& edits, Tape& tape, DType type, AttendCall& call);

// After the forward pass. v and table as the reading had them; not defined: there are none.
Var edit_context(const Edits& edits, const AttendCall& call, Var context, Var v, Var table);

// weights [wanted, keys] of a head, made again: those of replaced rows are what they were replaced by.
void replace_weights(const AttendCall& call, std::int64_t item, std::int64_t head, Range wanted, const Tensor& weights);

// The same in all maps [batch, heads, queries, keys].
void replace_all_weights(const AttendCall& call, const Tensor& weights);

}  // namespace regard
