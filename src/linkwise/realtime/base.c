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
 * This text follows a definition of JOINTS, types.h and five generated functions:
 *   void inertia(const double q[], double inertia[], double gravity[]);
 *   void velocity(const double q[], const double qd[], const double qd_d[], double torques[]);
 *   void synchronous(const double inertia[], const double gravity[], const double torques[], const double q[],
 *                    const double qd[], const double reference[], const double kp[], const double kd[], double tau[]);
 *   void plant(const double q[], const double qd[], const double tau[], double next_q[], double next_qd[]);
 *   void safe_stop(const double time[], const double stop_q[], const double stop_qd[], const double q[],
 *                  const double qd[], const double feedback[], const double kp[], const double kd[],
 *                  const double duration[], const double ramp[], const double speed[], const double effort[],
 *                  double tau[]);  (linkwise.control.safe_stop)
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

