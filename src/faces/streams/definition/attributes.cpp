// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Attributes with types: numbers and texts that the program gives by calls.
#include <algorithm>
#include <cstring>

#include "faces/streams/definition/fields.hpp"
#include "faces/streams/stream.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

namespace {

/// The header of an object in HDF5 takes less than 64 KiB, and readers know attributes as small.
constexpr Bytes most_bytes = 60'000;

Status check_size(Bytes bytes) {
  if (bytes <= most_bytes) return {};
  return {Code::argument, cat("an attribute has at most ", most_bytes, " bytes, and this one ", bytes,
                              ": write it as a field with time=none")};
}

Result<codec::GivenAttribute> numbers(codec::GivenAttribute given, std::int64_t count, const void* values,
                                      bool counts) {
  const Bytes size = size_of(*given.type);
  if (size == 0 || is_complex(*given.type) || is_text(*given.type))
    return Status(Code::argument,
                  "attributes are integers or real numbers: give TR_F64, TR_I32, ..., or a text by "
                  "tr_stream_attribute_text");
  if (!counts) return given;
  if (count < 1)
    return Status(Code::argument, cat("it has ", counted(count, "value"), ", and needs one or more"));
  if (values == nullptr) return Status(Code::argument, "`values` is a null pointer");
  if (count > most_bytes)
    return Status(Code::argument, cat("it has ", count, " values, and an attribute at most ", most_bytes,
                                      " bytes: write it as a field with time=none"));
  TR_TRY(check_size(count * size));
  const auto* const bytes = static_cast<const std::byte*>(values);
  given.values.assign(bytes, bytes + count * size);
  return given;
}

Result<codec::GivenAttribute> text(codec::GivenAttribute given, const char* value, bool counts) {
  if (!counts) return given;
  if (value == nullptr) return Status(Code::argument, "`text` is a null pointer");
  const std::string_view all(value);
  if (!is_utf8(all)) return Status(Code::argument, "the text is not UTF-8: convert it");
  TR_TRY(check_size(std::ssize(all)));
  const auto bytes = std::as_bytes(std::span(all));
  given.values.assign(bytes.begin(), bytes.end());
  return given;
}

}  // namespace

Status Stream::attribute(const std::string& of, const std::string& attribute, int type, std::int64_t count,
                         const void* values) {
  return fields_.add_attribute(
      cat("tr_stream_attribute(\"", name(), "\", ", of.empty() ? "NULL" : cat("\"", of, "\""), ", \"",
          attribute, "\", type ", type, ")"),
      numbers({of, attribute, static_cast<ElementType>(type), {}}, count, values, session_.rank() == 0));
}

Status Stream::text_attribute(const std::string& of, const std::string& attribute, const char* value) {
  return fields_.add_attribute(cat("tr_stream_attribute_text(\"", name(), "\", ",
                                   of.empty() ? "NULL" : cat("\"", of, "\""), ", \"", attribute, "\")"),
                               text({of, attribute, {}, {}}, value, session_.rank() == 0));
}

codec::StreamDefinition Fields::with_attributes() const {
  codec::StreamDefinition stream = request_.definition;
  stream.given = attributes_;
  return stream;
}

/// Adds the attribute to `attributes_`, to the codec and to the references. Behind the first step it may take
/// the place of one that was given before.
Status Fields::take_attribute(const codec::GivenAttribute& fresh) {
  if (codec_is_ahead_) TR_TRY(renew_codec().in("making the codec anew without what was refused before"));
  const auto same = std::ranges::find_if(attributes_, [&](const codec::GivenAttribute& each) {
    return each.of == fresh.of && each.name == fresh.name;
  });
  if (client_.steps() > 0 && same != attributes_.end()) {
    *same = fresh;
    references_.reset();
    return renew_codec();
  }
  attributes_.push_back(fresh);
  TR_TRY(codec_->add_attribute(fresh));
  return references_ ? references_->add_attribute(fresh) : Status();
}

Status Fields::add_attribute(const std::string& call, Result<codec::GivenAttribute> given) {
  comm::Vote vote{{}, call, {}};
  vote.status =
      guarded([&]() -> Status {
        TR_TRY(may_define());
        if (!codec_->has_coordinates())
          return {Code::format,
                  cat("files of format=", request_.definition.format,
                      " hold no attributes: leave the call out, or choose a format of NetCDF or Zarr; "
                      "what GRIB can tell is set by keys=")};
        TR_TRY(given.status());
        if (session_.rank() != 0) return {};
        Packer packed;
        given->pack(packed);
        vote.contribution = packed.take();
        return {};
      }).in(call);
  const comm::Verdict sent = session_.agree(std::move(vote));
  TR_TRY(sent.status);
  std::optional<std::vector<codec::GivenAttribute>> before;
  const Status mine = guarded([&]() -> Status {
    Unpacker in(sent.contributions[0]);
    before = attributes_;
    return take_attribute(codec::GivenAttribute::unpack(in));
  });
  const Status status = session_.agree({mine.in(call), call, {}}).status;
  if (!status.is_ok()) {
    if (before) attributes_ = *std::move(before);
    // The codec or the references of some rank may have it. They are made anew before the next definition.
    codec_is_ahead_ = true;
    references_.reset();
    static_cast<void>(guarded([&] { return renew_codec(); }));
    return status;
  }
  if (client_.steps() == 0 && !has_later()) {
    tell(client_.definitions().add_attribute(attributes_.back()));
    return {};
  }
  note_file_without();
  attributes_are_later_ = true;
  return {};
}

}  // namespace tailrace::streams
