// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstdio>

#include "commands.hpp"
#include "faces/streams/described/description.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cli {

namespace {

/// Returns when the stream has steps, for people.
std::string steps_of(const streams::DescribedStream& stream) {
  std::string text =
      stream.every ? cat("a step every ", stream.every_text) : std::string("each step of the program");
  if (stream.request.options.interval)
    text = cat(text, ", over intervals of ",
               operations::text_of(*stream.request.options.interval, stream.request.definition.time));
  return text;
}

/// Returns the error that the stream's format has of its definition, such as of its times.
Status check_format(const streams::Description& description, const streams::DescribedStream& stream) {
  const codec::StreamDefinition& definition = stream.request.definition;
  const Result<const formats::Format*> format = formats::find(definition.format);
  TR_TRY(format.status());
  if ((*format)->make == nullptr) return {};
  return (*format)
      ->make(definition)
      .status()
      .in(cat(description.text_of(stream.place), ": stream ", stream.name));
}

Status print_stream(const streams::Description& description, const streams::DescribedStream& stream) {
  const std::string& format = stream.request.definition.format;
  TR_TRY(check_format(description, stream));
  std::printf("%s (line %d): %s, %s\n", stream.name.c_str(), stream.place.line, format.c_str(),
              steps_of(stream).c_str());
  // With an interval the first step is at its end, otherwise it may be at the base time.
  const codec::StreamDefinition& definition = stream.request.definition;
  const auto& interval = stream.request.options.interval;
  const std::int64_t lead =
      interval
          ? operations::Intervals(*interval, definition.base, definition.calendar, definition.time).end_of(1)
          : 0;
  const Result<std::string> first = stream.request.pattern.expand(lead, stream.request.context());
  TR_TRY(first.status().in(cat(description.text_of(stream.place), ": stream ", stream.name)));
  std::printf("  %s %s\n", stream.request.pattern.depends_on_lead() ? "files, the first is" : "one file,",
              first->c_str());
  if (!stream.options.empty()) std::printf("  options: %s\n", stream.options.c_str());
  std::size_t width = 0;
  for (const streams::WrittenField& field : stream.fields) width = std::max(width, field.in_file.size());
  for (const streams::WrittenField& field : stream.fields) {
    const Result<std::string> options = description.options_of(stream, field, "");
    TR_TRY(options.status());
    std::string of = field.name == field.in_file ? "" : cat("the program's ", field.name);
    if (field.is_later) of += cat(of.empty() ? "" : ", ", "may come behind the first step");
    const std::string about = cat(of, of.empty() || options->empty() ? "" : ", ", *options);
    std::printf("  - %-*s%s%s\n", about.empty() ? 0 : static_cast<int>(width), field.in_file.c_str(),
                about.empty() ? "" : "  ", about.c_str());
  }
  return {};
}

}  // namespace

Status print_streams(const std::string& path, const std::string& given) {
  const Result<std::string> text = streams::read_description_text(path);
  TR_TRY(text.status());
  const Result<streams::Description> description = streams::Description::parse(*text, path, given);
  TR_TRY(description.status());
  for (const streams::DescribedStream& stream : description->streams())
    TR_TRY(print_stream(*description, stream));
  std::printf("%s: %s\n", path.c_str(), counted(description->streams().size(), "stream").c_str());
  return {};
}

}  // namespace tailrace::cli
