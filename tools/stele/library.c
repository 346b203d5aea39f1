/* Finds and opens the compiler, a library of its own, so that no other subcommand pays for LLVM.
 * Beside the executable in a build tree, then where an installation has it, then wherever the
 * dynamic linker looks. */
#include "library.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libstele-compiler.so.0"

/* The folder of the running executable, with a slash at the end. */
static bool executable_folder(char folder[PATH_MAX]) {
  ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
  if (length <= 0) return false;
  folder[length] = 0;
  char *slash = strrchr(folder, '/');
  if (!slash) return false;
  slash[1] = 0;
  return true;
}

static void *open_beside(const char *relative, char *path, size_t size, char *reason,
                         size_t reason_size) {
  char folder[PATH_MAX];
  if (!executable_folder(folder)) return NULL;
  if ((size_t)snprintf(path, size, "%s%s/" LIBRARY, folder, relative) >= size) return NULL;
  if (access(path, R_OK) != 0) return NULL;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) snprintf(reason, reason_size, "%s", dlerror());
  return handle;
}

static void *open_anywhere(char *path, size_t size, char *reason, size_t reason_size) {
  static const char *const folders[] = {"../compiler", STELE_CLI_LIBRARY_FOLDER};
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    void *handle = open_beside(folders[i], path, size, reason, reason_size);
    if (handle || reason[0]) return handle;
  }
  snprintf(path, size, LIBRARY);
  void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!handle) snprintf(reason, reason_size, "%s", dlerror());
  return handle;
}

bool cli_compiler_open(cli_compiler *out, char *reason, size_t reason_size) {
  cli_compiler compiler = {0};
  reason[0] = 0;
  compiler.handle = open_anywhere(compiler.path, sizeof compiler.path, reason, reason_size);
  if (!compiler.handle) return false;
  /* The way POSIX shows to turn dlsym's result into a pointer to a function. */
  *(void **)&compiler.compile = dlsym(compiler.handle, "stele_compile");
  *(void **)&compiler.pass_describe = dlsym(compiler.handle, "stele_pass_describe");
  *(void **)&compiler.target_describe = dlsym(compiler.handle, "stele_target_describe");
  if (!compiler.compile || !compiler.pass_describe || !compiler.target_describe) {
    snprintf(reason, reason_size, "'%s' lacks the functions of a compiler", compiler.path);
    cli_compiler_close(&compiler);
    return false;
  }
  *out = compiler;
  return true;
}

void cli_compiler_close(cli_compiler *compiler) {
  if (compiler->handle) dlclose(compiler->handle);
  *compiler = (cli_compiler){0};
}
