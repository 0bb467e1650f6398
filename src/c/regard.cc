// The C interface (include/regard/regard.h): C++ calls behind functions that never throw.
#include "regard/regard.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stop_token>

#include "base/check.h"
#include "regard/attention/attend.h"
#include "regard/context.h"
#include "regard/version.h"
#include "verify/reference_run.h"

struct regard_context {
  std::atomic<int> threads{0};
  std::atomic<std::uint64_t> memory_limit{0};
  std::stop_source cancel;
};

struct regard_trace {
  regard::Tape tape;  // whose memory the trace looks into
  regard::AttendTrace trace;
  std::int64_t batch = 0, queries = 0, keys = 0;
};

namespace {

using regard::check;
using regard::Error;
using regard::ErrorKind;
using regard::Shape;
using regard::Tensor;
using regard::Var;

thread_local char last_error[1024] = "";  // of fixed size: it has to work when there is no memory

regard_status failed(regard_status status, const char* what) {
  const std::size_t size = std::min(std::strlen(what), sizeof(last_error) - 1);
  std::memcpy(last_error, what, size);
  last_error[size] = '\0';
  return status;
}

regard_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput:
      return REGARD_INPUT;
    case ErrorKind::kFile:
      return REGARD_FILE;
    case ErrorKind::kLimit:
      return REGARD_LIMIT;
    case ErrorKind::kCancelled:
      return REGARD_CANCELLED;
    case ErrorKind::kInternal:
      return REGARD_INTERNAL;
  }
  return REGARD_INTERNAL;
}

// Runs `body`; what it throws becomes a status and a text.
template <class Body>
regard_status guarded(Body body) noexcept {
  try {
    body();
    return REGARD_OK;
  } catch (const Error& error) {
    return failed(status_of(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return failed(REGARD_LIMIT, "out of memory");
  } catch (const std::exception& error) {
    return failed(REGARD_INTERNAL, error.what());
  } catch (...) {
    return failed(REGARD_INTERNAL, "something unknown was thrown");
  }
}

// The same with the caller's context in force.
template <class Body>
regard_status guarded_in(const regard_context* handle, Body body) noexcept {
  return guarded([&] {
    regard::Context context;
    if (handle != nullptr) {
      context.threads = handle->threads;
      context.memory_limit = handle->memory_limit;
      context.cancel = handle->cancel.get_token();
    }
    const regard::ContextScope scope(context);
    stop_if_asked(context);
    body();
    stop_if_asked(context);
  });
}

void check_given(const char* who, const char* what, const void* pointer) {
  check(pointer != nullptr, who, ": ", what, " is NULL");
}

// The caller's array as a tensor. `keep`: a copy, for when the caller's is gone.
Tensor array(const char* what, const float* data, const Shape& shape, bool keep) {
  if (shape.size() == 0) return Tensor::empty(shape);
  check_given("regard_attend_additive", what, data);
  // Only read: the operations write to memory of their own.
  Tensor borrowed = Tensor::borrow(const_cast<float*>(data), shape, regard::DType::kF32);
  return keep ? borrowed.clone() : borrowed;
}

}  // namespace

const char* regard_version(void) { return regard::version(); }

const char* regard_last_error(void) { return last_error; }

regard_context* regard_context_new(void) {
  regard_context* made = nullptr;
  guarded([&] { made = new regard_context; });
  return made;
}

void regard_context_free(regard_context* context) { delete context; }

regard_status regard_context_set_threads(regard_context* context, int threads) {
  return guarded([&] {
    check_given("regard_context_set_threads", "context", context);
    check(threads >= 0, "regard_context_set_threads: ", threads, " threads, expected 0 or more");
    context->threads = threads;
  });
}

regard_status regard_context_set_memory_limit(regard_context* context, std::uint64_t bytes) {
  return guarded([&] {
    check_given("regard_context_set_memory_limit", "context", context);
    context->memory_limit = bytes;
  });
}

regard_status regard_context_cancel(regard_context* context) {
  return guarded([&] {
    check_given("regard_context_cancel", "context", context);
    context->cancel.request_stop();
  });
}

regard_status regard_attend_additive(const regard_context* context, const regard_additive* input, float* output,
                                     regard_trace** trace) {
  const bool keep = trace != nullptr;
  if (keep) *trace = nullptr;
  std::unique_ptr<regard_trace> made;
  const regard_status status = guarded_in(context, [&] {
    check_given("regard_attend_additive", "input", input);
    const auto& [batch, queries, keys, hidden, width, query, key, value, theta, lengths] = *input;
    made = std::make_unique<regard_trace>();
    made->batch = batch;
    made->queries = queries;
    made->keys = keys;
    regard::Tape& tape = made->tape;
    const Var q = tape.constant(array("query", query, {batch, queries, hidden}, keep));
    const Var k = tape.constant(array("key", key, {batch, keys, hidden}, keep));
    const Var v = tape.constant(array("value", value, {batch, keys, width}, false));
    const Var t = tape.constant(array("theta", theta, {hidden}, keep));
    if (Shape{batch, queries, width}.size() > 0) check_given("regard_attend_additive", "output", output);
    check(keys <= INT32_MAX, "regard_attend_additive: ", keys, " keys, expected ", INT32_MAX, " at most");
    Tensor all;
    if (lengths == nullptr) {
      all = Tensor::empty({batch}, regard::DType::kI32);
      std::fill_n(all.data<std::int32_t>(), batch, static_cast<std::int32_t>(keys));
    }
    const std::int32_t* visible = lengths != nullptr ? lengths : all.data<std::int32_t>();
    regard::Attended attended = attend_additive(q, k, v, t, {visible, static_cast<std::size_t>(batch)});
    const Tensor& context_rows = attended.context.value();
    if (context_rows.size() > 0) std::memcpy(output, context_rows.raw(), context_rows.bytes());
    made->trace = std::move(attended.trace);
  });
  if (keep && status == REGARD_OK) *trace = made.release();
  return status;
}

regard_status regard_trace_weights(const regard_trace* trace, std::int64_t item, float* weights, std::size_t count) {
  return guarded([&] {
    constexpr const char* kName = "regard_trace_weights";
    check_given(kName, "trace", trace);
    check(item >= 0 && item < trace->batch, kName, ": item ", item, " of ", trace->batch);
    const std::int64_t expected = Shape{trace->queries, trace->keys}.size();
    check(count == static_cast<std::size_t>(expected), kName, ": room for ", count, " floats, expected ",
          trace->queries, " x ", trace->keys);
    if (expected == 0) return;
    check_given(kName, "weights", weights);
    std::copy_n(trace->trace.weights({.item = item}).data<float>(), count, weights);
  });
}

void regard_trace_free(regard_trace* trace) { delete trace; }

regard_status regard_reference_hash(const regard_context* context, char* text, std::size_t size) {
  return guarded_in(context, [&] {
    check_given("regard_reference_hash", "text", text);
    const std::string hash = regard::verify::reference_hash();
    check(size > hash.size(), "regard_reference_hash: room for ", size, " characters, expected ", hash.size() + 1);
    std::memcpy(text, hash.c_str(), hash.size() + 1);
  });
}
