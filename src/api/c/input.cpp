// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <utility>

#include "api/c/arguments.hpp"
#include "api/c/state.hpp"
#include "ground/base/text.hpp"

using namespace tailrace;
using namespace tailrace::capi;

namespace {

/// Returns the stream if it is open and is read. Otherwise returns nullptr and keeps TR_ERR_STATE. If the
/// stream is one that is written, the end of its step returns the error too.
input::InputStream* input_of(tr_stream* handle, const std::string& call) {
  if (session_for(call.c_str()) == nullptr) return nullptr;
  if (const tr_stream* const found = find_input(handle)) return found->input.get();
  if (const tr_stream* const described = find_described(handle)) {
    const Status status(Code::state,
                        cat(call, ": the streams of \"", described->described->name(),
                            "\" are written (tr_streams_configure): tr_stream_put puts their fields"));
    described->described->latch(status);
    fail(status);
    return nullptr;
  }
  const tr_stream* const written = find_open(state().streams, handle, call.c_str(), "stream");
  if (written == nullptr) return nullptr;
  const Status status(Code::state, cat(call, ": the stream \"", written->stream->name(),
                                       "\" is written (tr_stream_create): tr_stream_put puts its fields"));
  written->stream->latch(status);
  fail(status);
  return nullptr;
}

}  // namespace

namespace tailrace::capi {

tr_stream* find_input(tr_stream* handle) {
  const auto found = std::ranges::find(state().inputs, handle);
  return state().session == nullptr || found == state().inputs.end() ? nullptr : *found;
}

Status end_inputs() {
  return close_all(state().inputs, [](tr_stream* handle) {
    const Status status = handle->input->close();
    take_off(state().inputs, handle);
    return status;
  });
}

}  // namespace tailrace::capi

int tr_stream_open(const char* pattern, const char* options, tr_stream** stream) {
  if (session_for("tr_stream_open") == nullptr) return TR_ERR_STATE;
  if (stream == nullptr) return fail(Status(Code::argument, "tr_stream_open: `stream` is a null pointer"));
  *stream = nullptr;
  const Result<std::shared_ptr<files::Group>> group =
      state().groups->of(state().bootstrap->compute(), "tr_stream_open");
  if (!group.is_ok()) return fail(group.status());
  Result<std::unique_ptr<input::InputStream>> made =
      input::InputStream::open(*group, text_of(pattern), text_of(options));
  if (!made.is_ok()) return fail(made.status());
  *stream = new tr_stream{nullptr, std::move(*made)};
  state().inputs.push_back(*stream);
  return TR_OK;
}

int tr_stream_get(tr_stream* stream, const char* field, void* data) {
  input::InputStream* const open = input_of(stream, cat("tr_stream_get('", text_of(field), "')"));
  if (open == nullptr) return TR_ERR_STATE;
  open->get(text_of(field), data, nullptr);
  return TR_OK;
}

int tr_stream_get_array(tr_stream* stream, const char* field, void* data, int type, int ndims,
                        const tr_index* extents, const tr_index* strides) {
  const std::string call = cat("tr_stream_get_array('", text_of(field), "')");
  input::InputStream* const open = input_of(stream, call);
  if (open == nullptr) return TR_ERR_STATE;
  if (ndims < 0 || (ndims > 0 && extents == nullptr)) {
    open->latch(Status(Code::argument, cat(call, ": no extents were given")));
    return TR_OK;
  }
  streams::ArrayShape shape;
  shape.type = static_cast<ElementType>(type);
  shape.extents.assign(extents, extents + ndims);
  if (strides != nullptr) shape.strides.assign(strides, strides + ndims);
  open->get(text_of(field), data, &shape);
  return TR_OK;
}

int tr_stream_seek(tr_stream* stream, int64_t lead) {
  input::InputStream* const open = input_of(stream, "tr_stream_seek");
  return open == nullptr ? TR_ERR_STATE : result(open->seek(lead));
}
