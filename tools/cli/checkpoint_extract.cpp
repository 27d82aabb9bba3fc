// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstdio>

#include "checkpoint.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/temporary.hpp"

namespace tailrace::cli {
namespace {

using checkpoint::Copy;
using checkpoint::CopyReader;

struct ExtractArguments {
  std::string copy;
  std::string item;
  std::string out;
  std::string format;
};

Result<bool> is_netcdf(const ExtractArguments& arguments) {
  if (arguments.format.empty()) return arguments.out.ends_with(".nc");
  const Result<std::size_t> format = parse_choice(arguments.format, {"raw", "netcdf"});
  TR_TRY(format.status().in("--format"));
  return *format == 1;
}

Result<int> item_of(const Copy& copy, const std::string& name) {
  const int item = copy.find(name);
  if (item >= 0) return item;
  std::vector<std::string> known;
  for (const checkpoint::ItemInfo& info : copy.directory.items) known.push_back(info.name);
  const std::string near = nearest(name, known);
  return Status(Code::argument, cat(copy.path, ": no item is called \"", name, "\"",
                                    near.empty() ? "" : cat("; did you mean \"", near, "\"?")));
}

Status write_raw(CopyReader& reader, const Copy& copy, int item, storage::File& file) {
  const checkpoint::ItemInfo& info = copy.directory.items[static_cast<std::size_t>(item)];
  const Index all = info.elements();
  const Index step = elements_at_once(info.type);
  ByteVector bytes;
  for (Index begin = 0; begin < all; begin += step) {
    const Index count = std::min(step, all - begin);
    // Elements in no part are zeros.
    bytes.assign(static_cast<std::size_t>(count * size_of(info.type)), std::byte{});
    TR_TRY(read_elements(reader, copy, item, begin, count, bytes.data()));
    TR_TRY(file.write(bytes, begin * size_of(info.type)));
  }
  return {};
}

Status extract(storage::Target& target, const ExtractArguments& arguments) {
  const Result<bool> netcdf = is_netcdf(arguments);
  TR_TRY(netcdf.status());
  const Result<Copy> copy = newest_copy(target, arguments.copy);
  TR_TRY(copy.status());
  const Result<int> item = item_of(*copy, arguments.item);
  TR_TRY(item.status());
  CopyReader reader(target, *copy);
  // The array goes to a temporary file first, so that no program finds half an array under the output's name.
  const Result<storage::Temporary> temporary = storage::make_temporary(arguments.out);
  TR_TRY(temporary.status());
  const Status written = *netcdf ? write_netcdf(reader, *copy, *item, temporary->opened).in(temporary->name)
                                 : write_raw(reader, *copy, *item, *temporary->file);
  if (!written.is_ok()) {
    // An error of the removal is ignored: the user hears of the first error.
    static_cast<void>(storage::remove_if_there(target, temporary->name));
    return written;
  }
  TR_TRY(storage::take_name(target, *temporary, arguments.out));
  std::puts(cat(arguments.out, ": ", arguments.item, ", ",
                copy->directory.items[static_cast<std::size_t>(*item)].text(), ", of generation ",
                copy->generation(), " in ", copy->path)
                .c_str());
  return {};
}

int run_extract(const ExtractArguments& arguments) {
  const std::shared_ptr<storage::Target> target = storage::default_target();
  const Status status = extract(*target, arguments);
  return status.is_ok() ? Answer::fine : report_checkpoint("extract", status);
}

}  // namespace

void add_checkpoint_extract(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand("extract", "Writes one item of a copy into a file of its own");
  const auto arguments = std::make_shared<ExtractArguments>();
  command
      ->add_option("COPY", arguments->copy,
                   "a checkpoint, of which the newest whole copy is taken, or one copy")
      ->required();
  command->add_option("ITEM", arguments->item, "the name of the item")->required();
  command->add_option("-o,--output", arguments->out, "the file to be written or replaced")->required();
  command->add_option("--format", arguments->format,
                      "raw or netcdf (default: netcdf if the file ends in .nc, raw otherwise)");
  command->footer(
      "raw: the elements in C order, little-endian, nothing else. netcdf: one variable of a NetCDF-4 file;\n"
      "complex numbers get a last dimension of 2, real and imaginary part. The file appears once it is "
      "whole.\n\n"
      "Exit codes: 0 written, 1 the item is damaged, or no copy is whole, 2 usage, or storage failed\n\n"
      "Examples:\n"
      "  tailrace checkpoint extract run/state temperature -o temperature.bin\n"
      "  tailrace checkpoint extract run/state.1 temperature -o temperature.nc && ncview temperature.nc");
  command->callback(
      [arguments, &exit] { exit = answer_of("extract", [&] { return run_extract(*arguments); }); });
}

}  // namespace tailrace::cli
