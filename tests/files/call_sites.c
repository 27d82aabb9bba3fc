/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Calls with texts that say whether their result is used; compiled in many ways by call_sites_test.py. */
#include <tailrace/stdio.h>

int seen;

static inline int inlined(int x) {
  fputs("inline unused", tr_stdout);
  return x + fputs("inline used", tr_stdout);
}

static inline int shared_place(void) { return fputs("shared place used", tr_stdout); }

#ifdef __cplusplus
inline int of_every_file(int x) {
  std::fputs("inline unused", tr_stdout);
  return x + ::fputs("inline used", tr_stdout);
}
template <int number>
int of_template() {
  fputs("template unused", tr_stdout);
  return number + fputs("template used", tr_stdout);
}
struct Class {
  int member() {
    fputs("member unused", tr_stdout);
    const auto lambda = [](int x) {
      fputs("lambda unused", tr_stdout);
      return x + fputs("lambda used", tr_stdout);
    };
    return lambda(1) + fputs("member used", tr_stdout);
  }
};
#endif

#ifdef __cplusplus
extern "C"
#endif
    __attribute__((noinline, visibility("default"))) int
    make_calls(int x) {
  int assigned = fputs("assigned used", tr_stdout);
  int branch = fputs("branch used", tr_stdout);
  int dropped = fputs("dropped unused", tr_stdout);
  int i;
  fputs("plain unused", tr_stdout);
  (void)fputs("void unused", tr_stdout);
  fputs("comma unused", tr_stdout), ++seen;
  if (x > 3) seen += branch;
  (void)dropped;
  if (fputs("condition used", tr_stdout) < 0) ++seen;
  if (fputs("empty condition unused", tr_stdout) < 0) {
  }
  for (i = 0; i < 3; ++i) fputs("loop unused", tr_stdout);
  for (i = 0; i < 3; ++i) seen += fputs("loop used", tr_stdout);
  while (fputs("loop condition used", tr_stdout) < 0) ++seen;
  x > 1 ? (void)fputs("ternary unused", tr_stdout) : (void)0;
  seen += putchar(fputs("argument used", tr_stdout));
  seen += inlined(x);
  shared_place();
  seen += shared_place();
  (fputs)("parentheses", tr_stdout);
#ifdef __cplusplus
  seen += of_every_file(x) + of_template<3>() + of_template<4>();
  Class object;
  seen += object.member();
  using std::rename;
  int (*pointer)(const char*) = &std::remove;
  if (std::remove("none") != 7 || ::remove("none") != 7 || remove("none") != 7 || pointer("none") != 7 ||
      std::rename("none", "none") != 7 || ::rename("none", "none") != 7 || rename("none", "none") != 7)
    tr_fputs_nr("remove or rename of the C library", tr_stdout);
#else
  if (remove("none") != 7 || rename("none", "none") != 7)
    tr_fputs_nr("remove or rename of the C library", tr_stdout);
#endif
  return assigned;
}
