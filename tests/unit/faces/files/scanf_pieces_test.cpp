// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/scanf_pieces.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cwchar>

namespace tailrace::files {
namespace {

using Stores = ScanPiece::Stores;

ScanPiece only(const std::string& format) {
  const auto pieces = parse_scan_format(format);
  EXPECT_TRUE(pieces.is_ok()) << format;
  return pieces.is_ok() && !pieces->empty() ? pieces->back() : ScanPiece();
}

TEST(scan_format, every_conversion_of_c99_has_its_size) {
  const std::pair<const char*, std::size_t> lengths[] = {{"hh", 1},
                                                         {"h", sizeof(short)},
                                                         {"", sizeof(int)},
                                                         {"l", sizeof(long)},
                                                         {"ll", sizeof(long long)},
                                                         {"j", sizeof(std::intmax_t)},
                                                         {"z", sizeof(std::size_t)},
                                                         {"t", sizeof(std::ptrdiff_t)}};
  for (const auto& [length, size] : lengths) {
    for (const char letter : std::string("diouxX")) {
      const std::string format = std::string("%") + length + letter;
      EXPECT_EQ(only(format).size, size) << format;
      EXPECT_EQ(only(format).stores, Stores::value);
      EXPECT_EQ(only(format).text, format);
    }
    EXPECT_EQ(only(std::string("%") + length + "n").stores, Stores::position);
    EXPECT_EQ(only(std::string("%") + length + "n").size, size);
  }
  for (const char letter : std::string("aAeEfFgG")) {
    EXPECT_EQ(only(std::string("%") + letter).size, sizeof(float));
    EXPECT_EQ(only(std::string("%l") + letter).size, sizeof(double));
    EXPECT_EQ(only(std::string("%L") + letter).size, sizeof(long double));
  }
  EXPECT_EQ(only("%p").size, sizeof(void*));
  EXPECT_EQ(only("%c").stores, Stores::characters);
  EXPECT_EQ(only("%12c").count, 12U);
  EXPECT_EQ(only("%lc").size, sizeof(wchar_t));
  EXPECT_EQ(only("%5s").stores, Stores::string);
  EXPECT_EQ(only("%ls").size, sizeof(wchar_t));
  EXPECT_EQ(only("%[a-z]").stores, Stores::string);
  EXPECT_EQ(only("%*d").stores, Stores::nothing);
}

TEST(scan_format, text_and_sets_end_where_they_end) {
  const auto pieces = parse_scan_format("a%%b %d,%[]%d]x%[^]]");
  ASSERT_TRUE(pieces.is_ok());
  std::vector<std::string> texts;
  for (const ScanPiece& piece : *pieces) texts.push_back(piece.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"a%%b ", "%d", ",", "%[]%d]", "x", "%[^]]"}));
  EXPECT_TRUE(parse_scan_format("")->empty());
}

TEST(scan_format, what_c99_does_not_have_is_named) {
  const std::pair<const char*, const char*> bad[] = {
      {"%d %y", "\"%y\""}, {"%", "\"%\""},     {"%1$d", "\"%1$\""}, {"%ms", "\"%m\""},
      {"%Lc", "\"%Lc\""},  {"%hf", "\"%hf\""}, {"%lp", "\"%lp\""},  {"%[abc", "no closing bracket"},
      {"%*", "\"%*\""},    {"%C", "\"%C\""}};
  for (const auto& [format, part] : bad) {
    const Status status = parse_scan_format(format).status();
    EXPECT_EQ(status.code(), Code::argument) << format;
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  }
}

Outcome scan_text(std::string text, const char* format, ...) {
  std::FILE* const stream = ::fmemopen(text.data(), text.size(), "r");
  std::va_list arguments;
  va_start(arguments, format);
  Outcome outcome = scan(stream, *parse_scan_format(format), arguments);
  va_end(arguments);
  std::fclose(stream);
  return outcome;
}

bool take(const ByteVector* data, ...) {
  std::va_list arguments;
  va_start(arguments, data);
  const bool good = store_scanned(*data, arguments);
  va_end(arguments);
  return good;
}

TEST(scan, what_was_stored_can_be_stored_elsewhere) {
  int number[2] = {};
  char word[2][20] = {};
  signed char place[2] = {};
  double real[2] = {};
  const Outcome outcome =
      scan_text("17 word-5.5", "%d%*c%[^-]%hhn%lf", &number[0], word[0], &place[0], &real[0]);
  EXPECT_EQ(outcome.value, 3);
  EXPECT_EQ(outcome.error, 0);
  EXPECT_TRUE(take(&outcome.data, &number[1], word[1], &place[1], &real[1]));
  for (int side = 0; side < 2; ++side) {
    EXPECT_EQ(number[side], 17);
    EXPECT_STREQ(word[side], "word");
    EXPECT_EQ(place[side], 7);
    EXPECT_EQ(real[side], -5.5);
  }
}

TEST(scan, what_was_not_reached_is_left_alone) {
  int number = -1;
  int place = -1;
  EXPECT_EQ(scan_text("5 y", "%d x%n", &number, &place).value, 1);
  EXPECT_EQ(number, 5);
  EXPECT_EQ(place, -1);
  EXPECT_EQ(scan_text("5 ", "%d x%n", &number, &place).value, 1);
  EXPECT_EQ(scan_text(" ", "%d", &number).value, EOF);
  EXPECT_EQ(scan_text("y", "%d", &number).value, 0);
  char text[8] = "#######";
  EXPECT_EQ(scan_text("ab", "%5c", text).value, 1);
  EXPECT_EQ(std::string(text), "ab#####");
}

TEST(scan, a_null_pointer_is_an_error_and_no_crash) {
  int number = 0;
  const Outcome outcome = scan_text("1 2", "%d%d", &number, static_cast<int*>(nullptr));
  EXPECT_EQ(outcome.value, EOF);
  EXPECT_EQ(outcome.error, EFAULT);
  const Outcome good = scan_text("1", "%d", &number);
  EXPECT_FALSE(take(&good.data, static_cast<int*>(nullptr)));
}

}  // namespace
}  // namespace tailrace::files
