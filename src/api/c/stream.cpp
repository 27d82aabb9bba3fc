// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <utility>

#include "api/c/arguments.hpp"
#include "api/c/state.hpp"
#include "ground/base/text.hpp"

using namespace tailrace;
using namespace tailrace::capi;

namespace {

/// Returns the stream behind a handle if it is open. Otherwise returns nullptr and keeps TR_ERR_STATE.
streams::Stream* stream_of(tr_stream* handle, const char* call) {
  const tr_stream* const found = find_open(state().streams, handle, call, "stream");
  return found == nullptr ? nullptr : found->stream.get();
}

/// Returns the error of a call that streams that are read do not have. The stream's tr_stream_end returns it
/// on every rank.
int fail_on_input(const tr_stream& stream, const std::string& call) {
  const Status status(Code::state, cat(call, ": the stream \"", stream.input->name(),
                                       "\" is read (tr_stream_open): tr_stream_get gets its fields"));
  stream.input->latch(status);
  return fail(status);
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
  const auto* placed = layout == nullptr ? nullptr : &layout->placed;
  if (find_input(stream) != nullptr)
    return result(stream->input->define(text_of(field), placed, type, text_of(options)));
  streams::Stream* const open = stream_of(stream, "tr_stream_define");
  if (open == nullptr) return TR_ERR_STATE;
  return result(open->define(text_of(field), placed, type, text_of(options)));
}

int tr_stream_attribute(tr_stream* stream, const char* of, const char* name, int type, tr_index count,
                        const void* values) {
  if (find_input(stream) != nullptr)
    return fail_on_input(*stream, cat("tr_stream_attribute('", text_of(name), "')"));
  streams::Stream* const open = stream_of(stream, "tr_stream_attribute");
  if (open == nullptr) return TR_ERR_STATE;
  return result(open->attribute(text_of(of), text_of(name), type, count, values));
}

int tr_stream_attribute_text(tr_stream* stream, const char* of, const char* name, const char* text) {
  if (find_input(stream) != nullptr)
    return fail_on_input(*stream, cat("tr_stream_attribute_text('", text_of(name), "')"));
  streams::Stream* const open = stream_of(stream, "tr_stream_attribute_text");
  if (open == nullptr) return TR_ERR_STATE;
  return result(open->text_attribute(text_of(of), text_of(name), text));
}

int tr_stream_begin(tr_stream* stream, int64_t lead) {
  if (find_input(stream) != nullptr) {
    stream->input->begin(lead);
    return TR_OK;
  }
  streams::Stream* const open = stream_of(stream, "tr_stream_begin");
  if (open == nullptr) return TR_ERR_STATE;
  note_going_on();
  open->begin(lead);
  return TR_OK;
}

int tr_stream_begin_at(tr_stream* stream, double time) {
  if (find_input(stream) != nullptr) {
    stream->input->begin_at(time);
    return TR_OK;
  }
  streams::Stream* const open = stream_of(stream, "tr_stream_begin_at");
  if (open == nullptr) return TR_ERR_STATE;
  note_going_on();
  open->begin_at(time);
  return TR_OK;
}

int tr_stream_put(tr_stream* stream, const char* field, const void* data) {
  if (find_input(stream) != nullptr)
    return fail_on_input(*stream, cat("tr_stream_put('", text_of(field), "')"));
  streams::Stream* const open = stream_of(stream, "tr_stream_put");
  if (open == nullptr) return TR_ERR_STATE;
  return result(open->put(text_of(field), data, nullptr));
}

int tr_stream_put_array(tr_stream* stream, const char* field, const void* data, int type, int ndims,
                        const tr_index* extents, const tr_index* strides) {
  if (find_input(stream) != nullptr)
    return fail_on_input(*stream, cat("tr_stream_put_array('", text_of(field), "')"));
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
  return result(open->put(text_of(field), data, &shape));
}

int tr_stream_end(tr_stream* stream) {
  if (find_input(stream) != nullptr) return result(stream->input->end());
  streams::Stream* const open = stream_of(stream, "tr_stream_end");
  return open == nullptr ? TR_ERR_STATE : result(open->end());
}

int tr_stream_wait(tr_stream* stream, int event) {
  if (find_input(stream) != nullptr) return fail_on_input(*stream, "tr_stream_wait");
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
  if (tr_stream* const input = find_input(*stream)) {
    *stream = nullptr;
    const Status closed = input->input->close();
    take_off(state().inputs, input);
    return result(closed);
  }
  streams::Stream* const open = stream_of(*stream, "tr_stream_close");
  if (open == nullptr) return TR_ERR_STATE;
  const Status status = open->close();
  tr_stream* const closed = std::exchange(*stream, nullptr);
  if (open->is_unsettled()) return result(status);  // tr_finalize closes it
  take_failures();
  take_off(state().streams, closed);
  return result(status);
}
