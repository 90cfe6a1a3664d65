// The plugin through its table: what its compile options may say.
#include <dlfcn.h>

#include "pjrt/pjrt_abi.h"
#include "test.h"

static const tt_pjrt_api_t *load(void) {
  void *library = dlopen(TT_SOFTTPU_PATH, RTLD_NOW | RTLD_LOCAL);
  if (!library) return NULL;
  const tt_pjrt_api_t *(*entry)(void);
  *(void **)&entry = dlsym(library, "GetPjrtApi");
  return entry ? entry() : NULL;
}

// 2^31 + 1 replicas of 2 partitions make 2 devices in 32 bits, as many as the assignment names: the
// count must not be taken at that.
TEST(device_counts_do_not_wrap) {
  static char code[] =
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }";
  static const unsigned char options[] = {0x1a, 16,                            // build options
                                          0x20, 0x81, 0x80, 0x80, 0x80, 0x08,  // replicas
                                          0x28, 2,                             // partitions
                                          0x4a, 6,    0x1a, 4,    0x08, 0,
                                          0x08, 1};  // device ids
  const tt_pjrt_api_t *api = load();
  EXPECT(api != NULL);
  if (!api) return;
  TT_PJRT_ARGS(tt_pjrt_client_create_args_t, create, .client = NULL);
  EXPECT(!api->Client_Create(&create));
  TT_PJRT_ARGS(tt_pjrt_program_t, program, .code = code, .code_size = sizeof code - 1,
               .format = "mlir", .format_size = 4);
  TT_PJRT_ARGS(tt_pjrt_client_compile_args_t, compile, .client = create.client, .program = &program,
               .options = (const char *)options, .options_size = sizeof options);
  tt_pjrt_error_t *error = api->Client_Compile(&compile);
  EXPECT(error != NULL);
  if (error) {
    TT_PJRT_ARGS(tt_pjrt_text_args_t, message, .self = error);
    api->Error_Message(&message);
    EXPECT(strstr(message.text, "2147483649 replicas of 2 partitions") != NULL);
    TT_PJRT_ARGS(tt_pjrt_ref_args_t, destroy, .self = error);
    api->Error_Destroy(&destroy);
  }
  TT_PJRT_ARGS(tt_pjrt_ref_args_t, end, .self = create.client);
  EXPECT(!api->Client_Destroy(&end));
}

TEST_MAIN(device_counts_do_not_wrap)
