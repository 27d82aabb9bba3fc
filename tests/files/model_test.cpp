// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Seeded random sequences of operations on a collective file and, on every rank by itself, on a twin with the
// C library. Every rank sees the same results, arguments, positions, errno and flags, and the bytes are equal
// in the end.
#include "files/model.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "files/fixture.hpp"

using namespace tailrace::files_test;

namespace {

/// Equal draws on all ranks and, copied, for both libraries.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  int below(int limit) { return static_cast<int>(engine_() % static_cast<std::uint32_t>(limit)); }
  bool once_in(int times) { return below(times) == 0; }

 private:
  std::mt19937 engine_;
};

/// What a sequence may do next within the rules of ISO C99.
struct Course {
  bool reads = true;
  bool writes = true;
  enum class Last { neither, read, wrote } last = Last::neither;
  bool pushed_back = false;
  bool has_position = false;
  std::fpos_t position{};
};

/// Returns a result, and errno if the call has failed.
std::string told(long value, bool failed) {
  std::string text = std::to_string(value);
  if (failed && errno != 0) text += " errno " + std::to_string(errno);
  return text;
}

std::string random_text(Dice& dice, int length) {
  static const char letters[] = "0123456789 -+.eEabcXYZ,;%\n\t 42 7.5e3 0x1f";
  std::string text;
  for (int i = 0; i < length; ++i) text += letters[dice.below(static_cast<int>(sizeof letters) - 1)];
  return text;
}

int random_length(Dice& dice) {
  if (dice.once_in(40)) return dice.below(30'000);
  return dice.once_in(6) ? dice.below(9000) : dice.below(40);
}

std::string shown(const void* data, std::size_t size) {
  return std::string(static_cast<const char*>(data), size);
}

template <typename Api>
std::string print(Api& api, Dice& dice) {
  const int number = dice.below(2'000'000) - 1'000'000;
  const double real = number * 1.25e-3;
  int counted = -1;
  int result = 0;
  switch (dice.below(6)) {
    case 0:
      result =
          api.fprintf("%d %5i|%-8u|%o %x %X %c%%\n", number, number, number, number, number, number, 'q');
      break;
    case 1:
      result = api.fprintf("%f %.3e %G %a %+.0f\n", real, real, real, real, real);
      break;
    case 2:
      result = api.fprintf("%s %.3s %10s%n\n", "one", "twothree", "ten", &counted);
      break;
    case 3:
      result = api.fprintf("%hhd %hd %ld %lld %jd %zu %td\n", number, number, static_cast<long>(number),
                           static_cast<long long>(number), static_cast<std::intmax_t>(number),
                           static_cast<std::size_t>(7), static_cast<std::ptrdiff_t>(-7));
      break;
    case 4:
      result = api.fprintf("%*d %-*d %Lf %p\n", 7, number, 9, number, static_cast<long double>(real),
                           reinterpret_cast<void*>(0x1234));
      break;
    default:
      result = api.fprintf("%d %lf %s\n", number, real, "word");
  }
  // %n stores on the I/O rank: the others' arguments are not looked at.
  return told(result, result < 0) + (rank() == 0 ? " counted " + std::to_string(counted) : "");
}

template <typename Api>
std::string write_with_result(Api& api, Dice& dice) {
  const int character = dice.below(256);
  const std::string text = random_text(dice, random_length(dice));
  const std::size_t size = static_cast<std::size_t>(dice.below(9));
  const std::size_t count = size == 0 ? 3 : text.size() / size;
  int result = 0;
  switch (dice.below(5)) {
    case 0:
      result = api.fputc(character);
      break;
    case 1:
      result = api.putc(character);
      break;
    case 2:
      result =
          api.fputs(text.c_str()) < 0 ? EOF : 0;  // which non-negative value is the library's own business
      break;
    case 3: {
      const std::size_t written = api.fwrite(text.data(), size, count);
      return told(static_cast<long>(written), written < count);
    }
    default:
      return print(api, dice);
  }
  return told(result, result == EOF);
}

template <typename Api>
void write_without_result(Api& api, Dice& dice) {
  const int character = dice.below(256);
  const std::string text = random_text(dice, random_length(dice));
  switch (dice.below(5)) {
    case 0:
      return api.fputc_nr(character);
    case 1:
      return api.putc_nr(character);
    case 2:
      return api.fputs_nr(text.c_str());
    case 3:
      return api.fwrite_nr(text.data(), 1, text.size());
    default:
      return api.fprintf_nr("%s %d %g\n", text.c_str(), character, character / 8.0);
  }
}

/// Room for the values of a scan, zero before it, so that values that were not assigned are seen as well.
struct Room {
  signed char tiny = 0;
  short small = 0;
  int plain = 0;
  long wide = 0;
  long long wider = 0;
  std::intmax_t most = 0;
  std::size_t size = 0;
  std::ptrdiff_t difference = 0;
  unsigned positive = 0;
  float single = 0;
  double real = 0;
  long double precise = 0;
  void* pointer = nullptr;
  char text[64] = {};
  char more[64] = {};
  wchar_t letters[64] = {};

  [[nodiscard]] std::string told() const {
    std::ostringstream out;
    out.precision(20);
    out << int{tiny} << ' ' << small << ' ' << plain << ' ' << wide << ' ' << wider << ' ' << most << ' '
        << size << ' ' << difference << ' ' << positive << ' ' << single << ' ' << real << ' ' << precise
        << ' ' << pointer << ' ' << shown(text, sizeof text) << shown(more, sizeof more)
        << shown(letters, sizeof letters);
    return out.str();
  }
};

template <typename Api>
int scan_numbers(Api& api, Dice& dice, Room& room) {
  switch (dice.below(6)) {
    case 0:
      return api.fscanf("%d %n%i", &room.plain, &room.small, &room.wide);
    case 1:
      return api.fscanf("%hhd%hd%ld%lld%n", &room.tiny, &room.small, &room.wide, &room.wider, &room.plain);
    case 2:
      return api.fscanf("%jd,%zu %td %u", &room.most, &room.size, &room.difference, &room.positive);
    case 3:
      return api.fscanf("%f %lf%Lf", &room.single, &room.real, &room.precise);
    case 4:
      return api.fscanf("%*d %x%o%n", &room.positive, &room.size, &room.plain);
    default:
      return api.fscanf(" %3d%2d%hhn%p", &room.plain, &room.wide, &room.tiny, &room.pointer);
  }
}

/// Bytes that are no characters end the conversion, and make what it was to store indeterminate.
template <typename Api>
int scan_wide(Api& api, Room& room) {
  const int items = api.fscanf("%20ls%3lc", room.letters, room.letters + 40);
  if (items < 1) std::fill_n(room.letters, 40, L'\0');
  if (items < 2) std::fill_n(room.letters + 40, 3, L'\0');
  return items;
}

template <typename Api>
int scan_texts(Api& api, Dice& dice, Room& room) {
  switch (dice.below(6)) {
    case 0:
      return api.fscanf("%60s %20[a-z0-9 ]", room.text, room.more);
    case 1:
      return api.fscanf("%5c%n%*c%3c", room.text, &room.plain, room.more);
    case 2:
      return api.fscanf("%60[^\n]%n", room.text, &room.wide);
    case 3:
      return api.fscanf("%*[^\n]%*1[\n]%ln", &room.wide);
    case 4:
      return scan_wide(api, room);
    default:
      return api.fscanf("4%%%60[]0-9]%d", room.text, &room.plain);
  }
}

template <typename Api>
std::string read_blocks(Api& api, Dice& dice) {
  const auto size = static_cast<std::size_t>(dice.below(9));
  const auto count = static_cast<std::size_t>(random_length(dice));
  std::vector<char> data(size * count + 1, '#');
  const std::size_t got = api.fread(data.data(), size, count);
  return told(static_cast<long>(got), got < count) + " " + shown(data.data(), data.size());
}

template <typename Api>
std::string read_line(Api& api, Dice& dice) {
  std::vector<char> text(static_cast<std::size_t>(random_length(dice)) + 2, '#');
  errno = 0;
  const bool got = api.fgets(text.data(), static_cast<int>(text.size()) - 1) != nullptr;
  // After an error the array is indeterminate.
  return told(got ? 1 : 0, !got) + " " + (got ? shown(text.data(), text.size()) : "");
}

template <typename Api>
std::string read_something(Api& api, Dice& dice, Course& course) {
  int result = 0;
  Room room;
  switch (dice.below(7)) {
    case 0:
      result = api.fgetc();
      break;
    case 1:
      result = api.getc();
      break;
    case 2:
      return read_line(api, dice);
    case 3:
      return read_blocks(api, dice);
    case 4:
      result = scan_numbers(api, dice, room);
      return told(result, result == EOF) + " " + room.told();
    case 5:
      result = scan_texts(api, dice, room);
      return told(result, result == EOF) + " " + room.told();
    default:
      if (course.pushed_back || !course.reads) return "";
      course.pushed_back = true;
      result = api.ungetc('0' + dice.below(10));
  }
  return told(result, result == EOF);
}

template <typename Api>
std::string move(Api& api, Dice& dice, Course& course) {
  const long offset = dice.below(400) - 100;
  const int drawn = dice.below(3);
  const int whence = course.pushed_back && drawn == 1 ? SEEK_SET : drawn;
  const int kind = dice.below(6);
  if (kind == 2 && !course.has_position) return "";
  int result = 0;
  course.last = Course::Last::neither;
  course.pushed_back = false;
  switch (kind) {
    case 0:
      api.rewind();
      return "";
    case 1:
      api.fseek_nr(dice.below(50), SEEK_SET);
      return "";
    case 2:
      result = api.fsetpos(&course.position);
      break;
    default:
      result = api.fseek(offset, whence);
  }
  return told(result, result != 0);
}

template <typename Api>
std::string look(Api& api, Dice& dice, Course& course) {
  switch (dice.below(5)) {
    case 0:
      return told(api.feof() != 0 ? 1 : 0, false);
    case 1:
      return told(api.ferror() != 0 ? 1 : 0, false);
    case 2:
      api.clearerr();
      return "";
    case 3: {
      if (course.pushed_back) return "";  // unspecified for text, and before the beginning
      const int result = api.fgetpos(&course.position);
      course.has_position = result == 0;
      return told(result, result != 0);
    }
    default: {
      if (course.pushed_back) return "";
      const long position = api.ftell();
      return told(position, position < 0);
    }
  }
}

/// Between reading and writing a file must be positioned (ISO C99 7.19.5.3).
template <typename Api>
std::string turn(Api& api, Course& course, Course::Last next) {
  const bool needed = course.last != Course::Last::neither && course.last != next;
  course.last = next;
  if (!needed) return "";
  // If a character was pushed back at the beginning, the position is indeterminate (ISO C99 7.19.7.11).
  const int result = api.fseek(0, course.pushed_back ? SEEK_SET : SEEK_CUR);
  course.pushed_back = false;
  return "turned " + told(result, result != 0) + " ";
}

template <typename Api>
std::string step(Api& api, Dice& dice, Course& course) {
  errno = 0;
  const int kind = dice.below(20);
  if (kind < 6) {
    const std::string turned = turn(api, course, Course::Last::wrote);
    return turned + "write " + write_with_result(api, dice);
  }
  if (kind < 9 && course.writes) {
    const std::string turned = turn(api, course, Course::Last::wrote);
    write_without_result(api, dice);
    return turned + "write without result";
  }
  if (kind < 14) {
    const std::string turned = turn(api, course, Course::Last::read);
    return turned + "read " + read_something(api, dice, course);
  }
  if (kind < 16) return "move " + move(api, dice, course);
  if (kind < 19) return "look " + look(api, dice, course);
  if (!course.writes || course.last == Course::Last::read) return "";
  if (dice.once_in(2)) {
    api.flush_nr();
    return "flush without result";
  }
  return "flush " + told(api.flush(), false);
}

constexpr const char* modes[] = {"r",  "w",   "a",   "r+",  "w+",  "a+",  "rb", "wb",
                                 "ab", "r+b", "rb+", "w+b", "wb+", "a+b", "ab+"};

Course course_of(const std::string& mode) {
  Course course;
  const bool updates = mode.find('+') != std::string::npos;
  course.reads = updates || mode[0] == 'r';
  course.writes = updates || mode[0] != 'r';
  return course;
}

template <typename Api>
std::string begin(Api& api, Dice& dice) {
  switch (dice.below(8)) {
    case 0:
      return "setvbuf " + told(api.setvbuf(_IONBF, 0), false);
    case 1:
      return "setvbuf " + told(api.setvbuf(_IOLBF, 512), false);
    case 2:
      return "setvbuf " + told(api.setvbuf(_IOFBF, 100), false);
    case 3:
      api.setbuf();
      return "setbuf";
    default:
      return "";
  }
}

/// One of the two sides of a comparison.
template <typename Api>
struct Side {
  Api api;
  Course course;
  std::string path;
};

/// The calls of a sequence so far, for the text of a failure.
std::string history;

/// Makes both sides do the same with the same draws. Returns false at the first difference.
template <typename Action>
bool both(Side<LibcApi>& libc, Side<OurApi>& ours, Dice& dice, const std::string& where, Action action,
          bool tells = true) {
  Dice copy = dice;
  const std::string expected = action(libc, copy);
  const std::string got = action(ours, dice);
  history += expected.substr(0, 60) + "; ";
  if (expected == got || !tells) return expected == got;
  return fail(__FILE__, __LINE__,
              where + ": the C library \"" + expected + "\", we \"" + got + "\"\n  after: " + history);
}

bool play(const std::string& directory, std::uint32_t seed, const std::string& letters) {
  Dice dice(seed);
  history.clear();
  Side<LibcApi> libc;
  Side<OurApi> ours;
  libc.path = directory + "/twin-" + std::to_string(rank());
  ours.path = directory + "/ours";
  const std::string old = random_text(dice, random_length(dice));
  write_file(libc.path, old);
  if (rank() == 0) write_file(ours.path, old);
  std::string mode = modes[dice.below(static_cast<int>(std::size(modes)))];
  libc.api.open(libc.path.c_str(), mode.c_str());
  ours.api.open(ours.path.c_str(), (mode + letters).c_str());
  if (!CHECK(libc.api.file != nullptr && ours.api.file != nullptr)) return false;
  libc.course = ours.course = course_of(mode);
  const int steps = 4 + dice.below(50);
  bool good = both(libc, ours, dice, "seed " + std::to_string(seed) + " mode " + mode,
                   [](auto& side, Dice& draws) { return begin(side.api, draws); });
  for (int i = 0; i < steps; ++i) {
    const std::string where = "seed " + std::to_string(seed) + " mode " + mode + " step " + std::to_string(i);
    if (dice.once_in(60)) {
      mode = modes[dice.below(static_cast<int>(std::size(modes)))];
      const bool same = dice.once_in(2);
      libc.api.reopen(same ? nullptr : libc.path.c_str(), mode.c_str());
      ours.api.reopen(same ? nullptr : ours.path.c_str(), (mode + letters).c_str());
      if (!CHECK(libc.api.file != nullptr && ours.api.file != nullptr)) return false;
      libc.course = ours.course = course_of(mode);
    }
    const auto one = [](auto& side, Dice& draws) { return step(side.api, draws, side.course); };
    // All ranks make the same calls whatever one of them has found. The first difference is printed.
    good = both(libc, ours, dice, where, one, good) && good;
  }
  CHECK_EQ(libc.api.close(), ours.api.close());
  MPI_Barrier(state().comm);
  return CHECK(contents(libc.path) == contents(ours.path)) && good;
}

void play_many(const std::string& name, int sequences, const std::string& letters) {
  const std::string directory = fresh_directory(name);
  {
    const Session session;
    for (int i = 0; i < sequences; ++i) {
      const bool good = play(directory, static_cast<std::uint32_t>(i * 7919 + 1), letters);
      if (any_rank(!good)) break;
    }
  }
  remove_directory(directory);
}

}  // namespace

MPI_TEST(model, every_call_does_what_the_c_library_does) { play_many("model", 300, ""); }

MPI_TEST(model, also_in_the_asynchronous_mode) { play_many("model-async", 100, "s"); }

MPI_TEST_MAIN
