// The functions of the table that this plugin does not serve: each says so by its name.
#include "softtpu/plugin/plugin.h"

#define UNSERVED(name, args)                                                         \
  tt_pjrt_error_t *tt__soft_##name(args *a) {                                        \
    (void)a;                                                                         \
    return tt__soft_error(                                                           \
        TT_ERROR(UNIMPLEMENTED, "the software TPU does not implement PJRT_" #name)); \
  }

UNSERVED(CopyToDeviceStream_Destroy, tt_pjrt_head_args_t)
UNSERVED(CopyToDeviceStream_AddChunk, tt_pjrt_head_args_t)
UNSERVED(CopyToDeviceStream_TotalBytes, tt_pjrt_head_args_t)
UNSERVED(CopyToDeviceStream_GranuleSize, tt_pjrt_head_args_t)
UNSERVED(CopyToDeviceStream_CurrentBytes, tt_pjrt_head_args_t)
UNSERVED(TopologyDescription_Deserialize, tt_pjrt_head_args_t)
UNSERVED(AsyncHostToDeviceTransferManager_Destroy, tt_pjrt_head_args_t)
UNSERVED(AsyncHostToDeviceTransferManager_TransferData, tt_pjrt_head_args_t)
UNSERVED(AsyncHostToDeviceTransferManager_TransferLiteral, tt_pjrt_head_args_t)
UNSERVED(AsyncHostToDeviceTransferManager_RetrieveBuffer, tt_pjrt_head_args_t)
UNSERVED(AsyncHostToDeviceTransferManager_Device, tt_pjrt_head_args_t)
UNSERVED(AsyncHostToDeviceTransferManager_BufferCount, tt_pjrt_head_args_t)
UNSERVED(AsyncHostToDeviceTransferManager_BufferSize, tt_pjrt_head_args_t)
UNSERVED(AsyncHostToDeviceTransferManager_SetBufferError, tt_pjrt_head_args_t)
UNSERVED(AsyncHostToDeviceTransferManager_AddMetadata, tt_pjrt_head_args_t)
UNSERVED(Client_CreateBuffersForAsyncHostToDevice, tt_pjrt_head_args_t)
UNSERVED(Client_DmaMap, tt_pjrt_head_args_t)
UNSERVED(Client_DmaUnmap, tt_pjrt_head_args_t)
UNSERVED(Client_UpdateGlobalProcessInfo, tt_pjrt_head_args_t)
UNSERVED(Client_CreateAliasBuffer, tt_pjrt_head_args_t)
UNSERVED(Client_FulfillAliasBuffer, tt_pjrt_head_args_t)
UNSERVED(Client_CreateErrorBuffer, tt_pjrt_head_args_t)
UNSERVED(Buffer_CopyRawToHostFuture, tt_pjrt_head_args_t)
UNSERVED(Buffer_DonateWithControlDependency, tt_pjrt_head_args_t)
UNSERVED(Device_PoisonExecution, tt_pjrt_head_args_t)
UNSERVED(Device_CreateAsyncTrackingEvent, tt_pjrt_head_args_t)
UNSERVED(AsyncTrackingEvent_Destroy, tt_pjrt_head_args_t)
UNSERVED(TopologyDescription_MakeCanonicalShapeForMemorySpace, tt_pjrt_head_args_t)

// No error carries a payload.
tt_pjrt_error_t *tt__soft_Error_ForEachPayload(tt_pjrt_head_args_t *a) {
  (void)a;
  return NULL;
}
