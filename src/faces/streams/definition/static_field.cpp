// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The fields of a stream that have no time: each file has them once.
#include <cstring>

#include "engine/arrays/gathering.hpp"
#include "faces/streams/definition/fields.hpp"
#include "formats/codec/missing.hpp"
#include "formats/codec/plain.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

namespace {

/// Packs what this rank owns, in one part for each level.
Status pack_levels(const Field& field, const layout::MemoryMap& map, const std::byte* data,
                   std::vector<arrays::OwnPart>& parts) {
  const Bytes size = size_of(field.definition.type);
  for (std::size_t level = 0; level < field.definition.levels.values.size(); ++level) {
    arrays::OwnPart& part = parts.emplace_back();
    part.size = scalar_size_of(field.definition.type);
    part.width = static_cast<int>(size / part.size);
    part.values.resize(static_cast<std::size_t>(field.count * size));
    if (field.count > 0) layout::pack(map, data, static_cast<Index>(level), part.values.data());
    if (is_text(field.definition.type)) codec::end_texts(part.values, size);
  }
  return {};
}

}  // namespace

Status Fields::check_without_time(const FieldRequest& request) const {
  if (request.definition.has_time || codec_->has_coordinates()) return {};
  return {Code::format,
          cat("time=none: files of format=", request_.definition.format,
              " hold no fields without time; define it without time=none, and put it in the first step of "
              "each file")};
}

Status Fields::check_all_put(bool with_later) const {
  const std::size_t end = with_later ? fields_.size() : held_fields_;
  for (std::size_t i = 0; i < end; ++i) {
    const Field& field = fields_[i];
    if (!field.definition.has_time && !field.is_put)
      return {Code::state,
              cat("field '", field.definition.name, "' has time=none, and was not put before the first step",
                  i < held_fields_ ? "" : " of a file that has it",
                  ": put it before the step, or before tr_stream_close if no field has time")};
  }
  return {};
}

Status Fields::put_without_time(int number, const void* data, const ArrayShape* shape,
                                const std::string& call) {
  Field& field = fields_[static_cast<std::size_t>(number)];
  const Bytes own = field.count * size_of(field.definition.type) * std::ssize(field.definition.levels.values);
  node::Draw own_drawn(session_.memory().budget(), node::Use::coordinates);
  auto drawn = std::make_unique<node::Draw>(session_.memory().budget(), node::Use::coordinates);
  std::vector<arrays::OwnPart> parts;
  std::vector<layout::Rows> rows;
  const auto whole = std::make_shared<ByteVector>();
  const Status mine = guarded([&]() -> Status {
    if (client_.steps() > 0 && holds(number))
      return {Code::state, "the stream has begun its steps: fields with time=none are put before the first"};
    if (field.is_put) return {Code::state, "the field was put already, and has no time: it is put once"};
    if (data == nullptr && field.count > 0) return {Code::argument, "the array is a null pointer"};
    const Result<const SharedMap*> map = field.map_of(shape, session_.rank());
    TR_TRY(map.status());
    TR_TRY(own_drawn.take(own));
    if (session_.rank() == 0) TR_TRY(draw_values(field, *drawn, *whole));
    if (field.count > 0) rows = field.layout->layout.rows(session_.rank());
    TR_TRY(pack_levels(field, ***map, static_cast<const std::byte*>(data), parts));
    if (is_complex(field.definition.type) || is_text(field.definition.type)) return {};
    return take_weights(field, parts);
  });
  const std::function<comm::Verdict(comm::Vote)> agree = [&](comm::Vote vote) {
    return session_.agree(std::move(vote));
  };
  comm::Vote vote{mine.in(call), call, {}};
  // All ranks have a scalar, and what rank 0 puts counts.
  const bool is_told = field.layout->is_scalar && field.level_weights;
  if (is_told && session_.rank() == 0 && mine.is_ok()) {
    const auto bytes = std::as_bytes(std::span(*field.level_weights));
    vote.contribution.assign(bytes.begin(), bytes.end());
  }
  const comm::Verdict verdict = agree(std::move(vote));
  TR_TRY(verdict.status);
  if (is_told)
    std::memcpy(field.level_weights->data(), verdict.contributions[0].data(),
                field.level_weights->size() * sizeof(double));
  const std::string what = cat("values of field '", field.definition.name, "'");
  TR_TRY(arrays::gather({session_.computes(), agree, call, what, field.layout->layout, rows, parts}, *whole)
             .status);
  field.is_put = true;
  field.values_drawn = std::move(drawn);
  if (request_.pattern.depends_on_lead() || keeps_told_) field.values = whole;
  if (holds(number)) tell(client_.definitions().add_values(number, whole));
  return {};
}

/// Takes the memory of all values, on rank 0. The server of this rank and the root each hold them as they
/// came, for a moment. The root keeps them until the stream is closed, and has them in the head of its file.
Status Fields::draw_values(const Field& field, node::Draw& drawn, ByteVector& whole) const {
  constexpr Bytes copies = 4;
  const Bytes bytes = field.definition.whole_bytes();
  Bytes all = 0;
  if (bytes < 0 || __builtin_mul_overflow(bytes, copies, &all))
    return {Code::memory, "the field is larger than any memory"};
  TR_TRY(drawn.take(all).in(cat("while the stream is open a field without time takes ", size_text(all),
                                " for the heads of its files: set TAILRACE_MEMORY to more, or give the field "
                                "time")));
  whole.resize(static_cast<std::size_t>(bytes));
  const std::vector<layout::Rows> unowned = field.layout->layout.unowned();
  if (unowned.empty()) return {};
  ByteVector value = codec::missing_element(field.definition.type, field.definition.missing.value_or(0));
  const ByteVector native = value;
  copy_ordered(value.data(), native.data(), std::ssize(native), scalar_size_of(field.definition.type),
               std::endian::big);
  const Bytes level = bytes / std::ssize(field.definition.levels.values);
  for (Bytes begin = 0; begin < bytes; begin += level)
    layout::fill_rows(unowned, value, whole.data() + begin);
  return {};
}

}  // namespace tailrace::streams
