/* Runs the SQL script on standard input in one in-memory database and prints every row. Nothing
 * but malloc differs between two builds of this program, so their outputs must be equal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../report.h"
#include "sqlite3.h"

/* SQLite is built with SQLITE_OS_OTHER: a database in memory needs a VFS only by name. */
static int open_nothing(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags,
                        int* out_flags) {
  (void)vfs, (void)name, (void)flags, (void)out_flags;
  file->pMethods = NULL;
  return SQLITE_CANTOPEN;
}

static int delete_nothing(sqlite3_vfs* vfs, const char* name, int sync) {
  (void)vfs, (void)name, (void)sync;
  return SQLITE_IOERR_DELETE_NOENT;
}

static int access_nothing(sqlite3_vfs* vfs, const char* name, int flags, int* exists) {
  (void)vfs, (void)name, (void)flags;
  *exists = 0;
  return SQLITE_OK;
}

static int same_name(sqlite3_vfs* vfs, const char* name, int size, char* out) {
  (void)vfs;
  snprintf(out, (size_t)size, "%s", name);
  return SQLITE_OK;
}

/* Fixed numbers: the output must not depend on the run. */
static int fixed_randomness(sqlite3_vfs* vfs, int size, char* out) {
  unsigned state = 12345;
  (void)vfs;
  for (int i = 0; i < size; i++) {
    state = state * 1103515245u + 12345u;
    out[i] = (char)(state >> 16);
  }
  return size;
}

static int no_sleep(sqlite3_vfs* vfs, int microseconds) {
  (void)vfs;
  return microseconds;
}

static int fixed_time(sqlite3_vfs* vfs, double* julian_day) {
  (void)vfs;
  *julian_day = 2460000.5;
  return SQLITE_OK;
}

int sqlite3_os_init(void) {
  static sqlite3_vfs vfs = {.iVersion = 1,
                            .szOsFile = sizeof(sqlite3_file),
                            .mxPathname = 256,
                            .zName = "memory",
                            .xOpen = open_nothing,
                            .xDelete = delete_nothing,
                            .xAccess = access_nothing,
                            .xFullPathname = same_name,
                            .xRandomness = fixed_randomness,
                            .xSleep = no_sleep,
                            .xCurrentTime = fixed_time};
  return sqlite3_vfs_register(&vfs, 1);
}

int sqlite3_os_end(void) { return SQLITE_OK; }

static char* read_all(FILE* file) {
  size_t size = 0;
  size_t capacity = 256;
  char* text = malloc(capacity);
  while (text) {
    size += fread(text + size, 1, capacity - size - 1, file);
    if (size < capacity - 1) break;
    capacity *= 2;
    text = realloc(text, capacity);
  }
  if (text) text[size] = '\0';
  return text;
}

static int fail(sqlite3* db, const char* what) {
  printf("error: %s: %s\n", what, db ? sqlite3_errmsg(db) : "out of memory");
  return 1;
}

int main(void) {
  sqlite3* db = NULL;
  long rows = 0;
  report_begin();
  char* script = read_all(stdin);
  if (!script) return fail(NULL, "reading the script");
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) return fail(db, "open");
  for (const char* rest = script; *rest;) {
    sqlite3_stmt* statement = NULL;
    int code;
    if (sqlite3_prepare_v2(db, rest, -1, &statement, &rest) != SQLITE_OK) {
      return fail(db, "prepare");
    }
    if (!statement) continue; /* a comment, or white space */
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      int columns = sqlite3_column_count(statement);
      for (int i = 0; i < columns; i++) {
        const char* value = (const char*)sqlite3_column_text(statement, i);
        printf("%s%s", i ? "|" : "", value ? value : "NULL");
      }
      printf("\n");
      rows++;
    }
    report_sample();
    /* A constraint that fires is part of the script; its text is part of the output. */
    if (code == SQLITE_CONSTRAINT) {
      printf("refused: %s\n", sqlite3_errmsg(db));
    } else if (code != SQLITE_DONE) {
      return fail(db, "step");
    }
    sqlite3_finalize(statement);
  }
  if (sqlite3_close(db) != SQLITE_OK) return fail(db, "close");
  free(script);
  printf("%ld rows, SQLite %s\n", rows, sqlite3_libversion());
  report_end();
  return 0;
}
