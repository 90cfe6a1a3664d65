// Golden files: StableHLO text, a line "// ----", the text expected. TT_UPDATE=1 rewrites the
// latter.
#ifndef TT_TESTS_GOLDEN_H_
#define TT_TESTS_GOLDEN_H_

#include <dirent.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "ir/graph.h"
#include "test.h"

#define GOLDEN_MARK "// ----\n"

static char *golden_read(const char *path, size_t *out_size) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *text = calloc(1, 1 << 20);
  *out_size = fread(text, 1, (1 << 20) - 1, f);
  fclose(f);
  return text;
}

__attribute__((unused)) static void golden_file(const char *path,
                                                tt_status_t (*pass)(tt_graph_t *, const char *)) {
  size_t size, printed_size;
  char *text = golden_read(path, &size), *printed;
  tt_graph_t *g;
  EXPECT(text != NULL);
  if (!text) return;
  char *mark = strstr(text, GOLDEN_MARK);
  size_t input = mark ? (size_t)(mark - text) : size;
  tt_status_t s = tt_graph_parse(text, input, &g);
  if (!s) s = tt_graph_verify(g);
  if (!s) s = pass(g, text);
  if (!s) s = tt_graph_verify(g);
  if (!s) s = tt_graph_print(g, &printed, &printed_size);
  if (s) {
    printf("%s: %s\n", path, tt_status_message(s));
    tt_test_failures++;
    tt_status_release(s);
    free(text);
    return;
  }
  if (getenv("TT_UPDATE")) {
    FILE *f = fopen(path, "wb");
    fprintf(f, "%.*s" GOLDEN_MARK "%s", (int)input, text, printed);
    fclose(f);
  } else if (!mark || strcmp(mark + strlen(GOLDEN_MARK), printed) != 0) {
    printf("%s: got\n%s", path, printed);
    tt_test_failures++;
  }
  tt_free(printed);
  tt_graph_destroy(g);
  free(text);
}

// Every *.mlir of tests/golden/<folder>, found beside the test's own source.
__attribute__((unused)) static void golden_folder(const char *source, const char *folder,
                                                  tt_status_t (*pass)(tt_graph_t *, const char *)) {
  char root[1024], path[2048];
  snprintf(root, sizeof root, "%s", source);
  char *slash = strrchr(root, '/');
  snprintf(slash ? slash : root, 64, "/../golden/%s", folder);
  DIR *dir = opendir(root);
  int files = 0;
  EXPECT(dir != NULL);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    size_t length = strlen(e->d_name);
    if (length < 5 || strcmp(e->d_name + length - 5, ".mlir") != 0) continue;
    snprintf(path, sizeof path, "%s/%s", root, e->d_name);
    golden_file(path, pass);
    files++;
  }
  if (dir) closedir(dir);
  EXPECT(files > 0);
  EXPECT_INT(tt_alloc_live(), 0);
}

#endif  // TT_TESTS_GOLDEN_H_
