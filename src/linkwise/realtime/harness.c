/* The two-rate structure of Izaguirre et al. (1992) with POSIX threads.
 *
 * A synchronous task runs once per period: it reads the plant, multiplies the newest coefficients with the wanted
 * accelerations (JOINTS multiplications and additions per joint) and writes torques. It never waits for the two
 * background tasks that compute those coefficients: inertias and gravity in one, velocity torques in the other. Each
 * value passes through three buffers of which writer and reader own one each, and the third changes hands by an
 * atomic exchange: with two, one side would have to wait or to read again.
 *
 * Before this text stand a definition of JOINTS and four generated functions:
 *   void inertia(const double q[], double inertia[], double gravity[]);
 *   void velocity(const double q[], const double qd[], const double qd_d[], double torques[]);
 *   void synchronous(const double inertia[], const double gravity[], const double torques[], const double q[],
 *                    const double qd[], const double reference[], const double kp[], const double kd[], double tau[]);
 *   void plant(const double q[], const double qd[], const double tau[], double next_q[], double next_qd[]);
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
    SPEED_LIMIT, DEADLINES, STALE, WATCHDOG
};
enum missed { ON_TIME, OURS, SCHEDULER, PLANT };

/* A driver: 0 is success. The cycle number tells how many periods have gone by since the call before. */
typedef int (*read_function)(void *self, int64_t cycle, double *q, double *qd, int32_t *hot);
typedef int (*write_function)(void *self, const double *tau);

typedef struct {
    double period, inertia_period, velocity_period; /* [s] */
    int64_t cycles;
    const double *reference; /* rows of q_d, qd_d, qdd_d; the last one holds */
    int64_t reference_rows;
    double kp[N], kd[N];
    double lower[N], upper[N], speed[N], effort[N];
    double oldest;    /* age of coefficients that stops [s] */
    double patience;  /* of the watchdog [s] */
    int32_t deadlines; /* so many missed ones in a row stop */
    int32_t priority; /* of SCHED_FIFO; 0: do not ask for it */
    read_function read;
    write_function write;
    void *plant;
    const char *log;
} settings;

/* One row per cycle, all doubles, so that it is also an array for others. */
typedef struct {
    double time, late, task, finish, processor, inertia_age, velocity_age, missed; /* [s] */
    double q[N], qd[N], tau[N];
} row;

typedef struct {
    int32_t reason, joint, fifo_error, lock_error, log_error;
    int32_t hung; /* the plant never came back: the synchronous task is lost inside it, with its memory */
    int64_t cycle, rows;
    double value;
} outcome;

/* -- a value that passes from one thread to another ---------------------------------------------------------------- */

#define NEW 4u

typedef struct {
    _Atomic unsigned shared; /* the buffer that nobody owns, and whether it is new */
    unsigned back, front;
    double stamp[3];
    double data[3][N * N + N];
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

/* -- what the threads share ---------------------------------------------------------------------------------------- */

typedef struct {
    const settings *set;
    outcome *result;
    row *rows;
    _Atomic int64_t done;   /* rows that may be read */
    _Atomic int32_t reason; /* -1 while running; set once all about the stop is known */
    _Atomic int32_t stopping;
    _Atomic int32_t *ask;   /* set by the caller to stop */
    double start;
    channel for_inertia, for_velocity; /* state, from the synchronous task */
    channel inertia, velocity;         /* coefficients, to it */
} run_state;

static int running(run_state *r)
{
    return atomic_load(&r->reason) < 0;
}

static const double no_torques[N];

/* The first reason counts. Torques go to zero whoever finds it. */
static void stop(run_state *r, enum reason why, int joint, double value, int64_t cycle)
{
    if (atomic_exchange(&r->stopping, 1))
        return;
    r->set->write(r->set->plant, no_torques);
    r->result->reason = (int32_t)why;
    r->result->joint = joint;
    r->result->value = value;
    r->result->cycle = cycle;
    atomic_store(&r->reason, (int32_t)why);
}

/* -- background tasks ---------------------------------------------------------------------------------------------- */

static void *inertia_task(void *given)
{
    run_state *r = given;
    double stamp;
    for (double next = r->start; running(r); next += r->set->inertia_period) {
        const double *state = newest(&r->for_inertia, &stamp);
        double *out = to_write(&r->inertia);
        inertia(state, out, out + N * N);
        publish(&r->inertia, stamp);
        sleep_until(next + r->set->inertia_period);
    }
    return NULL;
}

static void *velocity_task(void *given)
{
    run_state *r = given;
    double stamp;
    for (double next = r->start; running(r); next += r->set->velocity_period) {
        const double *state = newest(&r->for_velocity, &stamp);
        velocity(state, state + N, state + 2 * N, to_write(&r->velocity));
        publish(&r->velocity, stamp);
        sleep_until(next + r->set->velocity_period);
    }
    return NULL;
}

/* If the synchronous task does not come back, somebody has to bring the torques to zero. */
static void *watchdog_task(void *given)
{
    run_state *r = given;
    int64_t seen = -1;
    double since = now();
    while (running(r)) {
        int64_t done = atomic_load(&r->done);
        if (done != seen) {
            seen = done;
            since = now();
        } else if (now() - since > r->set->patience) {
            stop(r, WATCHDOG, -1, now() - since, done);
        }
        usleep(1000);
    }
    return NULL;
}

/* -- the log ------------------------------------------------------------------------------------------------------- */

static void write_rows(run_state *r, FILE *file, int64_t *written)
{
    int64_t done = atomic_load_explicit(&r->done, memory_order_acquire);
    for (; *written < done; ++*written) {
        const double *values = (const double *)&r->rows[*written];
        for (size_t k = 0; k < sizeof(row) / sizeof(double); ++k)
            fprintf(file, k ? ",%.9g" : "%.9g", values[k]);
        fputc('\n', file);
    }
    fflush(file);
}

static void *log_task(void *given)
{
    run_state *r = given;
    int64_t written = 0;
    FILE *file = fopen(r->set->log, "a");
    if (!file) {
        r->result->log_error = errno;
        return NULL;
    }
    while (running(r)) {
        write_rows(r, file, &written);
        usleep(20000);
    }
    usleep(2000); /* the cycle that stopped may still be closing its row */
    write_rows(r, file, &written);
    fprintf(file, "# stopped: reason %d, joint %d, value %.9g, cycle %lld\n", (int)r->result->reason,
            (int)r->result->joint, r->result->value, (long long)r->result->cycle);
    fflush(file);
    fsync(fileno(file));
    fclose(file);
    return NULL;
}

/* -- the synchronous task ------------------------------------------------------------------------------------------ */

static int all_finite(const double *x, int count)
{
    for (int k = 0; k < count; ++k)
        if (!isfinite(x[k]))
            return 0;
    return 1;
}

static void hand_over(run_state *r, const row *now_, const double *reference)
{
    double *a = to_write(&r->for_inertia), *b = to_write(&r->for_velocity);
    memcpy(a, now_->q, sizeof now_->q);
    memcpy(b, now_->q, sizeof now_->q);
    memcpy(b + N, now_->qd, sizeof now_->qd);
    memcpy(b + 2 * N, reference + N, N * sizeof(double));
    publish(&r->for_inertia, r->start + now_->time);
    publish(&r->for_velocity, r->start + now_->time);
}

/* Reads and checks the plant; 0 if the cycle may go on. */
static int sense(run_state *r, int64_t cycle, row *out)
{
    const settings *set = r->set;
    int32_t hot[N] = {0};
    int status = set->read(set->plant, cycle, out->q, out->qd, hot);
    if (status) {
        stop(r, PLANT_LOST, -1, (double)status, cycle);
        return 1;
    }
    for (int i = 0; i < N; ++i) {
        if (!isfinite(out->q[i]) || !isfinite(out->qd[i]))
            stop(r, SENSOR_NAN, i, out->q[i], cycle);
        else if (hot[i])
            stop(r, OVER_TEMPERATURE, i, (double)hot[i], cycle);
        else if (out->q[i] < set->lower[i] || out->q[i] > set->upper[i])
            stop(r, POSITION_LIMIT, i, out->q[i], cycle);
        else if (fabs(out->qd[i]) > set->speed[i])
            stop(r, SPEED_LIMIT, i, out->qd[i], cycle);
    }
    return !running(r);
}

static int command(run_state *r, int64_t cycle, const double *reference, row *out)
{
    const settings *set = r->set;
    double inertia_stamp, velocity_stamp, wake = r->start + out->time;
    const double *coefficients = newest(&r->inertia, &inertia_stamp);
    const double *torques = newest(&r->velocity, &velocity_stamp);
    out->inertia_age = wake - inertia_stamp;
    out->velocity_age = wake - velocity_stamp;
    double oldest = fmax(out->inertia_age, out->velocity_age);
    if (oldest > set->oldest) {
        stop(r, STALE, -1, oldest, cycle);
        return 1;
    }
    double begin = now();
    synchronous(coefficients, coefficients + N * N, torques, out->q, out->qd, reference, set->kp, set->kd, out->tau);
    out->task = now() - begin;
    for (int i = 0; i < N; ++i) {
        if (!isfinite(out->tau[i])) {
            stop(r, TORQUE_NAN, i, out->tau[i], cycle);
            return 1;
        }
        out->tau[i] = fmin(fmax(out->tau[i], -set->effort[i]), set->effort[i]);
    }
    if (atomic_load(&r->stopping))
        return 1;
    int status = set->write(set->plant, out->tau);
    if (atomic_load(&r->stopping)) /* somebody stopped the loop meanwhile: zero has the last word */
        set->write(set->plant, no_torques);
    else if (status)
        stop(r, PLANT_LOST, -1, (double)status, cycle);
    return !running(r);
}

static int64_t blocked(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static void *synchronous_task(void *given)
{
    run_state *r = given;
    const settings *set = r->set;
    double period = set->period;
    int in_a_row = 0;
    int64_t sleeps = blocked(), index = 0;
    for (int64_t cycle = 0; cycle < set->cycles && running(r); ++index) {
        double planned = r->start + (double)cycle * period;
        sleep_until(planned);
        row *out = &r->rows[index];
        memset(out, 0, sizeof *out);
        double wake = now(), processor = seconds(CLOCK_THREAD_CPUTIME_ID);
        out->time = wake - r->start;
        out->late = wake - planned;
        int64_t at = cycle < set->reference_rows ? cycle : set->reference_rows - 1;
        const double *reference = set->reference + 3 * N * at;
        if (atomic_load(r->ask))
            stop(r, ASKED, -1, 0.0, cycle);
        else if (!all_finite(reference, 3 * N))
            stop(r, REFERENCE_NAN, -1, 0.0, cycle);
        else if (!sense(r, cycle, out)) {
            hand_over(r, out, reference);
            command(r, cycle, reference, out);
        }
        if (!running(r))
            memset(out->tau, 0, sizeof out->tau);
        double finish = now();
        out->finish = finish - wake;
        out->processor = seconds(CLOCK_THREAD_CPUTIME_ID) - processor;
        int64_t count = blocked();
        int64_t late = (int64_t)((finish - planned) / period); /* deadlines gone by: the begin of the next period */
        if (late > 0) {
            /* ours if the processor was busy with this cycle for that long; the plant's if it let the thread sleep */
            if (out->processor > period)
                out->missed = OURS;
            else
                out->missed = count - sleeps > 1 && out->late < period ? PLANT : SCHEDULER;
        }
        sleeps = count;
        r->result->rows = index + 1;
        atomic_store_explicit(&r->done, index + 1, memory_order_release);
        in_a_row = late > 0 ? in_a_row + (int)late : 0;
        if (set->deadlines && in_a_row >= set->deadlines)
            stop(r, DEADLINES, -1, (double)in_a_row, cycle);
        cycle += 1 + late;
    }
    stop(r, FINISHED, -1, 0.0, set->cycles);
    return NULL;
}

/* -- the entry ----------------------------------------------------------------------------------------------------- */

/* A thread under SCHED_FIFO, or under the normal policy where that is refused; the error says so. */
static int start(pthread_t *thread, int priority, void *(*task)(void *), run_state *r)
{
    pthread_attr_t attributes;
    struct sched_param parameters = {.sched_priority = priority};
    int error = 0;
    pthread_attr_init(&attributes);
    if (priority > 0) {
        pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
        pthread_attr_setschedparam(&attributes, &parameters);
        error = pthread_create(thread, &attributes, task, r);
        if (error)
            pthread_create(thread, NULL, task, r);
    } else {
        error = pthread_create(thread, NULL, task, r);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

/* Whether a thread came to its end in time. */
static int wait_for(pthread_t thread, double patience)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)ceil(patience);
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

/* Runs the loop; comes back when it has stopped. ``rows`` has room for set->cycles rows, ``ask`` may be set to 1. */
void run(const settings *set, outcome *result, row *rows, int32_t *ask)
{
    run_state *r = calloc(1, sizeof *r);
    pthread_t first, threads[4];
    int count = 0;
    memset(result, 0, sizeof *result);
    if (!r) {
        result->reason = PLANT_LOST;
        return;
    }
    r->set = set;
    r->result = result;
    r->rows = rows;
    r->ask = (_Atomic int32_t *)ask;
    atomic_store(&r->reason, -1);
    channel *channels[] = {&r->for_inertia, &r->for_velocity, &r->inertia, &r->velocity};
    for (int k = 0; k < 4; ++k)
        open_channel(channels[k]);
    result->lock_error = mlockall(MCL_CURRENT) ? errno : 0;
    memset(rows, 0, (size_t)set->cycles * sizeof *rows); /* no page is touched for the first time in the loop */

    /* Before the first cycle there are coefficients for where the arm is. */
    row begin = {0};
    int32_t hot[N];
    r->start = now() + 0.01;
    if (set->read(set->plant, 0, begin.q, begin.qd, hot)) {
        stop(r, PLANT_LOST, -1, 0.0, 0);
        free(r);
        return;
    }
    hand_over(r, &begin, set->reference);
    double *out = to_write(&r->inertia);
    inertia(begin.q, out, out + N * N);
    publish(&r->inertia, r->start);
    velocity(begin.q, begin.qd, set->reference + N, to_write(&r->velocity));
    publish(&r->velocity, r->start);

    if (set->log)
        pthread_create(&threads[count++], NULL, log_task, r);
    start(&threads[count++], set->priority / 2, inertia_task, r);
    start(&threads[count++], set->priority / 2, velocity_task, r);
    result->fifo_error = start(&first, set->priority, synchronous_task, r);
    if (set->patience > 0)
        pthread_create(&threads[count++], NULL, watchdog_task, r);
    while (running(r))
        usleep(1000);
    for (int k = 0; k < count; ++k)
        pthread_join(threads[k], NULL);
    if (wait_for(first, 1.0))
        free(r);
    else
        result->hung = 1;
    munlockall();
}

/* -- a simulated plant --------------------------------------------------------------------------------------------- */

enum fault { NO_FAULT, NAN_SENSOR, LOST, HOT, JUMP, SLEEP, SPIN };

typedef struct {
    double q[N], qd[N], tau[N];
    int64_t cycle, fault_cycle;
    int32_t fault, fault_joint;
    double fault_value;
} simulated;

int simulated_read(void *self, int64_t cycle, double *q, double *qd, int32_t *hot)
{
    simulated *p = self;
    for (; p->cycle < cycle; ++p->cycle) {
        double next_q[N], next_qd[N];
        plant(p->q, p->qd, p->tau, next_q, next_qd);
        memcpy(p->q, next_q, sizeof p->q);
        memcpy(p->qd, next_qd, sizeof p->qd);
    }
    memcpy(q, p->q, sizeof p->q);
    memcpy(qd, p->qd, sizeof p->qd);
    if (!p->fault || cycle < p->fault_cycle)
        return 0;
    switch (p->fault) {
    case NAN_SENSOR:
        q[p->fault_joint] = NAN;
        break;
    case LOST:
        return -1;
    case HOT:
        hot[p->fault_joint] = 1;
        break;
    case JUMP:
        q[p->fault_joint] += p->fault_value;
        break;
    case SLEEP:
        usleep((useconds_t)(1e6 * p->fault_value));
        break;
    case SPIN:
        for (double until = seconds(CLOCK_THREAD_CPUTIME_ID) + p->fault_value;
             seconds(CLOCK_THREAD_CPUTIME_ID) < until;)
            ;
        break;
    }
    return 0;
}

int simulated_write(void *self, const double *tau)
{
    memcpy(((simulated *)self)->tau, tau, N * sizeof(double));
    return 0;
}

/* -- how long the synchronous task takes --------------------------------------------------------------------------- */

/* Seconds for one call, ``count`` times: each the mean of ``calls`` calls on changing numbers. */
void time_synchronous(const double *numbers, double *result, int64_t count, int64_t calls)
{
    const double *D = numbers, *gravity = D + N * N, *torques = gravity + N, *q = torques + N, *qd = q + N;
    const double *reference = qd + N, *kp = reference + 3 * N, *kd = kp + N;
    double tau[N], state[N];
    memcpy(state, q, sizeof state);
    for (int64_t k = 0; k < count; ++k) {
        double begin = now();
        for (int64_t c = 0; c < calls; ++c) {
            synchronous(D, gravity, torques, state, qd, reference, kp, kd, tau);
            state[c % N] = q[c % N] + 1e-12 * tau[c % N]; /* so that no call can be left out */
        }
        result[k] = (now() - begin) / (double)calls;
    }
}
