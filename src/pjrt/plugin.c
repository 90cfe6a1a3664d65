#define _GNU_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

// Before this version tables and records differ from what we declare.
#define OLDEST_MINOR 54

static pthread_mutex_t load_mutex = PTHREAD_MUTEX_INITIALIZER;
static tt_plugin_t *loaded;

// --- fork ----------------------------------------------------------------------------------------
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static _Atomic bool forked;
static void mark_forked(void) { atomic_store(&forked, true); }
static void watch_fork(void) { (void)pthread_atfork(NULL, NULL, mark_forked); }

tt_status_t tt__plugin_check_fork(void) {
  if (!atomic_load_explicit(&forked, memory_order_relaxed)) return TT_OK_STATUS;
  return TT_ERROR(UNAVAILABLE,
                  "the device was used before this process was forked and cannot be used in the "
                  "child; use the 'spawn' start method");
}

// --- errors --------------------------------------------------------------------------------------
static tt_code_t code_of(int theirs) {
  static const struct {
    tt_code_t ours;
    int theirs;
  } pairs[] = {
#define CODE(ours, theirs) {TT_##ours, TT_PJRT_##theirs},
#include "pjrt/pjrt_codes.def"
#undef CODE
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (pairs[i].theirs == theirs) return pairs[i].ours;
  }
  return TT_UNKNOWN;
}

static void destroy_error(const tt_plugin_t *plugin, tt_pjrt_error_t *error) {
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, destroy, .self = error);
  plugin->api->Error_Destroy(&destroy);
}

tt_status_t tt__plugin_status(const tt_plugin_t *plugin, tt_pjrt_error_t *error) {
  if (!error) return TT_OK_STATUS;
  TT_PJRT_ARGS(tt_pjrt_text_args_t, text, .self = error);
  TT_PJRT_ARGS(tt_pjrt_int_args_t, code, .self = error);
  plugin->api->Error_Message(&text);
  tt_code_t ours = TT_UNKNOWN;
  if (plugin->ext) {
    ours = (tt_code_t)plugin->ext->error_code(error);
  } else {
    tt_pjrt_error_t *second = plugin->api->Error_GetCode(&code);
    if (second) destroy_error(plugin, second);
    if (!second) ours = code_of(code.value);
  }
  tt_status_t status =
      tt_status_make(ours, __FILE__, __LINE__, "%.*s", (int)text.size, text.text ? text.text : "");
  destroy_error(plugin, error);
  return status;
}

void tt__plugin_ignore(const tt_plugin_t *plugin, tt_pjrt_error_t *error) {
  if (error) destroy_error(plugin, error);
}

// --- where plugins are ---------------------------------------------------------------------------

// The folder of the library that this code is in.
static bool own_folder(char *path, size_t size) {
  Dl_info info;
  if (!dladdr((void *)(uintptr_t)&tt__plugin_load, &info) || !info.dli_fname) return false;
  char *real = realpath(info.dli_fname, NULL);
  if (!real) return false;
  char *slash = strrchr(real, '/');
  bool ok = slash && (size_t)(slash - real) < size;
  if (ok) {
    *slash = 0;
    memcpy(path, real, strlen(real) + 1);
  }
  free(real);  // realpath's, not ours
  return ok;
}

static tt_status_t soft_path(char *path, size_t size) {
  const char *env = getenv("TORCHTPU_SOFT_PATH");
  char folder[3072];
  if (env && *env) {
    snprintf(path, size, "%s", env);
  } else if (own_folder(folder, sizeof folder)) {
    snprintf(path, size, "%s/libsofttpu.so", folder);
  } else {
    return TT_ERROR(NOT_FOUND, "cannot tell where libsofttpu.so is; set TORCHTPU_SOFT_PATH");
  }
  return TT_OK_STATUS;
}

// TPU_LIBRARY_PATH, the libtpu package beside ours, or wherever the dynamic linker finds it.
static void libtpu_path(char *path, size_t size) {
  const char *env = getenv("TPU_LIBRARY_PATH");
  char folder[3072];
  if (env && *env) {
    snprintf(path, size, "%s", env);
    return;
  }
  if (own_folder(folder, sizeof folder)) {
    snprintf(path, size, "%s/../libtpu/libtpu.so", folder);
    if (access(path, R_OK) == 0) return;
  }
  snprintf(path, size, "libtpu.so");
}

static bool file_says(const char *path, const char *text) {
  char line[32] = "";
  FILE *file = fopen(path, "r");
  if (!file) return false;
  bool ok = fgets(line, sizeof line, file) != NULL;
  fclose(file);
  return ok && strncmp(line, text, strlen(text)) == 0;
}

// A PCI device of the vendor of TPUs, or the device file of older drivers.
static bool has_tpu(void) {
  if (access("/dev/accel0", F_OK) == 0) return true;
  DIR *dir = opendir("/sys/bus/pci/devices");
  if (!dir) return false;
  bool found = false;
  for (struct dirent *entry; !found && (entry = readdir(dir));) {
    char path[320];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", entry->d_name);
    found = entry->d_name[0] != '.' && file_says(path, "0x1ae0");
  }
  closedir(dir);
  return found;
}

// Without a TPU libtpu would ask a metadata server for many minutes, and refuse a second process
// that only compiles. What the user set stays.
static void prepare_libtpu(void) {
  if (!has_tpu()) {
    setenv("TPU_SKIP_MDS_QUERY", "1", 0);
    setenv("TPU_WORKER_HOSTNAMES", "localhost", 0);
    setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);
  }
  setenv("TPU_LOG_DIR", "disabled", 0);
  setenv("TPU_STDERR_LOG_LEVEL", "2", 0);
  setenv("TPU_MIN_LOG_LEVEL", "2", 0);
}

static tt_status_t find(const char *name, char *path, size_t size) {
  if (strcmp(name, "soft") == 0) return soft_path(path, size);
  if (strcmp(name, "libtpu") == 0) {
    libtpu_path(path, size);
    prepare_libtpu();
    return TT_OK_STATUS;
  }
  if (!strchr(name, '/')) {
    return TT_ERROR(NOT_FOUND, "no plugin \"%s\": it may be soft, libtpu or the path of a plugin",
                    name);
  }
  if (strstr(name, "libtpu")) prepare_libtpu();
  snprintf(path, size, "%s", name);
  return TT_OK_STATUS;
}

// --- loading -------------------------------------------------------------------------------------
static tt_status_t open_library(const char *path, const tt_pjrt_api_t **out_api) {
  if (strchr(path, '/') && access(path, F_OK) != 0) {
    return TT_ERROR(NOT_FOUND, "the plugin %s does not exist", path);
  }
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    return TT_ERROR(NOT_FOUND, "the plugin %s cannot be loaded: %s", path, why ? why : "");
  }
  const tt_pjrt_api_t *(*get)(void);
  *(void **)&get = dlsym(handle, "GetPjrtApi");
  const tt_pjrt_api_t *api = get ? get() : NULL;
  if (!api) {
    dlclose(handle);
    return TT_ERROR(INVALID_ARGUMENT, "%s is no PJRT plugin: it has no GetPjrtApi", path);
  }
  *out_api = api;
  return TT_OK_STATUS;
}

static tt_status_t check_version(const char *path, const tt_pjrt_api_t *api) {
  if (api->version.major != 0 || api->version.minor < OLDEST_MINOR ||
      !TT_PJRT_OFFERS(api, LoadedExecutable_Execute)) {
    return TT_ERROR(INVALID_ARGUMENT,
                    "the plugin %s has PJRT version %d.%d; versions from 0.%d on are understood",
                    path, api->version.major, api->version.minor, OLDEST_MINOR);
  }
  return TT_OK_STATUS;
}

static const tt_soft_ext_t *find_ext(const tt_pjrt_api_t *api) {
  for (tt_pjrt_extension_t *e = api->extensions; e; e = e->next) {
    if (e->type != TT_PJRT_EXTENSION_SOFTTPU || e->struct_size != sizeof(tt_soft_ext_t)) continue;
    const tt_soft_ext_t *ext = (const tt_soft_ext_t *)e;
    if (ext->version == TT_SOFT_EXT_VERSION) return ext;
  }
  return NULL;
}

static tt_status_t load(const char *path, tt_plugin_t **out_plugin) {
  const tt_pjrt_api_t *api = NULL;
  TT_RETURN_IF_ERROR(open_library(path, &api));
  TT_RETURN_IF_ERROR(check_version(path, api));
  tt_plugin_t *plugin = tt_alloc_zeroed(sizeof *plugin);
  char *copy = tt_strdup(path);
  if (!plugin || !copy) {
    tt_free(plugin);
    tt_free(copy);
    return TT_ERROR(OUT_OF_MEMORY, "no memory for a plugin");
  }
  plugin->path = copy;
  plugin->api = api;
  plugin->ext = find_ext(api);
  tt_pjrt_head_args_t initialize = {.struct_size = sizeof initialize};
  tt_status_t status = TT_CALL(plugin, Plugin_Initialize, &initialize);
  if (status) {
    tt_free(plugin);
    tt_free(copy);
    return tt_status_annotate(status, "the plugin %s does not start", path);
  }
  *out_plugin = plugin;
  return TT_OK_STATUS;
}

tt_status_t tt__plugin_load(const char *name, const tt_plugin_t **out_plugin) {
  char path[4096];
  pthread_once(&fork_once, watch_fork);
  TT_RETURN_IF_ERROR(tt__plugin_check_fork());
  TT_RETURN_IF_ERROR(find(name, path, sizeof path));
  pthread_mutex_lock(&load_mutex);
  tt_plugin_t *plugin = loaded;
  while (plugin && strcmp(plugin->path, path) != 0) plugin = plugin->next;
  tt_status_t status = TT_OK_STATUS;
  if (!plugin) {
    status = load(path, &plugin);
    if (!status) {
      plugin->next = loaded;
      loaded = plugin;
    }
  }
  pthread_mutex_unlock(&load_mutex);
  if (!status) *out_plugin = plugin;
  return status;
}
