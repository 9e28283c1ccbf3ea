/*
 * A test double for libnvidia-ml.so.1: the NVML calls that the agent makes, answered from a file.
 *
 * Every exported function is enter() ... leave(). enter() checks that NVML is initialised and the handle
 * good, applies the faults of the configuration (delays happen with the lock released, as a real driver call
 * blocks one thread and not the others), and returns with the lock held; leave() logs and releases it.
 *
 * NVMLSTUB_API (a driver branch number, 999 by default) leaves newer symbols out of the library, so that
 * a caller's fallbacks can be tested: dlsym() then fails as it does with an old driver.
 */
#define _GNU_SOURCE
#include "config.h"
#include "nvml_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef NVMLSTUB_API
#define NVMLSTUB_API 999
#endif

#define EXPORT __attribute__((visibility("default")))
#define NOT_AVAILABLE 0xFFFFFFFFFFFFFFFFull
#define NO_INSTANCE 0xFFFFFFFFu
#define MIB 1048576ull

struct nvml_handle {
    int index;
};

static struct nvml_handle handles[MAX_GPUS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;                /* nvmlInit calls not yet shut down */
static int fault_hits[MAX_FAULTS];
static unsigned fault_generation;

/* ------------------------------------------------------------------ call frame */

struct call {
    const char *name;
    const struct config *config;
    const struct gpu *gpu;       /* NULL for a system call */
    int index;                   /* of gpu; -1 for a system call */
};

static void nap(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    while (nanosleep(&time, &time) == -1 && errno == EINTR)
        ;
}

static nvmlReturn_t leave(struct call *call, nvmlReturn_t result)
{
    static int log_fd = -2;
    if (log_fd == -2) {
        const char *path = getenv("NVMLSTUB_LOG");
        log_fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
    if (log_fd >= 0) {
        char line[160];
        int length = snprintf(line, sizeof line, "%.3f %s %d %d\n", monotonic_seconds(), call->name,
                              call->index, result);
        if (write(log_fd, line, (size_t)length) < 0)
            log_fd = -1;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* The first fault rule that matches this call, counting "after"; NULL if none. */
static const struct fault *find_fault(const struct config *config, const char *name, int index)
{
    if (fault_generation != config->generation) {
        memset(fault_hits, 0, sizeof fault_hits);
        fault_generation = config->generation;
    }
    for (int i = 0; i < config->fault_count; i++) {
        const struct fault *fault = &config->faults[i];
        if ((fault->gpu == -1 || fault->gpu == index)
            && fnmatch(fault->pattern, name, FNM_CASEFOLD) == 0
            && fault_hits[i]++ >= fault->after)
            return fault;
    }
    return NULL;
}

/* Whether a delaying rule is still in the file: taking it out ends the delays under way. */
static bool fault_remains(const struct config *config, const struct fault *fault)
{
    for (int i = 0; i < config->fault_count; i++)
        if (config->faults[i].gpu == fault->gpu && strcmp(config->faults[i].pattern, fault->pattern) == 0)
            return config->faults[i].seconds != 0;
    return false;
}

/* Takes the lock and applies faults. Anything but NVML_SUCCESS was already passed to leave(). */
static nvmlReturn_t enter_at(struct call *call, const char *name, int index, bool needs_init)
{
    pthread_mutex_lock(&lock);
    *call = (struct call){name, config_current(), NULL, index};
    if (needs_init && users == 0)
        return leave(call, NVML_ERROR_UNINITIALIZED);
    if (index >= call->config->gpu_count)
        return leave(call, NVML_ERROR_INVALID_ARGUMENT);

    const struct fault *found = find_fault(call->config, name, index);
    if (found != NULL) {
        struct fault fault = *found;
        double until = monotonic_seconds() + fault.seconds;
        while (fault.seconds < 0 || monotonic_seconds() < until) {
            pthread_mutex_unlock(&lock);
            nap(0.02);
            pthread_mutex_lock(&lock);
            call->config = config_current();
            if (!fault_remains(call->config, &fault)) {
                fault.fails = false;   /* go on as if never hit */
                break;
            }
        }
        if (fault.fails)
            return leave(call, fault.code);
        if (index >= call->config->gpu_count)
            return leave(call, NVML_ERROR_INVALID_ARGUMENT);
    }
    if (index >= 0)
        call->gpu = &call->config->gpus[index];
    return NVML_SUCCESS;
}

static int handle_index(nvmlDevice_t device)
{
    return device >= handles && device < handles + MAX_GPUS ? (int)(device - handles) : MAX_GPUS;
}

#define ENTER_AT(name, index, needs_init)                                \
    struct call call;                                                    \
    nvmlReturn_t entered = enter_at(&call, name, index, needs_init);     \
    if (entered != NVML_SUCCESS)                                         \
        return entered

#define ENTER(device) ENTER_AT(__func__, handle_index(device), true)

/* ------------------------------------------------------------------ values */

static nvmlReturn_t get_number(const struct call *call, enum number_key key, double scale, u64 *out)
{
    double value;
    if (!number_now(&call->gpu->numbers[key], 0, &value))
        return NVML_ERROR_NOT_SUPPORTED;
    *out = (u64)(value * scale + 0.5);
    return NVML_SUCCESS;
}

static nvmlReturn_t get_u32(const struct call *call, enum number_key key, double scale, u32 *out)
{
    u64 value;
    nvmlReturn_t result = get_number(call, key, scale, &value);
    if (result == NVML_SUCCESS)
        *out = (u32)value;
    return result;
}

static nvmlReturn_t put_text(const char *text, char *out, u32 length)
{
    if (strlen(text) + 1 > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

static bool listed(const struct gpu *gpu, const struct process *process)
{
    if (gpu->when_dead == DEAD_KEEP || process->pid == 0)
        return true;
    if (kill((pid_t)process->pid, 0) == -1 && errno == ESRCH)
        return false;
    /* A zombie has freed its address space: the driver has closed its context. */
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/%u/stat", process->pid);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
            state = '?';
        fclose(file);
    }
    return state != 'Z' && state != 'X';
}

struct memory {
    u64 total, reserved, used;   /* used without reserved */
};

static nvmlReturn_t get_memory(const struct call *call, struct memory *memory)
{
    double by_processes = 0, used;
    for (int i = 0; i < call->gpu->process_count; i++) {
        const struct process *process = &call->gpu->processes[i];
        if (listed(call->gpu, process) || call->gpu->when_dead == DEAD_STUCK)
            by_processes += (double)process->bytes;
    }
    nvmlReturn_t result = get_number(call, K_MEM_TOTAL, (double)MIB, &memory->total);
    if (result == NVML_SUCCESS)
        result = get_number(call, K_MEM_RESERVED, (double)MIB, &memory->reserved);
    if (result != NVML_SUCCESS)
        return result;
    if (!number_now(&call->gpu->numbers[K_MEM_USED], by_processes / (double)MIB, &used))
        return NVML_ERROR_NOT_SUPPORTED;
    memory->used = (u64)(used * (double)MIB);
    u64 usable = memory->total > memory->reserved ? memory->total - memory->reserved : 0;
    if (memory->used > usable)
        memory->used = usable;
    return NVML_SUCCESS;
}

/* ------------------------------------------------------------------ start, stop, enumeration */

static nvmlReturn_t initialise(const char *name)
{
    ENTER_AT(name, -1, false);
    users++;
    return leave(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlInit_v2(void) { return initialise(__func__); }
EXPORT nvmlReturn_t nvmlInitWithFlags(u32 flags) { (void)flags; return initialise(__func__); }

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    ENTER_AT(__func__, -1, true);
    users--;
    return leave(&call, NVML_SUCCESS);
}

EXPORT const char *nvmlErrorString(nvmlReturn_t code)
{
    return code == 18 ? "Driver/library version mismatch" : "an NVML error";
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *out, u32 length)
{
    ENTER_AT(__func__, -1, true);
    return leave(&call, put_text(call.config->driver, out, length));
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(u32 *out)
{
    ENTER_AT(__func__, -1, true);
    *out = (u32)call.config->gpu_count;
    return leave(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(u32 index, nvmlDevice_t *out)
{
    ENTER_AT(__func__, index < MAX_GPUS ? (int)index : MAX_GPUS, true);
    *out = &handles[index];
    return leave(&call, NVML_SUCCESS);
}

#define TEXT_GETTER(function, member)                                              \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, char *out, u32 length)       \
    {                                                                              \
        ENTER(device);                                                             \
        return leave(&call, put_text(call.gpu->member, out, length));              \
    }

TEXT_GETTER(nvmlDeviceGetName, name)
TEXT_GETTER(nvmlDeviceGetUUID, uuid)

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *out)
{
    ENTER(device);
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "%.31s", call.gpu->bus_id);
    return leave(&call, NVML_SUCCESS);
}

/* ------------------------------------------------------------------ plain numbers */

#define U32_GETTER(function, key, scale)                                           \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, u32 *out)                    \
    {                                                                              \
        ENTER(device);                                                             \
        return leave(&call, get_u32(&call, key, scale, out));                      \
    }

#define U32_GETTER_OF(function, key)                                               \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, u32 which, u32 *out)         \
    {                                                                              \
        ENTER(device);                                                             \
        (void)which;                                                               \
        return leave(&call, get_u32(&call, key, 1, out));                          \
    }

#define THROTTLE_GETTER(function)                                                  \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, u64 *out)                    \
    {                                                                              \
        ENTER(device);                                                             \
        *out = call.gpu->throttle;                                                 \
        return leave(&call, NVML_SUCCESS);                                         \
    }

U32_GETTER(nvmlDeviceGetPowerUsage, K_POWER, 1000)
U32_GETTER(nvmlDeviceGetEnforcedPowerLimit, K_POWER_LIMIT, 1000)
U32_GETTER_OF(nvmlDeviceGetTemperature, K_TEMP)
U32_GETTER(nvmlDeviceGetPerformanceState, K_PSTATE, 1)

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, u32 which, u32 *out)
{
    ENTER(device);
    return leave(&call, get_u32(&call, which == 2 ? K_CLOCK_MEM : K_CLOCK_SM, 1, out));
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, u32 which, u32 *out)
{
    ENTER(device);
    return leave(&call, get_u32(&call, which == 2 ? K_CLOCK_MEM_MAX : K_CLOCK_SM_MAX, 1, out));
}

THROTTLE_GETTER(nvmlDeviceGetCurrentClocksThrottleReasons)
#if NVMLSTUB_API >= 535
THROTTLE_GETTER(nvmlDeviceGetCurrentClocksEventReasons)
#endif

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *out)
{
    ENTER(device);
    out->memory = 0;
    return leave(&call, get_u32(&call, K_UTIL, 1, &out->gpu));
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, u32 *current, u32 *pending)
{
    ENTER(device);
    nvmlReturn_t result = get_u32(&call, K_MIG_MODE, 1, current);
    *pending = *current;
    return leave(&call, result);
}

/* ------------------------------------------------------------------ health */

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, u32 *current, u32 *pending)
{
    ENTER(device);
    nvmlReturn_t result = get_u32(&call, K_ECC, 1, current);
    *pending = *current;
    return leave(&call, result);
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, u32 kind, u32 counter, u64 *out)
{
    ENTER(device);
    enum number_key now = kind == 0 ? K_CORRECTED : K_UNCORRECTED;
    enum number_key ever = kind == 0 ? K_CORRECTED_EVER : K_UNCORRECTED_EVER;
    return leave(&call, get_number(&call, counter == 0 ? now : ever, 1, out));
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, u32 *correctable, u32 *uncorrectable,
                                              u32 *pending, u32 *failed)
{
    ENTER(device);
    nvmlReturn_t result = get_u32(&call, K_ROWS, 1, correctable);
    if (result == NVML_SUCCESS)
        result = get_u32(&call, K_ROWS_PENDING, 1, pending);
    *uncorrectable = *failed = 0;
    return leave(&call, result);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, u32 link, u32 *active)
{
    ENTER(device);
    u32 links, up = 0;
    nvmlReturn_t result = get_u32(&call, K_NVLINKS, 1, &links);
    if (result == NVML_SUCCESS && link >= links)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        result = get_u32(&call, K_NVLINKS_UP, 1, &up);
    *active = link < up;
    return leave(&call, result);
}

/* The errors of the configuration are all of them on link 0, counted as replays. */
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, u32 link, u32 counter, u64 *out)
{
    ENTER(device);
    nvmlReturn_t result = get_number(&call, K_NVLINK_ERRORS, 1, out);
    if (result == NVML_SUCCESS && (link != 0 || counter != 0))
        *out = 0;
    return leave(&call, result);
}

/* The call that blocks 21 ms on a real card: the log shows whether anybody makes it. */
EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, u32 counter, u32 *out)
{
    ENTER(device);
    (void)counter;
    *out = 0;
    return leave(&call, NVML_SUCCESS);
}

/* ------------------------------------------------------------------ memory */

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out)
{
    ENTER(device);
    struct memory memory;
    nvmlReturn_t result = get_memory(&call, &memory);
    if (result == NVML_SUCCESS) {   /* version 1 counts the reserved part as used */
        out->total = memory.total;
        out->used = memory.used + memory.reserved;
        out->free = out->total - out->used;
    }
    return leave(&call, result);
}

#if NVMLSTUB_API >= 510
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *out)
{
    ENTER(device);
    if (out->version != VERSION_TAG(nvmlMemory_v2_t, 2))
        return leave(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    struct memory memory;
    nvmlReturn_t result = get_memory(&call, &memory);
    if (result == NVML_SUCCESS) {
        out->total = memory.total;
        out->reserved = memory.reserved;
        out->used = memory.used;
        out->free = out->total - memory.reserved - memory.used;
    }
    return leave(&call, result);
}
#endif

/* ------------------------------------------------------------------ processes */

/* layout 1: {pid, bytes}; layout 2: also the MIG instances (the layout of _v2 and _v3). */
static nvmlReturn_t list_processes(const char *name, nvmlDevice_t device, int layout, u32 *count, void *out)
{
    ENTER_AT(name, handle_index(device), true);
    u32 room = *count;
    *count = 0;
    for (int i = 0; i < call.gpu->process_count; i++) {
        const struct process *process = &call.gpu->processes[i];
        if (!listed(call.gpu, process))
            continue;
        u32 pid = process->pid != 0 ? process->pid : (u32)getpid(), at = (*count)++;
        u64 bytes = process->memory_known ? process->bytes : NOT_AVAILABLE;
        if (out == NULL || at >= room)
            continue;
        if (layout == 1)
            ((nvmlProcessInfo_v1_t *)out)[at] = (nvmlProcessInfo_v1_t){pid, bytes};
        else
            ((nvmlProcessInfo_v2_t *)out)[at] = (nvmlProcessInfo_v2_t){pid, bytes, NO_INSTANCE, NO_INSTANCE};
    }
    bool fits = *count == 0 || (out != NULL && *count <= room);
    return leave(&call, fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE);
}

#define PROCESS_LIST(function, layout)                                             \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, u32 *count, void *out)       \
    {                                                                              \
        return list_processes(__func__, device, layout, count, out);               \
    }

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, 1)
#if NVMLSTUB_API >= 450
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, 2)
#endif
#if NVMLSTUB_API >= 510
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, 2)
#endif
