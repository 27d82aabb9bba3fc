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

/// Collective. Creates a stream, which goes on where the loaded checkpoint has left it. The caller takes the
/// checkpoint's position (take_stream) once it keeps the stream.
Result<tr_stream*> make_stream(session::Session& session, const std::string& pattern,
                               const std::string& options) {
  const restart::Outputs& outputs = *state().outputs;
  Result<std::unique_ptr<streams::Stream>> made =
      streams::Stream::create(session, pattern, options, outputs.stream(pattern), outputs.kept());
  TR_TRY(made.status());
  auto* const handle = new tr_stream{std::move(*made)};
  state().streams.push_back(handle);
  return handle;
}

/// Collective. Closes a stream. If the ranks are in different calls, tr_finalize closes it.
Status close_stream(tr_stream* handle) {
  streams::Stream& open = *handle->stream;
  const Status status = open.close();
  if (open.is_unsettled()) return status;
  take_failures();
  take_off(state().streams, handle);
  return status;
}

/// Closes a stream of a description.
Status close_described(const streams::Stream* stream) {
  const auto& all = state().streams;
  const auto found =
      std::ranges::find_if(all, [&](const tr_stream* each) { return each->stream.get() == stream; });
  return found == all.end() ? Status() : close_stream(*found);
}

/// Returns the streams of a description behind a handle, or nullptr. Keeps no error.
streams::DescribedStreams* described_of(tr_stream* handle) {
  const tr_stream* const found = find_described(handle);
  if (found == nullptr) return nullptr;
  state().session->note_call();
  return found->described.get();
}

}  // namespace

namespace tailrace::capi {

tr_stream* find_described(tr_stream* handle) {
  const auto found = std::ranges::find(state().described, handle);
  return state().session == nullptr || found == state().described.end() ? nullptr : *found;
}

void forget_described() {
  for (tr_stream* const handle : std::exchange(state().described, {})) delete handle;
}

}  // namespace tailrace::capi

int tr_streams_configure(const char* file, const char* options, tr_stream** stream) {
  session::Session* const session = session_for("tr_streams_configure");
  if (session == nullptr) return TR_ERR_STATE;
  if (stream == nullptr)
    return fail(Status(Code::argument, "tr_streams_configure: `stream` is a null pointer"));
  *stream = nullptr;
  // If a later stream is refused, the program may configure again: the checkpoint's positions stay.
  std::vector<std::string> patterns;
  const auto make = [session, &patterns](const std::string& pattern,
                                         const std::string& its) -> Result<streams::Stream*> {
    const Result<tr_stream*> made = make_stream(*session, pattern, its);
    TR_TRY(made.status());
    patterns.push_back(pattern);
    return (*made)->stream.get();
  };
  Result<std::unique_ptr<streams::DescribedStreams>> made = streams::DescribedStreams::configure(
      *session, text_of(file), text_of(options), {make, close_described});
  if (!made.is_ok()) return fail(made.status());
  for (const std::string& pattern : patterns) state().outputs->take_stream(pattern);
  *stream = new tr_stream{nullptr, nullptr, std::move(*made)};
  state().described.push_back(*stream);
  return TR_OK;
}

int tr_stream_wants(tr_stream* stream, const char* field) {
  if (const streams::DescribedStreams* const described = described_of(stream))
    return described->wants(text_of(field)) ? 1 : 0;
  if (find_input(stream) != nullptr) {
    fail_on_input(*stream, "tr_stream_wants");
    return 0;
  }
  const streams::Stream* const open = stream_of(stream, "tr_stream_wants");
  return open != nullptr && open->wants(text_of(field)) ? 1 : 0;
}

int tr_stream_create(const char* pattern, const char* options, tr_stream** stream) {
  session::Session* const session = session_for("tr_stream_create");
  if (session == nullptr) return TR_ERR_STATE;
  if (stream == nullptr) return fail(Status(Code::argument, "tr_stream_create: `stream` is a null pointer"));
  *stream = nullptr;
  const Result<tr_stream*> made = make_stream(*session, text_of(pattern), text_of(options));
  if (!made.is_ok()) return fail(made.status());
  state().outputs->take_stream(text_of(pattern));
  *stream = *made;
  return TR_OK;
}

int tr_stream_define(tr_stream* stream, const char* field, const tr_layout* layout, int type,
                     const char* options) {
  const auto* placed = layout == nullptr ? nullptr : &layout->placed;
  if (find_input(stream) != nullptr)
    return result(stream->input->define(text_of(field), placed, type, text_of(options)));
  if (streams::DescribedStreams* const described = described_of(stream))
    return result(described->define(text_of(field), placed, type, text_of(options)));
  streams::Stream* const open = stream_of(stream, "tr_stream_define");
  if (open == nullptr) return TR_ERR_STATE;
  return result(open->define(text_of(field), placed, type, text_of(options)));
}

int tr_stream_attribute(tr_stream* stream, const char* of, const char* name, int type, tr_index count,
                        const void* values) {
  if (find_input(stream) != nullptr)
    return fail_on_input(*stream, cat("tr_stream_attribute('", text_of(name), "')"));
  if (streams::DescribedStreams* const described = described_of(stream))
    return result(described->attribute(text_of(of), text_of(name), type, count, values));
  streams::Stream* const open = stream_of(stream, "tr_stream_attribute");
  if (open == nullptr) return TR_ERR_STATE;
  return result(open->attribute(text_of(of), text_of(name), type, count, values));
}

int tr_stream_attribute_text(tr_stream* stream, const char* of, const char* name, const char* text) {
  if (find_input(stream) != nullptr)
    return fail_on_input(*stream, cat("tr_stream_attribute_text('", text_of(name), "')"));
  if (streams::DescribedStreams* const described = described_of(stream))
    return result(described->text_attribute(text_of(of), text_of(name), text));
  streams::Stream* const open = stream_of(stream, "tr_stream_attribute_text");
  if (open == nullptr) return TR_ERR_STATE;
  return result(open->text_attribute(text_of(of), text_of(name), text));
}

int tr_stream_begin(tr_stream* stream, int64_t lead) {
  if (find_input(stream) != nullptr) {
    stream->input->begin(lead);
    return TR_OK;
  }
  if (streams::DescribedStreams* const described = described_of(stream)) {
    note_going_on();
    described->begin(lead);
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
  if (streams::DescribedStreams* const described = described_of(stream)) {
    note_going_on();
    described->begin_at(time);
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
  if (streams::DescribedStreams* const described = described_of(stream))
    return result(described->put(text_of(field), data, nullptr));
  streams::Stream* const open = stream_of(stream, "tr_stream_put");
  if (open == nullptr) return TR_ERR_STATE;
  return result(open->put(text_of(field), data, nullptr));
}

int tr_stream_put_array(tr_stream* stream, const char* field, const void* data, int type, int ndims,
                        const tr_index* extents, const tr_index* strides) {
  if (find_input(stream) != nullptr)
    return fail_on_input(*stream, cat("tr_stream_put_array('", text_of(field), "')"));
  streams::DescribedStreams* const described = described_of(stream);
  streams::Stream* const open = described != nullptr ? nullptr : stream_of(stream, "tr_stream_put_array");
  if (described == nullptr && open == nullptr) return TR_ERR_STATE;
  if (ndims < 0 || (ndims > 0 && extents == nullptr)) {
    const Status status(Code::argument,
                        cat("tr_stream_put_array('", text_of(field), "'): no extents were given"));
    described != nullptr ? described->latch(status) : open->latch(status);
    return TR_OK;
  }
  streams::ArrayShape shape;
  shape.type = static_cast<ElementType>(type);
  shape.extents.assign(extents, extents + ndims);
  if (strides != nullptr) shape.strides.assign(strides, strides + ndims);
  return result(described != nullptr ? described->put(text_of(field), data, &shape)
                                     : open->put(text_of(field), data, &shape));
}

int tr_stream_end(tr_stream* stream) {
  if (find_input(stream) != nullptr) return result(stream->input->end());
  if (streams::DescribedStreams* const described = described_of(stream)) return result(described->end());
  streams::Stream* const open = stream_of(stream, "tr_stream_end");
  return open == nullptr ? TR_ERR_STATE : result(open->end());
}

int tr_stream_wait(tr_stream* stream, int event) {
  if (find_input(stream) != nullptr) return fail_on_input(*stream, "tr_stream_wait");
  streams::DescribedStreams* const described = described_of(stream);
  streams::Stream* const open = described != nullptr ? nullptr : stream_of(stream, "tr_stream_wait");
  if (described == nullptr && open == nullptr) return TR_ERR_STATE;
  if (event != TR_CAPTURED && event != TR_DURABLE) {
    return fail(Status(Code::argument,
                       cat("tr_stream_wait: event ", event, " is neither TR_CAPTURED nor TR_DURABLE")));
  }
  return result(described != nullptr ? described->wait(event == TR_DURABLE)
                                     : open->wait(event == TR_DURABLE));
}

int tr_stream_close(tr_stream** stream) {
  if (stream == nullptr) return fail(Status(Code::argument, "tr_stream_close: a null pointer"));
  if (tr_stream* const input = find_input(*stream)) {
    *stream = nullptr;
    const Status closed = input->input->close();
    take_off(state().inputs, input);
    return result(closed);
  }
  if (tr_stream* const described = find_described(*stream)) {
    *stream = nullptr;
    const Status closed = described->described->close();
    take_off(state().described, described);
    return result(closed);
  }
  if (stream_of(*stream, "tr_stream_close") == nullptr) return TR_ERR_STATE;
  return result(close_stream(std::exchange(*stream, nullptr)));
}
