/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* How tailrace/stdio.h finds out, for each place in the program that makes a call, whether the program uses
 * the call's result. A call whose result nobody uses becomes the call without result (files.h): for writes no
 * message and no waiting.
 *
 * The compiler knows which results are used. Each call is an ordinary function call, which it neither moves
 * nor drops. Behind it the value passes through an assembly statement without side effects, which the
 * compiler drops if, and only if, nobody uses the value on any path. The statement emits no instruction, but
 * a line in the section tailrace_used of the program: the address of the call's place. At run time the call
 * looks its place up there. All ranks run the same program and so decide alike, and the call itself stays
 * where it is. One place has one answer: a result that is used in one copy of an inlined function, or in one
 * branch, counts as used.
 *
 * A line with 0 shows that the linker has kept the section. Without it (a linker that drops what nobody
 * refers to), without optimization and on other processors than x86-64, every result counts as used.
 *
 * Included by tailrace/stdio.h alone. These functions and macros are for its macros, not for programs. */
#ifndef TAILRACE_CALL_SITES_H
#define TAILRACE_CALL_SITES_H

#include <stdint.h>
#include <tailrace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The place of a call. `verdict` belongs to the library. */
typedef struct tr_call_site {
  const int64_t* first_used;
  const int64_t* behind_used;
  int verdict;
} tr_call_site;

/* Each function makes the call of files.h that has its name without _at. If the program uses the result of
 * this place nowhere, the function makes the call with _nr, and returns 0 or NULL. */
TR_API int tr_fprintf_at(tr_call_site* site, tr_file* file, const char* format, ...) TR_FORMAT(printf, 3, 4);
TR_API int tr_vfprintf_at(tr_call_site* site, tr_file* file, const char* format, va_list arguments)
    TR_FORMAT(printf, 3, 0);
TR_API int tr_printf_at(tr_call_site* site, const char* format, ...) TR_FORMAT(printf, 2, 3);
TR_API int tr_vprintf_at(tr_call_site* site, const char* format, va_list arguments) TR_FORMAT(printf, 2, 0);
TR_API int tr_fscanf_at(tr_call_site* site, tr_file* file, const char* format, ...) TR_FORMAT(scanf, 3, 4);
TR_API int tr_vfscanf_at(tr_call_site* site, tr_file* file, const char* format, va_list arguments)
    TR_FORMAT(scanf, 3, 0);
TR_API int tr_scanf_at(tr_call_site* site, const char* format, ...) TR_FORMAT(scanf, 2, 3);
TR_API int tr_vscanf_at(tr_call_site* site, const char* format, va_list arguments) TR_FORMAT(scanf, 2, 0);
TR_API char* tr_fgets_at(tr_call_site* site, char* text, int size, tr_file* file);
TR_API int tr_ungetc_at(tr_call_site* site, int character, tr_file* file);
TR_API int tr_fputc_at(tr_call_site* site, int character, tr_file* file);
TR_API int tr_putc_at(tr_call_site* site, int character, tr_file* file);
TR_API int tr_putchar_at(tr_call_site* site, int character);
TR_API int tr_fputs_at(tr_call_site* site, const char* text, tr_file* file);
TR_API int tr_puts_at(tr_call_site* site, const char* text);
TR_API size_t tr_fread_at(tr_call_site* site, void* data, size_t size, size_t count, tr_file* file);
TR_API size_t tr_fwrite_at(tr_call_site* site, const void* data, size_t size, size_t count, tr_file* file);
TR_API int tr_fseek_at(tr_call_site* site, tr_file* file, long offset, int whence);

#ifdef __cplusplus
}
#endif

#ifndef TR_CALL_SITES
#if defined(__GNUC__) && defined(__x86_64__) && defined(__ELF__) && defined(__OPTIMIZE__) && \
    !defined(__INTEL_COMPILER) && !defined(__NVCOMPILER) && !defined(__code_model_large__)
#define TR_CALL_SITES 1
#else
#define TR_CALL_SITES 0
#endif
#endif

#if TR_CALL_SITES
/* The linker defines these two: where the section of this program or shared library begins and ends. */
#ifdef __cplusplus
extern "C" {
#endif
extern const int64_t __start_tailrace_used[] __attribute__((weak, visibility("hidden")));
extern const int64_t __stop_tailrace_used[] __attribute__((weak, visibility("hidden")));
#ifdef __cplusplus
}
#endif
__asm__(".pushsection tailrace_used,\"a\",%progbits\n\t.balign 8\n\t.quad 0\n\t.popsection");

/* The value of a call is one of these, because compilers warn of other values that nobody uses, and because
 * std::fprintf becomes std::tr_value_int. */
#define TR_VALUE static __inline__ __attribute__((always_inline, unused))
TR_VALUE int tr_value_int(int value) { return value; }
TR_VALUE size_t tr_value_size(size_t value) { return value; }
TR_VALUE char* tr_value_text(char* value) { return value; }
#undef TR_VALUE

#ifdef __cplusplus
namespace std {
using ::tr_value_int;
using ::tr_value_size;
using ::tr_value_text;
}  // namespace std
/* In C++ a place is a member of a class, since a variable of an inline function would be visible outside of a
 * shared library, and its distance from the section unknown. */
template <typename Place>
struct __attribute__((visibility("hidden"))) tr_place {
  static tr_call_site site;
};
template <typename Place>
tr_call_site tr_place<Place>::site = {__start_tailrace_used, __stop_tailrace_used, 0};
#define TR_PLACE enum tr_here {};
#define TR_SITE (&tr_place<tr_here>::site)
#else
#define TR_PLACE static tr_call_site tr_here = {__start_tailrace_used, __stop_tailrace_used, 0};
#define TR_SITE (&tr_here)
#endif

#define TR_CALL(type, value, call, ...)                                                             \
  tr_value_##value(__extension__({                                                                  \
    TR_PLACE type tr_result = call(TR_SITE, __VA_ARGS__);                                           \
    __asm__(                                                                                        \
        "/* %0 */\n\t.pushsection tailrace_used,\"a\",%%progbits\n\t.balign 8\n\t.quad %c2 - .\n\t" \
        ".popsection"                                                                               \
        : "=r"(tr_result)                                                                           \
        : "0"(tr_result), "i"(TR_SITE));                                                            \
    tr_result;                                                                                      \
  }))

/* Function-like: the name without parentheses, as in a pointer, still means the function. */
#define tr_fprintf(...) TR_CALL(int, int, tr_fprintf_at, __VA_ARGS__)
#define tr_vfprintf(...) TR_CALL(int, int, tr_vfprintf_at, __VA_ARGS__)
#define tr_printf(...) TR_CALL(int, int, tr_printf_at, __VA_ARGS__)
#define tr_vprintf(...) TR_CALL(int, int, tr_vprintf_at, __VA_ARGS__)
#define tr_fscanf(...) TR_CALL(int, int, tr_fscanf_at, __VA_ARGS__)
#define tr_vfscanf(...) TR_CALL(int, int, tr_vfscanf_at, __VA_ARGS__)
#define tr_scanf(...) TR_CALL(int, int, tr_scanf_at, __VA_ARGS__)
#define tr_vscanf(...) TR_CALL(int, int, tr_vscanf_at, __VA_ARGS__)
#define tr_fgets(...) TR_CALL(char*, text, tr_fgets_at, __VA_ARGS__)
#define tr_ungetc(...) TR_CALL(int, int, tr_ungetc_at, __VA_ARGS__)
#define tr_fputc(...) TR_CALL(int, int, tr_fputc_at, __VA_ARGS__)
#define tr_putc(...) TR_CALL(int, int, tr_putc_at, __VA_ARGS__)
#define tr_putchar(...) TR_CALL(int, int, tr_putchar_at, __VA_ARGS__)
#define tr_fputs(...) TR_CALL(int, int, tr_fputs_at, __VA_ARGS__)
#define tr_puts(...) TR_CALL(int, int, tr_puts_at, __VA_ARGS__)
#define tr_fread(...) TR_CALL(size_t, size, tr_fread_at, __VA_ARGS__)
#define tr_fwrite(...) TR_CALL(size_t, size, tr_fwrite_at, __VA_ARGS__)
#define tr_fseek(...) TR_CALL(int, int, tr_fseek_at, __VA_ARGS__)
#endif

#endif
