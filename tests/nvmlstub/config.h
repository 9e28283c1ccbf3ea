/* Configuration of the NVML test double: an INI file that is read again whenever it changes. */
#ifndef NVMLSTUB_CONFIG_H
#define NVMLSTUB_CONFIG_H

#include <stdbool.h>

#define MAX_GPUS 16
#define MAX_PROCS 64   /* per GPU */
#define MAX_FAULTS 64
#define TEXT_LEN 96

/*
 * Numeric keys of a [gpu] section: X(enum name, key in the file, default).
 * A value is a number, or "na": the call then answers NVML_ERROR_NOT_SUPPORTED.
 * The defaults describe an idle 141 GB data-centre card.
 */
#define GPU_NUMBERS(X)                      \
    X(MEM_TOTAL, "mem_total_mib", "143771") \
    X(MEM_RESERVED, "mem_reserved_mib", "612") \
    X(MEM_USED, "mem_used_mib", "auto")     \
    X(UTIL, "util", "0")                    \
    X(TEMP, "temp", "31")                   \
    X(POWER, "power_w", "78")               \
    X(POWER_LIMIT, "power_limit_w", "700")  \
    X(CLOCK_SM, "clock_sm", "345")          \
    X(CLOCK_SM_MAX, "clock_sm_max", "1980") \
    X(MIG_MODE, "mig_mode", "0")             \
    X(CLOCK_MEM, "clock_mem", "3201")       \
    X(CLOCK_MEM_MAX, "clock_mem_max", "3201") \
    X(PSTATE, "pstate", "0")                \
    X(ECC, "ecc", "1")                      \
    X(CORRECTED, "ecc_corrected", "0")      \
    X(UNCORRECTED, "ecc_uncorrected", "0")  \
    X(CORRECTED_EVER, "ecc_corrected_ever", "0") \
    X(UNCORRECTED_EVER, "ecc_uncorrected_ever", "0") \
    X(ROWS, "rows_remapped", "0")           \
    X(ROWS_PENDING, "rows_pending", "0")    \
    X(NVLINKS, "nvlinks", "18")             \
    X(NVLINKS_UP, "nvlinks_up", "18")       \
    X(NVLINK_ERRORS, "nvlink_errors", "0")

enum number_key {
#define X(name, key, dflt) K_##name,
    GPU_NUMBERS(X)
#undef X
    NUMBER_KEYS
};

enum number_kind { NUM_NA, NUM_AUTO, NUM_CONSTANT };

struct number {
    enum number_kind kind;
    double value;
};

struct process {
    unsigned pid;              /* 0 in the file means: the calling process */
    bool memory_known;         /* false: NVML_VALUE_NOT_AVAILABLE */
    unsigned long long bytes;
};

/* What happens to the memory of a listed process once no such PID exists on this machine. */
enum when_dead {
    DEAD_KEEP,   /* PIDs are never looked at: invented numbers are fine (the default) */
    DEAD_FREE,   /* the process leaves the list and its memory is free again */
    DEAD_STUCK,  /* the process leaves the list but its memory stays in use */
};

struct gpu {
    struct number numbers[NUMBER_KEYS];
    char name[TEXT_LEN], uuid[TEXT_LEN], bus_id[TEXT_LEN];
    unsigned long long throttle;
    enum when_dead when_dead;
    struct process processes[MAX_PROCS];
    int process_count;
};

struct fault {
    char pattern[TEXT_LEN];    /* shell pattern over function names */
    int gpu;                   /* -1: every GPU, and calls that name none */
    double seconds;            /* delay first; negative: until the rule is gone from the file */
    bool fails;
    int code;                  /* returned when fails */
    int after;                 /* let this many matching calls through first */
};

struct config {
    int gpu_count;
    char driver[TEXT_LEN];
    struct gpu gpus[MAX_GPUS];
    struct fault faults[MAX_FAULTS];
    int fault_count;
    unsigned generation;       /* grows by one with each (re)read */
};

double monotonic_seconds(void);

/* The current configuration, re-read first if the file changed. The caller holds the API lock. */
const struct config *config_current(void);

/* A number's value; false when it is "na". An "auto" number yields fallback. */
bool number_now(const struct number *number, double fallback, double *value);

#endif
