#include "models/decoding_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/pool.h"

namespace regard {

DecodingRows::DecodingRows(std::vector<std::int32_t> lengths)
    : batch_(static_cast<std::int64_t>(lengths.size())), sources_(lengths.size()), lengths_(std::move(lengths)) {
  std::iota(sources_.begin(), sources_.end(), 0);
}

Tensor DecodingRows::words(Tape& tape, const Shape& shape) const {
  const Tensor made = tape.make(shape, DType::kI32);
  std::copy(words_.begin(), words_.end(), made.data<std::int32_t>());
  return made;
}

void DecodingRows::advance(std::span<const std::int32_t> sources, std::span<const std::int32_t> origins,
                           std::span<const std::int32_t> previous) {
  const std::size_t count = previous.size();
  check(sources.empty() ? count == 0 : count % sources.size() == 0, "decoding: ", count, " rows for ", sources.size(),
        " sources, expected as many of each");
  const std::size_t width = sources.empty() ? 0 : count / sources.size();
  check(step_ < 0 || origins.size() == count, "decoding: ", origins.size(), " origins for ", count, " rows");

  std::vector<std::int32_t> stayed, lengths;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    check(i == 0 || sources[i - 1] < sources[i], "decoding: source ", sources[i], " behind ",
          sources[i == 0 ? 0 : i - 1], ", expected ascending numbers");
    const auto found = std::lower_bound(sources_.begin(), sources_.end(), sources[i]);
    check(found != sources_.end() && *found == sources[i], "decoding: source ", sources[i],
          " is none of those that are running, in a batch of ", batch_);
    stayed.push_back(static_cast<std::int32_t>(found - sources_.begin()));
    lengths.push_back(lengths_[static_cast<std::size_t>(found - sources_.begin())]);
  }

  std::vector<std::int32_t> from(count);
  std::vector<std::int32_t> past(count * static_cast<std::size_t>(step_ + 1));
  for (std::size_t r = 0; r < count; ++r) {
    const std::int32_t source = stayed[r / width];
    if (step_ < 0) {
      from[r] = source;
      continue;
    }
    const std::int32_t origin = origins[r];
    check(origin >= 0 && origin < this->count() && origin / width_ == source, "decoding: row ", r, " of source ",
          sources[r / width], " goes on from row ", origin, " of the step before, which had ", width_,
          " rows a source");
    from[r] = origin;
    const auto before = static_cast<std::size_t>(step_), next = before + 1;
    std::copy_n(past_.data() + static_cast<std::size_t>(origin) * before, before, past.data() + r * next);
    past[r * next + before] = origin;
  }
  left_ = sources.size() != sources_.size();
  sources_.assign(sources.begin(), sources.end());
  words_.assign(previous.begin(), previous.end());
  lengths_ = std::move(lengths);
  stayed_ = std::move(stayed);
  from_ = std::move(from);
  past_ = std::move(past);
  width_ = static_cast<std::int64_t>(width);
  ++step_;
}

void PastSlots::advance(const DecodingRows& rows) {
  const std::int64_t width = rows.width(), before = steps_, now = ++steps_;
  std::vector<std::int32_t> slots(static_cast<std::size_t>(rows.count() * now));
  in_order_ = in_order_ && width <= 1;
  for (std::int64_t row = 0; row < rows.count(); row += width) {
    used_.assign(static_cast<std::size_t>((before + 1) * width + 1), 0);
    for (std::int64_t i = row; i < row + width; ++i) {
      const std::int32_t* const from =
          before == 0 ? nullptr : slots_.data() + rows.from()[static_cast<std::size_t>(i)] * before;
      std::int32_t* const to = slots.data() + i * now;
      std::copy_n(from, before, to);
      for (std::int64_t s = 0; s < before; ++s) {
        const auto slot = static_cast<std::size_t>(to[s]);
        if (slot >= used_.size()) used_.resize(slot + 1, 0);
        used_[slot] = 1;
      }
    }
    std::size_t free = 0;
    for (std::int64_t i = row; i < row + width; ++i, ++free) {
      while (free < used_.size() && used_[free] != 0) ++free;
      slots[static_cast<std::size_t>(i * now + before)] = static_cast<std::int32_t>(free);
    }
  }
  slots_ = std::move(slots);
}

Tensor take_rows(const Tensor& from, std::span<const std::int32_t> rows) {
  Tensor to = Tensor::empty(from.shape().with(0, static_cast<std::int64_t>(rows.size())), from.dtype());
  const std::size_t bytes = from[0] == 0 ? 0 : from.bytes() / static_cast<std::size_t>(from[0]);
  for (std::size_t i = 0; i < rows.size() && bytes > 0; ++i) {
    std::memcpy(to.raw() + i * bytes, from.raw() + static_cast<std::size_t>(rows[i]) * bytes, bytes);
  }
  return to;
}

Tensor StepCache::along(std::span<const std::int32_t> path, std::int64_t heads) const {
  check(!path.empty() && path.size() <= steps_.size(), "decoding: ", path.size(), " steps of ", steps_.size());
  const Tensor& first = steps_[0];
  const auto steps = static_cast<std::int64_t>(path.size());
  const std::int64_t width = first.size() / std::max<std::int64_t>(1, first[0]) / heads;
  Tensor made = Tensor::empty({1, heads, steps, width}, first.dtype());
  const std::size_t bytes = static_cast<std::size_t>(width) * bytes_of(first.dtype());
  for (std::int64_t s = 0; s < steps; ++s) {
    const Tensor& step = steps_[static_cast<std::size_t>(s)];
    const std::int64_t row = path[static_cast<std::size_t>(s)];
    for (std::int64_t h = 0; h < heads; ++h) {
      std::memcpy(made.raw() + static_cast<std::size_t>(h * steps + s) * bytes,
                  step.raw() + static_cast<std::size_t>(row * heads + h) * bytes, bytes);
    }
  }
  return made;
}

void StepCache::add(const Tensor& rows, Tape* memory) {
  steps_.push_back(memory == nullptr ? Tensor::empty(rows.shape(), rows.dtype())
                                     : memory->make(rows.shape(), rows.dtype()));
  steps_.back().copy_from(rows);
}

Tensor StepCache::gather(Tape& tape, const DecodingRows& rows, std::int64_t heads, std::int64_t begin) const {
  const Tensor& last = steps_.back();
  const std::int64_t count = rows.count(), steps = rows.step() + 1 - begin;
  std::int64_t width = 1;  // of a head
  for (int i = 1; i < last.rank(); ++i) width *= last[i];
  width /= heads;
  const Tensor all = tape.make({count, heads, steps, width}, last.dtype());
  const std::size_t bytes = static_cast<std::size_t>(width) * bytes_of(last.dtype());
  parallel(static_cast<std::size_t>(count), [&](std::size_t row) {
    const auto r = static_cast<std::int64_t>(row);
    std::byte* const to = all.raw() + row * static_cast<std::size_t>(heads * steps) * bytes;
    for (std::int64_t s = 0; s < steps; ++s) {
      for (std::int64_t h = 0; h < heads; ++h) {
        std::byte* const place = to + static_cast<std::size_t>(h * steps + s) * bytes;
        if (begin + s < 0) {
          std::memset(place, 0, bytes);
          continue;
        }
        const auto ancestor = static_cast<std::int64_t>(rows.ancestor(r, begin + s));
        std::memcpy(
            place,
            steps_[static_cast<std::size_t>(begin + s)].raw() + static_cast<std::size_t>(ancestor * heads + h) * bytes,
            bytes);
      }
    }
  });
  return all;
}

}  // namespace regard
