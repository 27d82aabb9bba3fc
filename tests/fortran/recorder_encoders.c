// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The recorder's functions for encoders. tr_encoder_register calls the encoder's functions at once, for one
// record of each element type with the values 1, 2, 3, ..., and records what they append, or their failure,
// in the line of the call.
#include <string.h>

#include "recorder.h"

struct tr_encoded {
  int64_t appended;
};

int tr_encoded_append(tr_encoded* out, const void* bytes, int64_t count) {
  out->appended += count;
  for (int64_t i = 0; i < count; ++i) say("%s%02x", i ? "" : " ", ((const unsigned char*)bytes)[i]);
  return 0;
}

int tr_encoded_fail(tr_encoded* out, int64_t index, const char* text) {
  (void)out;
  say(" failed[%s] at %lld", text, (long long)index);
  return 1;
}

const char* tr_record_key(const tr_record* record, const char* name) {
  for (const char* const* key = record->keys; *key; key += 2)
    if (strcmp(key[0], name) == 0) return key[1];
  return NULL;
}

int tr_encoder_register(const char* name, const tr_encoder* functions, void* user) {
  static const int64_t shape[2] = {2, 3};
  static const int32_t i4[6] = {1, 2, 3, 4, 5, 6};
  static const int64_t i8[6] = {1, 2, 3, 4, 5, 6};
  static const float f4[6] = {1, 2, 3, 4, 5, 6};
  static const double f8[6] = {1, 2, 3, 4, 5, 6}, levels[2] = {1000, 850};
  static const char* const keys[] = {"quality", "3", NULL};
  static const struct {
    int type;
    const void* values;
  } kinds[] = {{TR_I32, i4}, {TR_I64, i8}, {TR_F32, f4}, {TR_F64, f8}};
  begin("tr_encoder_register");
  if (functions->size != sizeof *functions) say(" of %zu bytes", functions->size);
  say(" [%s]", name);
  tr_record record = {.stream = "out/{lead}.own",
                      .field = "temperature",
                      .ndims = 2,
                      .shape = shape,
                      .count = 6,
                      .level_type = "isobaricInhPa",
                      .level = 850,
                      .level_bottom = 800,
                      .levels = 2,
                      .level_values = levels,
                      .level_number = 1,
                      .field_number = 4,
                      .statistic = "maximum",
                      .lead = 7200,
                      .interval_start = 3600,
                      .base_time = "2026-03-01T00:00:00Z",
                      .calendar = "noleap",
                      .member = 7,
                      .bits = 12,
                      .accuracy = 0.5,
                      .relative_accuracy = 0.25,
                      .missing = -9,
                      .has_missing = 1,
                      .keys = keys};
  for (int i = 0; i < 4; ++i) {
    tr_encoded out = {0};
    record.type = kinds[i].type;
    record.values = kinds[i].values;
    say(" %d:", record.type);
    const int code = functions->encode(&record, &out, NULL, user);
    say(" =%d,%lld", code, (long long)out.appended);
  }
  record.values = NULL;
  if (functions->bound) say(" bound=%lld", (long long)functions->bound(&record, NULL, user));
  if (functions->head) {
    const tr_record* const fields[2] = {&record, &record};
    tr_encoded out = {0};
    say(" head:");
    say(" =%d", functions->head(fields, 2, &out, user));
  }
  return verdict("tr_encoder_register");
}
