/* The time of day, and as many seconds as the file JUMPING_CLOCK says: for LD_PRELOAD.
 * The monotonic clock and what sleeps for some time are the kernel's, as they are when a machine's clock is set. Who
 * waits until a time of day (MariaDB and Galera do, with conditions) is woken early by a jump ahead, late by one back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_s;

__attribute__((constructor)) static void map_offset(void) {
    const char *path = getenv("JUMPING_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset_s, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) abort();
    offset_s = mapped;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && offset_s && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset_s;
    return (int)failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (where) *where = exact.tv_sec;
    return exact.tv_sec;
}

#define FIRST_TIME_OF_DAY_S 1000000000 /* less is of a monotonic clock, seconds since the start */
#define LONGEST_SLEEP_NS 50000000      /* so long a jump may go unnoticed */
#define SECOND_NS 1000000000

static int64_t ns_between(const struct timespec *from, const struct timespec *to) {
    return (int64_t)(to->tv_sec - from->tv_sec) * SECOND_NS + to->tv_nsec - from->tv_nsec;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!wait) wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"); /* x86-64 has an older one, too */
    if (!wait) wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    if (!offset_s || until->tv_sec < FIRST_TIME_OF_DAY_S) return wait(condition, mutex, until);
    for (;;) {
        struct timespec now, wake;
        clock_gettime(CLOCK_REALTIME, &now);
        int64_t left_ns = ns_between(&now, until);
        if (left_ns <= 0) return ETIMEDOUT;
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &wake);
        wake.tv_nsec += left_ns < LONGEST_SLEEP_NS ? left_ns : LONGEST_SLEEP_NS;
        wake.tv_sec += wake.tv_nsec / SECOND_NS;
        wake.tv_nsec %= SECOND_NS;
        int woken = wait(condition, mutex, &wake);
        if (woken != ETIMEDOUT) return woken;
    }
}
