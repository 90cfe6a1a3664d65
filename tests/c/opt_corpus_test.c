// The fuzz target over its corpus, and over every truncation and a few mutations of each file.
#include "../fuzz/parse_fuzz.c"
#include "golden.h"

static void replay(const char *path) {
  size_t size;
  char *text = golden_read(path, &size);
  EXPECT(text != NULL);
  if (!text) return;
  LLVMFuzzerTestOneInput((const uint8_t *)text, size);
  for (size_t cut = 0; cut < size; cut += size > 4000 ? 97 : 13) {
    LLVMFuzzerTestOneInput((const uint8_t *)text, cut);
  }
  static const char replacements[] = "0-\"<>{}[](),:=%@#x \n9";
  for (size_t i = 0; i < 400; i++) {
    size_t at = (i * 2654435761u) % size;
    char old = text[at];
    text[at] = replacements[i % (sizeof replacements - 1)];
    LLVMFuzzerTestOneInput((const uint8_t *)text, size);
    text[at] = old;
  }
  free(text);
}

TEST(corpus_never_crashes) {
  char root[1024], path[2048];
  snprintf(root, sizeof root, "%s", __FILE__);
  char *slash = strrchr(root, '/');
  snprintf(slash ? slash : root, 64, "/../fuzz/parse_corpus");
  DIR *dir = opendir(root);
  int files = 0;
  EXPECT(dir != NULL);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", root, e->d_name);
    replay(path);
    files++;
  }
  if (dir) closedir(dir);
  EXPECT(files > 5);
}

TEST(nesting_is_limited) {
  size_t n = 100000;
  char *text = malloc(n * 40);
  size_t at = (size_t)sprintf(text, "func.func @main(%%p: tensor<i1>) -> tensor<i1> {\n");
  for (size_t i = 0; i < 2000; i++)
    at += (size_t)sprintf(text + at, "%%a = \"stablehlo.if\"(%%p) ({");
  LLVMFuzzerTestOneInput((const uint8_t *)text, at);
  memset(text, '[', n);
  LLVMFuzzerTestOneInput((const uint8_t *)text, n);
  // A function that calls itself, and calls that double at each step
  const char *loop = "func.func @main() { call @main() : () -> () \n return }";
  LLVMFuzzerTestOneInput((const uint8_t *)loop, strlen(loop));
  at = (size_t)sprintf(text, "func.func @main() { call @f0() : () -> () \n return }\n");
  for (int i = 0; i < 60; i++) {
    at += (size_t)sprintf(text + at,
                          "func.func private @f%d() {\n call @f%d() : () -> ()\n"
                          " call @f%d() : () -> ()\n return }\n",
                          i, i + 1, i + 1);
  }
  at += (size_t)sprintf(text + at, "func.func private @f60() { return }");
  LLVMFuzzerTestOneInput((const uint8_t *)text, at);
  free(text);
}

TEST_MAIN(corpus_never_crashes, nesting_is_limited)
