// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../report/as_json.hpp"
#include "../report/comparison.hpp"
#include "../report/page.hpp"
#include "../report/tables.hpp"
#include "commands.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/temporary.hpp"

namespace tailrace::cli {

namespace {

struct ReportRequest {
  std::string first;
  std::string second;              // to compare with; "" = none
  std::vector<std::string> paths;  // of those that are given
  std::string page;                // a file; "" = none
  bool json = false;
  bool processes = false;
  bool rules = false;
  bool routines = false;
  bool markdown = false;
};

/// Writes into what is no file of bytes on its own: a pipe, a terminal, a device.
Status write_in_place(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return io_error("open", path, errno);
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (!is_written) {
    std::fclose(file);
    return io_error("write", path, error);
  }
  return std::fclose(file) == 0 ? Status() : io_error("write", path, errno);
}

/// Returns the file that a chain of symbolic links leads to; it may be missing.
std::string behind_links(std::string path) {
  std::error_code none;  // that is what a name without a file, or without a link, is
  for (int links = 0; links < 40 && std::filesystem::is_symlink(path, none); ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, none);
    path = (next.is_absolute() ? next : std::filesystem::path(path).parent_path() / next).string();
  }
  return path;
}

/// Writes a page beside its name and renames it: nobody sees half of one. Links stay links.
Status write_page(const std::string& name, const std::string& text) {
  if (name == "-") {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  std::error_code none;
  const std::filesystem::file_status there = std::filesystem::status(name, none);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    return write_in_place(name, text);
  const std::string path = behind_links(name);
  const Result<storage::Temporary> temporary = storage::make_temporary(path);
  TR_TRY(temporary.status());
  Status status = temporary->file->write(std::as_bytes(std::span(text)), 0);
  if (status.is_ok()) status = temporary->file->close();
  if (status.is_ok() && std::rename(temporary->name.c_str(), path.c_str()) != 0)
    status = io_error("rename", path, errno);
  if (!status.is_ok()) std::remove(temporary->name.c_str());
  return status;
}

/// Prints the table of rules or of routines. The marks of Markdown are for pages alone.
void print_table_of(const ReportRequest& request) {
  reports::Cells cells = request.rules ? reports::rules_table() : reports::routines_table();
  if (!request.markdown) {
    for (auto& line : cells) {
      for (std::string& cell : line) std::erase(cell, '`');
    }
  }
  const std::string text =
      request.markdown ? reports::table_markdown(cells) : reports::paragraphs_of(cells, width_of_output());
  std::fputs(text.c_str(), stdout);
}

/// A page must not take the place of the report that it is made from.
Status check_page(const ReportRequest& request) {
  for (const std::string& path : request.paths) {
    std::error_code unknown;  // of names without a file
    if (std::filesystem::equivalent(path, request.page, unknown))
      return {Code::argument, cat("--html ", request.page,
                                  ": is a report, and would be overwritten; the page needs another name")};
  }
  return {};
}

Status print_runs(const ReportRequest& request) {
  TR_TRY(check_page(request));
  if (request.processes && request.paths.size() == 2)
    return {Code::argument, "--processes has rows for one report; with two, means of processes are compared"};
  std::vector<reports::Run> runs;
  for (const std::string& path : request.paths) {
    Result<reports::Run> run = reports::read_run(path);
    TR_TRY(run.status());
    runs.push_back(std::move(*run));
  }
  const bool compares = runs.size() == 2;
  if (!request.page.empty())
    return write_page(request.page,
                      compares ? reports::page_of(runs[0], runs[1]) : reports::page_of(runs[0]));
  std::string text;
  if (request.json)
    text = (compares ? reports::comparison_json(runs[0], runs[1])
                     : reports::report_json(runs[0], request.processes)) +
           "\n";
  else if (compares)
    text = reports::comparison_text(runs[0], runs[1], width_of_output());
  else
    text = reports::report_text(runs[0], request.processes, width_of_output());
  std::fputs(text.c_str(), stdout);
  return {};
}

void add_report_options(CLI::App& command, ReportRequest& request) {
  command.add_option("REPORT", request.first, "the file that TAILRACE_REPORT named");
  command.add_option("SECOND", request.second, "that of another run, to compare the two");
  CLI::Option* const page = command.add_option(
      "--html", request.page, "writes a page with charts to this file; - is standard output");
  command.add_flag("--json", request.json, "prints the figures of the tables and the advice as JSON")
      ->excludes(page);
  command.add_flag("--processes", request.processes, "prints a row for each process, too; also as JSON")
      ->excludes(page);
  CLI::Option* const rules = command.add_flag("--rules", request.rules, "lists the rules of the advice");
  command.add_flag("--routines", request.routines, "lists the routines and what they mean")->excludes(rules);
  command.add_flag("--markdown", request.markdown, "with --rules or --routines: as docs/reports.md has them");
}

}  // namespace

void add_report(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand(
      "report", "Shows where the time of a run went, and what to do about it; compares two");
  const auto request = std::make_shared<ReportRequest>();
  add_report_options(*command, *request);
  command->footer(
      "TAILRACE_REPORT=run.json has the library write the report. docs/reports.md explains it.\n\n"
      "Exit codes: 0 shown, 1 no such file, 2 usage, or the file is no report, 4 it ends in the middle\n\n"
      "Examples:\n"
      "  tailrace report run.json\n"
      "  tailrace report run.json --processes\n"
      "  tailrace report run.json --html run.html\n"
      "  tailrace report one_server.json two_servers.json\n"
      "  tailrace report --rules");
  command->callback([request, &exit] {
    if (request->rules || request->routines) {
      print_table_of(*request);
      exit = Exit::done;
      return;
    }
    if (request->first.empty()) throw CLI::RequiredError("REPORT");
    request->paths = {request->first};
    if (!request->second.empty()) request->paths.push_back(request->second);
    const Status status = guarded([&] { return print_runs(*request); });
    exit = status.is_ok() ? Exit::done : report("report", status);
  });
}

}  // namespace tailrace::cli
