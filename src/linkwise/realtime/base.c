/* The two-rate structure of Izaguirre et al. (1992) with POSIX threads.
 *
 * A synchronous task runs once per period: it reads the plant, multiplies the newest inertia coefficients by the wanted
 * accelerations (JOINTS multiplications and additions per joint) and writes torques. It never waits for the two
 * background tasks that compute the coefficients: inertias and gravity in one, velocity torques in the other. Each
 * value passes through three buffers: writer and reader own one each, and the third is exchanged atomically. With two
 * buffers one side would have to wait or to read twice.
 *
 * Every fault, and the normal end, leads into a stop sequence (stop.c) that decelerates the arm and holds it against
 * gravity, ramps the torques down, or engages the brakes. Every torque passes through send_torques(), which bounds it
 * by the effort limits; a number that is not finite never reaches the plant.
 *
 * This text follows a definition of JOINTS and four generated functions:
 *   void inertia(const double q[], double inertia[], double gravity[]);
 *   void velocity(const double q[], const double qd[], const double qd_d[], double torques[]);
 *   void synchronous(const double inertia[], const double gravity[], const double torques[], const double q[],
 *                    const double qd[], const double reference[], const double kp[], const double kd[], double tau[]);
 *   void plant(const double q[], const double qd[], const double tau[], double next_q[], double next_qd[]);
 * and, where collisions are watched for, of OBSERVER_MEMORY and
 *   void observer(const double q[], const double qd[], const double tau[], const double period[],
 *                 const double memory[], double external_torque[], double contact[], double collision[],
 *                 double next_memory[]);
 *
 * Comparisons are written so that NaN fails them: !(x <= limit), never x > limit.
 */

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define N JOINTS

enum reason {
    FINISHED, ASKED, SENSOR_NAN, REFERENCE_NAN, TORQUE_NAN, PLANT_LOST, OVER_TEMPERATURE, POSITION_LIMIT,
    SPEED_LIMIT, DEADLINES, STALE, WATCHDOG, JUMP, FROZEN, FOLLOWING, CONFIGURATION, THREADS, COLLISION
};
enum missed { ON_TIME, OURS, SCHEDULER, PLANT };
enum stop_mode { HOLD, RAMP, BRAKE };

/* A driver; read and write return 0 for success. ``cycle`` counts periods, missed ones included. ``brake`` returns 1
 * once the brakes hold the arm, 0 if there are none; it may be NULL. */
typedef int (*read_function)(void *self, int64_t cycle, double *q, double *qd, int32_t *hot);
typedef int (*write_function)(void *self, const double *tau);
typedef int (*brake_function)(void *self);

typedef struct {
    double period, inertia_period, velocity_period; /* [s] */
    int64_t cycles;
    const double *reference; /* rows of q_d, qd_d, qdd_d; after the end the last one is used */
    int64_t reference_rows;
    double kp[N], kd[N];
    double lower[N], upper[N], speed[N], effort[N];
    double following[N]; /* largest distance between position and reference */
    double frozen[N];    /* reference motion during which an unchanged position counts as a frozen encoder */
    double oldest;       /* largest age of coefficients [s] */
    double patience;     /* of the watchdog [s] */
    double stop_time;    /* duration of the stop sequence [s] */
    int32_t deadlines;   /* missed in a row that stop the loop; 0: never */
    int32_t priority;    /* of SCHED_FIFO; 0: normal priority */
    int32_t stop_mode;
    read_function read;
    write_function write;
    brake_function brake;
    void *plant;
    const char *log;
} settings;

/* One row per cycle. All doubles, so that callers can use the rows as one array. */
typedef struct {
    double time, late, task, finish, processor, inertia_age, velocity_age, missed; /* [s] */
    double q[N], qd[N], tau[N];
#ifdef OBSERVER_MEMORY
    double external[N]; /* estimated external torques */
#endif
} row;

typedef struct {
    int32_t reason, joint, fifo_error, lock_error, log_error;
    int32_t hung;    /* a driver call did not return: its thread is lost, and its memory is kept */
    int32_t braked;  /* the brakes reported that they hold the arm */
    int32_t setting; /* which setting is invalid, for CONFIGURATION: see invalid_setting() */
    int64_t cycle, rows;
    int64_t stop_first, stop_rows; /* rows of the stop sequence */
    double value;
} outcome;

/* -- a value that passes from one thread to another ---------------------------------------------------------------- */

#define NEW 4u
#define NUMBERS (N * N + 2 * N)
_Static_assert(NUMBERS >= N * N + N && NUMBERS >= 3 * N, "room for the coefficients, and for the numbers of a state");

typedef struct {
    _Atomic unsigned shared; /* index of the buffer in between, and whether it is new */
    unsigned back, front;
    double stamp[3];
    double data[3][NUMBERS];
} channel;

static void open_channel(channel *c)
{
    memset(c, 0, sizeof *c);
    c->back = 1;
    c->front = 2;
}

static double *to_write(channel *c)
{
    return c->data[c->back];
}

static void publish(channel *c, double stamp)
{
    c->stamp[c->back] = stamp;
    c->back = atomic_exchange_explicit(&c->shared, c->back | NEW, memory_order_acq_rel) & 3u;
}

static const double *newest(channel *c, double *stamp)
{
    if (atomic_load_explicit(&c->shared, memory_order_relaxed) & NEW)
        c->front = atomic_exchange_explicit(&c->shared, c->front, memory_order_acq_rel) & 3u;
    *stamp = c->stamp[c->front];
    return c->data[c->front];
}

/* -- time ---------------------------------------------------------------------------------------------------------- */

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void)
{
    return seconds(CLOCK_MONOTONIC);
}

static void sleep_until(double when)
{
    struct timespec t;
    t.tv_sec = (time_t)when;
    t.tv_nsec = (long)((when - (double)t.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

