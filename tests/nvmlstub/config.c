#define _GNU_SOURCE
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

static const struct {
    const char *key;
    const char *dflt;
} number_keys[NUMBER_KEYS] = {
#define X(name, key, dflt) {key, dflt},
    GPU_NUMBERS(X)
#undef X
};

static const struct {
    const char *name;
    int code;
} error_names[] = {
    {"UNINITIALIZED", 1}, {"NOT_SUPPORTED", 3}, {"NO_PERMISSION", 4}, {"DRIVER_NOT_LOADED", 9},
    {"TIMEOUT", 10}, {"FUNCTION_NOT_FOUND", 13}, {"GPU_IS_LOST", 15}, {"RESET_REQUIRED", 16},
    {"OPERATING_SYSTEM", 17}, {"LIB_RM_VERSION_MISMATCH", 18}, {"UNKNOWN", 999},
};

static const struct {
    const char *name;
    unsigned long long bit;
} throttle_names[] = {
    {"gpu_idle", 0x1}, {"app_clocks", 0x2}, {"sw_power_cap", 0x4}, {"hw_slowdown", 0x8},
    {"sync_boost", 0x10}, {"sw_thermal", 0x20}, {"hw_thermal", 0x40}, {"hw_power_brake", 0x80},
    {"display_clocks", 0x100},
};

double monotonic_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void complain(int line, const char *what, const char *text)
{
    fprintf(stderr, "nvmlstub: line %d: %s: %s\n", line, what, text);
}

static char *strip(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

static void copy_text(char *to, const char *from)
{
    snprintf(to, TEXT_LEN, "%s", from);
}

/* The NVML_ERROR_* code for a name; -1 if it is none. */
static int error_code(const char *text)
{
    for (size_t i = 0; i < sizeof error_names / sizeof *error_names; i++)
        if (strcasecmp(text, error_names[i].name) == 0)
            return error_names[i].code;
    return -1;
}

static bool parse_number(const char *text, struct number *number)
{
    char *end;
    if (strcasecmp(text, "na") == 0)
        *number = (struct number){NUM_NA, 0};
    else if (strcasecmp(text, "auto") == 0)
        *number = (struct number){NUM_AUTO, 0};
    else {
        *number = (struct number){NUM_CONSTANT, strtod(text, &end)};
        return end != text && *end == '\0';
    }
    return true;
}

bool number_now(const struct number *number, double fallback, double *value)
{
    *value = number->kind == NUM_AUTO ? fallback : number->value;
    return number->kind != NUM_NA;
}

/* "PID:MIB, ..." where MIB may be "na" and PID may be "self". */
static bool parse_processes(char *text, struct gpu *gpu)
{
    gpu->process_count = 0;
    char *rest = text;
    for (char *item; (item = strsep(&rest, ",")) != NULL;) {
        item = strip(item);
        if (*item == '\0')
            continue;
        if (gpu->process_count == MAX_PROCS)
            return false;
        struct process *process = &gpu->processes[gpu->process_count];
        char *pid = strsep(&item, ":"), *mib = strsep(&item, ":");
        if (mib == NULL)
            return false;
        char *end;
        process->pid = strcasecmp(pid, "self") == 0 ? 0 : (unsigned)strtoul(pid, NULL, 10);
        process->memory_known = strcasecmp(mib, "na") != 0;
        process->bytes = process->memory_known ? (unsigned long long)(strtod(mib, &end) * 1048576) : 0;
        if (process->memory_known && (end == mib || *end != '\0'))
            return false;
        gpu->process_count++;
    }
    return true;
}

static bool parse_throttle(char *text, unsigned long long *bits)
{
    *bits = 0;
    char *rest = text;
    for (char *item; (item = strsep(&rest, ",|")) != NULL;) {
        item = strip(item);
        if (*item == '\0')
            continue;
        char *end;
        unsigned long long bit = strtoull(item, &end, 0);
        if (*end != '\0') {
            bit = 0;
            for (size_t i = 0; i < sizeof throttle_names / sizeof *throttle_names; i++)
                if (strcasecmp(item, throttle_names[i].name) == 0)
                    bit = throttle_names[i].bit;
            if (bit == 0)
                return false;
        }
        *bits |= bit;
    }
    return true;
}

static void gpu_set(struct gpu *gpu, const char *key, char *value, int line)
{
    char saved[256];
    snprintf(saved, sizeof saved, "%s", value);
    bool good = true;
    if (strcmp(key, "name") == 0)
        copy_text(gpu->name, value);
    else if (strcmp(key, "uuid") == 0)
        copy_text(gpu->uuid, value);
    else if (strcmp(key, "bus_id") == 0)
        copy_text(gpu->bus_id, value);
    else if (strcmp(key, "throttle") == 0)
        good = parse_throttle(value, &gpu->throttle);
    else if (strcmp(key, "processes") == 0)
        good = parse_processes(value, gpu);
    else if (strcmp(key, "when_dead") == 0) {
        if (strcmp(value, "keep") == 0)
            gpu->when_dead = DEAD_KEEP;
        else if (strcmp(value, "free") == 0)
            gpu->when_dead = DEAD_FREE;
        else if (strcmp(value, "stuck") == 0)
            gpu->when_dead = DEAD_STUCK;
        else
            good = false;
    } else {
        for (int i = 0; i < NUMBER_KEYS; i++)
            if (strcmp(key, number_keys[i].key) == 0) {
                if (!parse_number(value, &gpu->numbers[i]))
                    complain(line, "not a number or na", saved);
                return;
            }
        complain(line, "unknown key in a gpu section", key);
        return;
    }
    if (!good)
        complain(line, "cannot be read", saved);
}

static void system_set(struct config *config, const char *key, const char *value, int line)
{
    if (strcmp(key, "gpus") == 0) {
        int count = atoi(value);
        if (count < 0 || count > MAX_GPUS)
            complain(line, "gpus must be 0 to 16", value);
        else
            config->gpu_count = count;
    } else if (strcmp(key, "driver") == 0)
        copy_text(config->driver, value);
    else
        complain(line, "unknown key in [system]", key);
}

/* "PATTERN[@GPU] = [sleep S|hang [S]] [ERROR] [after N]" */
static void fault_set(struct config *config, const char *key, char *value, int line)
{
    if (config->fault_count == MAX_FAULTS) {
        complain(line, "too many faults", key);
        return;
    }
    struct fault fault = {.gpu = -1};
    copy_text(fault.pattern, key);
    char *at = strrchr(fault.pattern, '@');
    if (at != NULL) {
        *at = '\0';
        fault.gpu = atoi(at + 1);
    }
    strip(fault.pattern);

    enum { WORD, DELAY, HANG, AFTER } expect = WORD;
    char *save = NULL;
    for (char *word = strtok_r(value, " \t", &save); word != NULL; word = strtok_r(NULL, " \t", &save)) {
        char *end;
        double number = strtod(word, &end);
        bool is_number = end != word && *end == '\0';
        if (is_number && (expect == DELAY || expect == HANG)) {
            fault.seconds = number;
            expect = WORD;
        } else if (is_number && expect == AFTER) {
            fault.after = (int)number;
            expect = WORD;
        } else if (strcasecmp(word, "sleep") == 0) {
            expect = DELAY;
        } else if (strcasecmp(word, "hang") == 0) {
            fault.seconds = -1;
            expect = HANG;
        } else if (strcasecmp(word, "after") == 0) {
            expect = AFTER;
        } else if (error_code(word) >= 0) {
            fault.fails = true;
            fault.code = error_code(word);
            expect = WORD;
        } else {
            complain(line, "unknown fault", word);
            return;
        }
    }
    config->faults[config->fault_count++] = fault;
}

static void set_defaults(struct config *config)
{
    memset(config, 0, sizeof *config);
    config->gpu_count = 8;
    copy_text(config->driver, "580.95.05");
    for (int i = 0; i < MAX_GPUS; i++) {
        struct gpu *gpu = &config->gpus[i];
        for (int k = 0; k < NUMBER_KEYS; k++)
            parse_number(number_keys[k].dflt, &gpu->numbers[k]);
        copy_text(gpu->name, "NVIDIA H200");
        snprintf(gpu->uuid, TEXT_LEN, "GPU-5dec0de0-0000-4000-8000-0000000000%02x", i);
        snprintf(gpu->bus_id, TEXT_LEN, "00000000:%02X:00.0", 0x17 + 0x11 * i);
    }
}

/* Two passes: [system], [gpu] and [fault] first, then [gpu.N], so that the order of sections is free. */
static void parse_file(struct config *config, FILE *file, int pass)
{
    char buffer[4096], section[TEXT_LEN] = "";
    rewind(file);
    for (int line = 1; fgets(buffer, sizeof buffer, file) != NULL; line++) {
        char *text = strip(buffer);
        if (*text == '\0' || *text == '#' || *text == ';')
            continue;
        if (*text == '[') {
            char *end = strchr(text, ']');
            if (end != NULL)
                *end = '\0';
            copy_text(section, strip(text + 1));
            continue;
        }
        char *equals = strchr(text, '=');
        if (equals == NULL) {
            if (pass == 1)
                complain(line, "no = in", text);
            continue;
        }
        *equals = '\0';
        const char *key = strip(text);
        char *value = strip(equals + 1);
        int index;
        if (pass == 1 && strcmp(section, "system") == 0) {
            system_set(config, key, value, line);
        } else if (pass == 1 && strcmp(section, "fault") == 0) {
            fault_set(config, key, value, line);
        } else if (pass == 1 && strcmp(section, "gpu") == 0) {
            for (int i = 0; i < MAX_GPUS; i++) {
                char copy[4096];
                snprintf(copy, sizeof copy, "%s", value);
                gpu_set(&config->gpus[i], key, copy, line);
            }
        } else if (pass == 2 && sscanf(section, "gpu.%d", &index) == 1) {
            if (index >= 0 && index < MAX_GPUS)
                gpu_set(&config->gpus[index], key, value, line);
            else
                complain(line, "no such gpu", section);
        }
    }
}

const struct config *config_current(void)
{
    static struct config config;
    static struct stat seen;
    static bool loaded;

    const char *path = getenv("NVMLSTUB_CONFIG");
    struct stat now = {0};
    bool exists = path != NULL && stat(path, &now) == 0;
    if (loaded && (!exists || (now.st_mtim.tv_sec == seen.st_mtim.tv_sec
                               && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec
                               && now.st_ino == seen.st_ino && now.st_size == seen.st_size)))
        return &config;

    unsigned generation = config.generation;
    set_defaults(&config);
    FILE *file = exists ? fopen(path, "r") : NULL;
    if (file != NULL) {
        parse_file(&config, file, 1);
        parse_file(&config, file, 2);
        fclose(file);
    } else if (path != NULL) {
        fprintf(stderr, "nvmlstub: cannot read the configuration file; using the defaults\n");
    }
    config.generation = generation + 1;
    seen = now;
    loaded = true;
    return &config;
}
