// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/described/description.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "ground/base/text.hpp"

namespace tailrace::streams {
namespace {

using Words = std::array<std::string_view, 4>;
/// Options that say what the program's times mean.
constexpr Words kOptionsOfTime{"base", "calendar", "time", "lead_unit"};
constexpr std::array<std::string_view, 3> kPrecisions{"accuracy", "relative_accuracy", "bits"};
/// It belongs to accuracy=auto, and goes with it.
constexpr std::string_view kShare = "information";

std::string text_of_list(const std::vector<Option>& options, std::string_view separator) {
  std::string text;
  for (const Option& option : options) text += cat(text.empty() ? "" : separator, tailrace::text_of(option));
  return text;
}

void set(std::vector<Option>& options, const Option& option) {
  const auto found = std::ranges::find(options, option.key, &Option::key);
  if (found == options.end())
    options.push_back(option);
  else
    found->value = option.value;
}

/// Puts an option over those that are there. Attributes and keys are joined name by name; of three ways to
/// say how exact values are, the last one counts.
Status put_over(std::vector<Option>& options, const Option& option) {
  if (std::ranges::find(kPrecisions, option.key) != kPrecisions.end())
    std::erase_if(options, [](const Option& each) {
      return each.key == kShare || std::ranges::find(kPrecisions, each.key) != kPrecisions.end();
    });
  const auto found = std::ranges::find(options, option.key, &Option::key);
  if (found == options.end() || (option.key != "attributes" && option.key != "keys")) {
    set(options, option);
    return {};
  }
  const Result<Options> before = Options::parse_list(found->value), over = Options::parse_list(option.value);
  TR_TRY(before.status());
  TR_TRY(over.status());
  std::vector<Option> all = before->entries();
  for (const Option& each : over->entries()) set(all, each);
  found->value = text_of_list(all, ", ");
  return {};
}

/// Writes the attributes that the program gives as options of their own into its attributes=, where those of
/// the description join them name by name.
void gather_attributes(std::vector<Option>& options) {
  std::string list;
  const auto add = [&](const std::string& text) { list += cat(list.empty() ? "" : ", ", text); };
  for (const Option& each : options) {
    if (std::ranges::find(usual_attributes, each.key) != usual_attributes.end())
      add(tailrace::text_of(each));
    else if (each.key == "attributes")
      add(each.value);
  }
  std::erase_if(options, [](const Option& each) {
    return each.key == "attributes" ||
           std::ranges::find(usual_attributes, each.key) != usual_attributes.end();
  });
  if (!list.empty()) options.push_back({"attributes", list});
}

/// Returns the place of the option that an error is about, or `otherwise`.
Place place_of(const Status& status, const WrittenOptions& options, Place otherwise) {
  for (const WrittenOption& each : options)
    if (status.text().find(tailrace::text_of(each.option)) != std::string::npos) return each.place;
  for (const WrittenOption& each : options)
    if (status.text().find(cat(each.option.key, "=")) != std::string::npos) return each.place;
  return otherwise;
}

}  // namespace

Result<std::string> read_description_text(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(most_description_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.is_open() || (file.gcount() == 0 && errno != 0))
    return io_error("read", path, errno != 0 ? errno : ENOENT);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

Result<Description> Description::parse(std::string_view text, const std::string& path,
                                       const std::string& given) {
  const Result<Options> program = Options::parse(given);
  TR_TRY(program.status());
  Result<Written> written = read_yaml(text, path);
  TR_TRY(written.status());
  Description description;
  description.path_ = path;
  description.shared_ = std::move(written->shared);
  for (WrittenStream& stream : written->streams) {
    for (const DescribedStream& before : description.streams_) {
      if (before.pattern == stream.pattern)
        return error_at(path, stream.pattern_place,
                        cat("stream ", before.name, ", line ", before.place.line, ", writes \"",
                            stream.pattern, "\" already: give each stream files of its own"));
    }
    TR_TRY(description.add_stream(std::move(stream), program->entries()));
  }
  return description;
}

/// Takes every: of a stream whose options are parsed.
Status Description::take_every(const WrittenStream& written, DescribedStream& stream) const {
  if (!written.every) return {};
  const codec::StreamDefinition& definition = stream.request.definition;
  if (definition.time.is_model())
    return error_at(
        path_, written.every->place,
        "every: chooses steps by their leads, and a stream with time=model has none: leave every: "
        "out, and let the program begin a step only where one is to be written, or count leads "
        "(lead_unit=)");
  const Result<operations::IntervalLength> length =
      operations::parse_interval(written.every->option.value, definition.time);
  Status checked = length.status();
  if (checked.is_ok()) {
    stream.every.emplace(*length, definition.base, definition.calendar, definition.time);
    checked = stream.every->check();
  }
  if (!checked.is_ok()) return error_at(path_, written.every->place, cat("every: ", checked.text()));
  stream.every_text = written.every->option.value;
  if (!stream.request.options.interval) return {};
  // Months have other lengths: the intervals of some years show it.
  constexpr int most = 100;
  const operations::Intervals intervals(*stream.request.options.interval, definition.base,
                                        definition.calendar, definition.time);
  std::int64_t end = 0;
  for (int i = 0; i < most; ++i) {
    const std::int64_t next = intervals.end_of(end + 1);
    if (next <= end || !definition.time.check(next).is_ok()) return {};
    if (!stream.every->is_end(next))
      return error_at(
          path_, written.every->place,
          cat("every: the stream has no step at ", definition.time.at(next), ", where an interval of ",
              operations::text_of(*stream.request.options.interval, definition.time),
              " ends: give a length of which the interval has a whole number, or leave every: out"));
    end = next;
  }
  return {};
}

Status Description::add_stream(WrittenStream written, const std::vector<Option>& given) {
  std::vector<Option> options = given;
  for (const WrittenOption& each : written.options) {
    const auto programs = std::ranges::find(given, each.option.key, &Option::key);
    const bool is_of_time = std::ranges::find(kOptionsOfTime, each.option.key) != kOptionsOfTime.end();
    if (is_of_time && programs != given.end() && programs->value != each.option.value)
      return error_at(path_, each.place,
                      cat("the program gives ", tailrace::text_of(*programs),
                          ", by which it counts its steps: leave ", each.option.key, ": out"));
    const Status put = put_over(options, each.option);
    if (!put.is_ok()) return error_at(path_, each.place, put.text());
  }
  DescribedStream stream;
  stream.options = text_of_list(options, " ");
  Result<StreamRequest> request = parse_stream(written.pattern, stream.options);
  if (!request.is_ok())
    return error_at(path_, place_of(request.status(), written.options, written.pattern_place),
                    request.status().text());
  stream.request = std::move(*request);
  TR_TRY(take_every(written, stream));
  for (const WrittenOption& each : written.options) {
    if (each.option.key != "attributes") continue;
    const Result<Options> list = Options::parse_list(each.option.value);
    TR_TRY(list.status());
    for (const Option& attribute : list->entries()) stream.attributes.insert(attribute.key);
  }
  stream.name = std::move(written.name);
  stream.pattern = std::move(written.pattern);
  stream.fields = std::move(written.fields);
  stream.place = written.place;
  for (const WrittenField& field : stream.fields) TR_TRY(check_field(stream, field));
  streams_.push_back(std::move(stream));
  return {};
}

/// Checks what can be known of a field without its layout.
Status Description::check_field(const DescribedStream& stream, const WrittenField& field) {
  const Result<std::string> options = options_of(stream, field, "");
  TR_TRY(options.status());
  bytes_ += options->size();
  if (bytes_ > most_taken_bytes)
    return error_at(path_, field.place,
                    "the options of all fields, with what streams share of them, have more than 8 MiB: give "
                    "fewer fields, or shorter attributes");
  if (field.is_later && !stream.request.pattern.depends_on_lead())
    return error_at(
        path_, field.place,
        cat("later: a field that comes behind the first step begins with the next file, and stream ",
            stream.name, " has one: have its files begin with the time, as {valid:%Y%m%d} in file: does"));
  const codec::StreamDefinition& definition = stream.request.definition;
  const Result<FieldRequest> request = parse_field(field.in_file, static_cast<int>(ElementType::f32), {1},
                                                   *options, definition.format, definition.time);
  if (request.is_ok() && request->operation && !stream.request.options.interval)
    return error_at(path_, place_of(Status(Code::settings, "operation="), field.options, field.place),
                    cat("operation: is over the steps of an interval: give stream ", stream.name,
                        " interval:, as interval: 1d"));
  if (request.is_ok()) return {};
  const auto shared = shared_.find(field.name);
  Place place = place_of(request.status(), field.options, {});
  if (place.line == 0 && shared != shared_.end())
    place = place_of(request.status(), shared->second.options, {});
  return error_at(path_, place.line > 0 ? place : field.place,
                  cat("stream ", stream.name, ": ", request.status().text()));
}

Result<std::string> Description::options_of(const DescribedStream& stream, const WrittenField& field,
                                            std::string_view given) const {
  const Result<Options> programs = Options::parse(given);
  TR_TRY(programs.status());
  const auto is_taken = [&](const Option& option) {
    return option.key == "operation" ? stream.request.options.interval.has_value()
                                     : takes_field_option(stream.request.definition.format, option.key);
  };
  std::vector<Option> options = programs->entries();
  gather_attributes(options);
  std::erase_if(options, [&](const Option& each) { return !is_taken(each); });
  // The share comes behind the accuracy that it belongs to, wherever the description has it.
  const auto put_all = [&](const WrittenOptions& written, const auto& counts) -> Status {
    for (const bool is_share : {false, true}) {
      for (const WrittenOption& each : written) {
        if ((each.option.key == kShare) != is_share || !counts(each.option)) continue;
        const Status put = put_over(options, each.option);
        if (!put.is_ok()) return error_at(path_, each.place, put.text());
      }
    }
    return {};
  };
  const auto shared = shared_.find(field.name);
  if (shared != shared_.end()) TR_TRY(put_all(shared->second.options, is_taken));
  TR_TRY(put_all(field.options, [](const Option&) { return true; }));
  return text_of_list(options, " ");
}

bool Description::gives_attribute(const DescribedStream& stream, const WrittenField& field,
                                  const std::string& attribute) const {
  const Result<std::string> text = options_of(stream, field, "");
  const Result<Options> options = text.is_ok() ? Options::parse(*text) : text.status();
  const std::string* const list = options.is_ok() ? options->find("attributes") : nullptr;
  if (list == nullptr) return false;
  const Result<Options> attributes = Options::parse_list(*list);
  return attributes.is_ok() && attributes->find(attribute) != nullptr;
}

}  // namespace tailrace::streams
