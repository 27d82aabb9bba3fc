// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/entropy/libaec.hpp"

#include <bit>

#include "ground/base/text.hpp"

#ifdef TAILRACE_HAVE_AEC
#include <libaec.h>
#endif

namespace tailrace::entropy {

#ifdef TAILRACE_HAVE_AEC

namespace {

static_assert(layout_flags == (AEC_DATA_3BYTE | AEC_DATA_MSB));
static_assert(usual_flags == (layout_flags | AEC_DATA_PREPROCESS));

aec_stream stream_for(const LibaecParameters& parameters) {
  aec_stream stream{};
  stream.flags = parameters.flags & ~layout_flags;
  if constexpr (std::endian::native == std::endian::big) stream.flags |= AEC_DATA_MSB;
  stream.bits_per_sample = static_cast<unsigned>(parameters.bits);
  stream.block_size = parameters.block;
  stream.rsi = parameters.interval;
  return stream;
}

Status not_compressed(int error) {
  if (error == AEC_MEM_ERROR) return {Code::memory, "no memory to compress the values"};
  return {Code::data, cat("libaec does not compress the values: its error ", error)};
}

}  // namespace

bool has_libaec() { return true; }

struct LibaecEncoder::State {
  aec_stream stream{};
  int error = AEC_OK;
};

LibaecEncoder::LibaecEncoder(const LibaecParameters& parameters) : state_(std::make_unique<State>()) {
  state_->stream = stream_for(parameters);
  state_->error = aec_encode_init(&state_->stream);
}

LibaecEncoder::~LibaecEncoder() {
  if (state_->error == AEC_OK) aec_encode_end(&state_->stream);
}

Result<Bytes> LibaecEncoder::encode(std::span<const std::byte> codes, bool is_last,
                                    std::span<std::byte> room) {
  if (state_->error != AEC_OK) return not_compressed(state_->error);
  aec_stream& stream = state_->stream;
  stream.next_in = reinterpret_cast<const unsigned char*>(codes.data());
  stream.avail_in = codes.size();
  stream.next_out = reinterpret_cast<unsigned char*>(room.data());
  stream.avail_out = room.size();
  const int error = aec_encode(&stream, is_last ? AEC_FLUSH : AEC_NO_FLUSH);
  if (error != AEC_OK) return not_compressed(error);
  if (stream.avail_out == 0) return not_compressed(AEC_STREAM_ERROR);
  return static_cast<Bytes>(room.size() - stream.avail_out);
}

Status libaec_decode(const LibaecParameters& parameters, std::span<const std::byte> compressed,
                     std::span<std::byte> codes) {
  aec_stream stream = stream_for(parameters);
  stream.next_in = reinterpret_cast<const unsigned char*>(compressed.data());
  stream.avail_in = compressed.size();
  stream.next_out = reinterpret_cast<unsigned char*>(codes.data());
  stream.avail_out = codes.size();
  const int error = aec_buffer_decode(&stream);
  if (error == AEC_MEM_ERROR) return {Code::memory, "no memory to decompress the values"};
  if (error != AEC_OK) return {Code::corrupt, cat("libaec does not decompress its values: error ", error)};
  const auto width = static_cast<std::size_t>(libaec_width(parameters.bits));
  if (stream.total_out != codes.size())
    return {Code::corrupt,
            cat("packed values: expected ", codes.size() / width, ", got ", stream.total_out / width)};
  return {};
}

#else

namespace {

Status no_libaec() { return {Code::unsupported, "built without libaec"}; }

}  // namespace

bool has_libaec() { return false; }

struct LibaecEncoder::State {};

LibaecEncoder::LibaecEncoder(const LibaecParameters&) {}
LibaecEncoder::~LibaecEncoder() = default;

Result<Bytes> LibaecEncoder::encode(std::span<const std::byte>, bool, std::span<std::byte>) {
  return no_libaec();
}

Status libaec_decode(const LibaecParameters&, std::span<const std::byte>, std::span<std::byte>) {
  return no_libaec();
}

#endif

}  // namespace tailrace::entropy
