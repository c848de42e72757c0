/* A library with the names of NVIDIA's, for machines without its cards: eight of them, of two models.
 *
 * A file `lost` beside the library holds the numbers of cards that have stopped answering, one digit each. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 2, NO_ROOM = 7, LOST = 15, CARDS = 8, LARGE_CARDS = 4 };

typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory;
typedef struct { unsigned gpu, memory; } utilization;

static char devices[CARDS];

static int number(void *device) { return (int)((char *)device - devices); }

static int check(void *device) {
    Dl_info self;
    char path[4096];
    int found = SUCCESS;
    if (number(device) < 0 || number(device) >= CARDS) return INVALID;
    if (!dladdr(devices, &self)) return SUCCESS;
    snprintf(path, sizeof path, "%s", self.dli_fname);
    char *name = strrchr(path, '/');
    if (!name) return SUCCESS;
    snprintf(name, sizeof path - (size_t)(name - path), "/lost");
    FILE *file = fopen(path, "r");
    if (!file) return SUCCESS;
    for (int digit; (digit = fgetc(file)) != EOF;)
        if (digit == '0' + number(device)) found = LOST;
    fclose(file);
    return found;
}

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "an error"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = CARDS; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (index >= CARDS) return INVALID;
    *device = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetIndex(void *device, unsigned *index) { *index = (unsigned)number(device); return check(device); }

int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    const char *model = number(device) < LARGE_CARDS ? "NVIDIA GeForce RTX 3090" : "Tesla P100-PCIE-16GB";
    return snprintf(name, length, "%s", model) < (int)length ? check(device) : NO_ROOM;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    int written = snprintf(uuid, length, "GPU-00000000-0000-0000-0000-00000000000%d", number(device));
    return written < (int)length ? check(device) : NO_ROOM;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, memory *info) {
    info->total = number(device) < LARGE_CARDS ? 24ull << 30 : 16ull << 30;
    info->used = 1ull << 30;
    info->reserved = 0;
    info->free = info->total - info->used;
    return check(device);
}

int nvmlDeviceGetUtilizationRates(void *device, utilization *rates) {
    rates->gpu = 10 * (unsigned)number(device);
    rates->memory = 1;
    return check(device);
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) {
    (void)sensor;
    *degrees = 40 + (unsigned)number(device);
    return check(device);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *processes) {
    (void)processes;
    *count = 0;
    return check(device);
}
