/* The part of NVML's binary interface that the stub answers: the layouts that nvidia-ml-py declares. */
#ifndef NVMLSTUB_NVML_ABI_H
#define NVMLSTUB_NVML_ABI_H

typedef int nvmlReturn_t;
typedef struct nvml_handle *nvmlDevice_t;
typedef unsigned long long u64;
typedef unsigned int u32;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
};

typedef struct { u64 total, free, used; } nvmlMemory_t;
typedef struct { u32 version; u64 total, reserved, free, used; } nvmlMemory_v2_t;
typedef struct { u32 gpu, memory; } nvmlUtilization_t;

typedef struct { u32 pid; u64 bytes; } nvmlProcessInfo_v1_t;
typedef struct { u32 pid; u64 bytes; u32 gpu_instance, compute_instance; } nvmlProcessInfo_v2_t;

typedef struct {
    char bus_id_legacy[16];
    u32 domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} nvmlPciInfo_t;

#define VERSION_TAG(type, number) ((u32)(sizeof(type) | (number) << 24))

#endif
