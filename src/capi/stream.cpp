// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <utility>

#include "base/text.hpp"
#include "capi/arguments.hpp"
#include "capi/state.hpp"

using namespace tailrace;
using namespace tailrace::capi;

namespace {

/// Returns the stream behind a handle if it is open. Otherwise keeps TR_ERR_STATE.
streams::Stream* stream_of(tr_stream* handle, const char* call) {
  const tr_stream* const found = find_open(state().streams, handle, call, "stream");
  return found == nullptr ? nullptr : found->stream.get();
}

}  // namespace

int tr_stream_create(const char* pattern, const char* options, tr_stream** stream) {
  session::Session* const session = session_for("tr_stream_create");
  if (session == nullptr) return TR_ERR_STATE;
  if (stream == nullptr) return fail(Status(Code::argument, "tr_stream_create: `stream` is a null pointer"));
  *stream = nullptr;
  const std::string name = text_of(pattern);
  restart::Outputs& outputs = *state().outputs;
  Result<std::unique_ptr<streams::Stream>> made =
      streams::Stream::create(*session, name, text_of(options), outputs.stream(name), outputs.kept());
  if (!made.is_ok()) return fail(made.status());
  outputs.take_stream(name);
  *stream = new tr_stream{std::move(*made)};
  state().streams.push_back(*stream);
  return TR_OK;
}

int tr_stream_define(tr_stream* stream, const char* field, const tr_layout* layout, int type,
                     const char* options) {
  streams::Stream* const open = stream_of(stream, "tr_stream_define");
  if (open == nullptr) return TR_ERR_STATE;
  const auto* placed = layout == nullptr ? nullptr : &layout->placed;
  return result(open->define(text_of(field), placed, type, text_of(options)));
}

int tr_stream_begin(tr_stream* stream, int64_t lead) {
  streams::Stream* const open = stream_of(stream, "tr_stream_begin");
  if (open == nullptr) return TR_ERR_STATE;
  open->begin(lead);
  return TR_OK;
}

int tr_stream_put(tr_stream* stream, const char* field, const void* data) {
  streams::Stream* const open = stream_of(stream, "tr_stream_put");
  if (open == nullptr) return TR_ERR_STATE;
  open->put(text_of(field), data, nullptr);
  return TR_OK;
}

int tr_stream_put_array(tr_stream* stream, const char* field, const void* data, int type, int ndims,
                        const tr_index* extents, const tr_index* strides) {
  streams::Stream* const open = stream_of(stream, "tr_stream_put_array");
  if (open == nullptr) return TR_ERR_STATE;
  if (ndims < 0 || (ndims > 0 && extents == nullptr)) {
    open->latch(
        Status(Code::argument, cat("tr_stream_put_array('", text_of(field), "'): no extents were given")));
    return TR_OK;
  }
  streams::ArrayShape shape;
  shape.type = static_cast<ElementType>(type);
  shape.extents.assign(extents, extents + ndims);
  if (strides != nullptr) shape.strides.assign(strides, strides + ndims);
  open->put(text_of(field), data, &shape);
  return TR_OK;
}

int tr_stream_end(tr_stream* stream) {
  streams::Stream* const open = stream_of(stream, "tr_stream_end");
  return open == nullptr ? TR_ERR_STATE : result(open->end());
}

int tr_stream_wait(tr_stream* stream, int event) {
  streams::Stream* const open = stream_of(stream, "tr_stream_wait");
  if (open == nullptr) return TR_ERR_STATE;
  if (event != TR_CAPTURED && event != TR_DURABLE) {
    return fail(Status(Code::argument,
                       cat("tr_stream_wait: event ", event, " is neither TR_CAPTURED nor TR_DURABLE")));
  }
  return result(open->wait(event == TR_DURABLE));
}

int tr_stream_close(tr_stream** stream) {
  if (stream == nullptr) return fail(Status(Code::argument, "tr_stream_close: a null pointer"));
  streams::Stream* const open = stream_of(*stream, "tr_stream_close");
  if (open == nullptr) return TR_ERR_STATE;
  const Status status = open->close();
  tr_stream* const closed = std::exchange(*stream, nullptr);
  if (open->is_unsettled()) return result(status);  // tr_finalize closes it
  take_off(state().streams, closed);
  return result(status);
}
