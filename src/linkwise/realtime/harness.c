/* -- background tasks ---------------------------------------------------------------------------------------------- */

/* Sleeps until a time or until the loop stops. */
static void rest_until(run_state *r, double when)
{
    for (double left = when - now(); left > 0 && controlling(r); left = when - now())
        sleep_until(now() + fmin(left, 0.05));
}

static void *inertia_task(void *given)
{
    run_state *r = given;
    double stamp;
    for (double next = r->start; controlling(r); next += r->set->inertia_period) {
        const double *state = newest(&r->for_inertia, &stamp);
        double *out = to_write(&r->inertia);
        inertia(state, out, out + N * N);
        publish(&r->inertia, stamp);
        rest_until(r, next + r->set->inertia_period);
    }
    return NULL;
}

static void *velocity_task(void *given)
{
    run_state *r = given;
    double stamp;
    for (double next = r->start; controlling(r); next += r->set->velocity_period) {
        const double *state = newest(&r->for_velocity, &stamp);
        velocity(state, state + N, state + 2 * N, to_write(&r->velocity));
        publish(&r->velocity, stamp);
        rest_until(r, next + r->set->velocity_period);
    }
    return NULL;
}

/* Stops the robot if the synchronous task does not complete a cycle in time, in its stop sequence too. */
static void *watchdog_task(void *given)
{
    run_state *r = given;
    int64_t seen = -1;
    double since = now(), unused;
    while (!atomic_load(&r->over)) {
        int64_t beats = atomic_load(&r->beats);
        double waited = now() - since;
        if (beats != seen) {
            seen = beats;
            since = now();
        } else if (!(waited <= r->set->patience)) {
            int32_t expected = BY_TASK;
            if (claim_stop(r, BY_WATCHDOG, (fault){WATCHDOG, -1, waited}, atomic_load(&r->done)) ||
                atomic_compare_exchange_strong(&r->owner, &expected, BY_WATCHDOG)) {
                const double *state = newest(&r->for_watchdog, &unused);
                stop_sequence(r, BY_WATCHDOG, state, state + N, r->set->cycles + stop_capacity(r->set));
                break;
            }
        }
        usleep(1000);
    }
    return NULL;
}

/* -- the log ------------------------------------------------------------------------------------------------------- */

static void write_rows(run_state *r, FILE *file, int64_t *written, int64_t until)
{
    for (; *written < until; ++*written) {
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
    while (!atomic_load(&r->over)) {
        write_rows(r, file, &written, atomic_load_explicit(&r->done, memory_order_acquire));
        usleep(20000);
    }
    write_rows(r, file, &written, atomic_load_explicit(&r->done, memory_order_acquire));
    fprintf(file, "# stopped: reason %d, joint %d, value %.9g, cycle %lld\n", (int)r->result->reason,
            (int)r->result->joint, r->result->value, (long long)r->result->cycle);
    written = r->result->stop_first;
    write_rows(r, file, &written, written + r->result->stop_rows);
    fflush(file);
    fsync(fileno(file));
    fclose(file);
    return NULL;
}

/* -- the synchronous task ------------------------------------------------------------------------------------------ */

static void hand_over(run_state *r, const row *measured, const double *reference)
{
    double *a = to_write(&r->for_inertia), *b = to_write(&r->for_velocity), *c = to_write(&r->for_watchdog);
    double stamp = r->start + measured->time;
    memcpy(a, measured->q, sizeof measured->q);
    memcpy(b, measured->q, sizeof measured->q);
    memcpy(b + N, measured->qd, sizeof measured->qd);
    memcpy(b + 2 * N, reference + N, N * sizeof(double));
    memcpy(c, measured->q, sizeof measured->q);
    memcpy(c + N, measured->qd, sizeof measured->qd);
    publish(&r->for_inertia, stamp);
    publish(&r->for_velocity, stamp);
    publish(&r->for_watchdog, stamp);
#ifdef HORIZON
    double *d = to_write(&r->for_plan); /* the state that is believed, and what the model misses */
    memcpy(d, r->planning.state, 2 * N * sizeof(double));
    memcpy(d + 2 * N, r->planning.disturbance, N * sizeof(double));
    publish(&r->for_plan, stamp);
#endif
}

static fault command(run_state *r, const double *reference, row *out)
{
    const settings *set = r->set;
    double inertia_stamp, velocity_stamp, wake = r->start + out->time;
    const double *coefficients = newest(&r->inertia, &inertia_stamp);
    const double *torques = newest(&r->velocity, &velocity_stamp);
    out->inertia_age = wake - inertia_stamp;
    out->velocity_age = wake - velocity_stamp;
    if (!(out->inertia_age <= set->oldest))
        return (fault){STALE, -1, out->inertia_age};
    if (!(out->velocity_age <= set->oldest))
        return (fault){STALE, -1, out->velocity_age};
    double tau[N], begin = now();
#ifdef HORIZON
    (void)reference, (void)coefficients, (void)torques;
    fault found = planned(r, out, tau);
    if (found.reason != FINISHED)
        return found;
#else
    synchronous(coefficients, coefficients + N * N, torques, out->q, out->qd, reference, set->kp, set->kd, tau);
#endif
    out->task = now() - begin;
    for (int i = 0; i < N; ++i)
        if (!isfinite(tau[i]))
            return (fault){TORQUE_NAN, i, tau[i]};
    int status = send_torques(r, BY_TASK, tau);
    return status ? (fault){PLANT_LOST, -1, (double)status} : no_fault;
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
    if (set->core > 0) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET((size_t)(set->core - 1), &cores);
        r->result->core_error = pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
    }
    int64_t sleeps = blocked(), index = 0;
    int64_t cycle = 0;
    fault found = no_fault;
    while (cycle < set->cycles && found.reason == FINISHED && controlling(r)) {
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
            found.reason = ASKED;
        else if (!all_finite(reference, 3 * N))
            found.reason = REFERENCE_NAN;
        else
            found = sense(r, cycle, reference, out);
#ifdef HORIZON
        if (found.reason == FINISHED)
            found = watched(r, cycle, out);
#endif
        if (found.reason == FINISHED) {
            hand_over(r, out, reference);
            found = command(r, reference, out);
        }
        if (!controlling(r))
            break; /* the watchdog has taken over */
        memcpy(out->tau, r->sent, sizeof out->tau);
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
        ++index;
        atomic_store_explicit(&r->done, index, memory_order_release);
        atomic_fetch_add(&r->beats, 1);
        in_a_row = late > 0 ? in_a_row + (late < INT32_MAX / 2 ? (int)late : INT32_MAX / 2) : 0;
        if (found.reason == FINISHED && set->deadlines && in_a_row >= set->deadlines)
            found = (fault){DEADLINES, -1, (double)in_a_row};
        if (found.reason == FINISHED)
            cycle += 1 + late;
    }
    if (claim_stop(r, BY_TASK, found, found.reason == FINISHED ? set->cycles : cycle)) {
        double q0[N], qd0[N];
        memcpy(q0, r->q, sizeof q0);
        memcpy(qd0, r->qd, sizeof qd0);
        stop_sequence(r, BY_TASK, q0, qd0, index);
    }
    return NULL;
}

/* -- the entry ----------------------------------------------------------------------------------------------------- */

/* Starts a thread under SCHED_FIFO, or under the normal policy where that is refused. Returns 0 or the error that no
 * thread could be started for; ``fifo_error`` says why SCHED_FIFO was refused. */
static int start_thread(pthread_t *thread, int priority, void *(*task)(void *), run_state *r, int32_t *fifo_error)
{
    pthread_attr_t attributes;
    struct sched_param parameters = {.sched_priority = priority};
    *fifo_error = 0;
    if (priority > 0) {
        pthread_attr_init(&attributes);
        pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
        pthread_attr_setschedparam(&attributes, &parameters);
        *fifo_error = pthread_create(thread, &attributes, task, r);
        pthread_attr_destroy(&attributes);
        if (!*fifo_error)
            return 0;
    }
    return pthread_create(thread, NULL, task, r);
}

/* Whether a thread ended within a second. */
static int joined(pthread_t thread)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

/* Waits for the end of the stop sequence. A watchdog that is itself lost inside the driver is given up. */
static void wait_until_over(run_state *r)
{
    double given_up = (double)INFINITY;
    while (!atomic_load(&r->over)) {
        int32_t expected = BY_WATCHDOG;
        if (atomic_load(&r->owner) == BY_WATCHDOG && isinf(given_up))
            given_up = now() + r->set->stop_time + r->set->patience + 1.0;
        if (now() > given_up && atomic_compare_exchange_strong(&r->owner, &expected, OVER))
            atomic_store(&r->over, 1);
        usleep(1000);
    }
}

static void refuse(run_state *r, fault why)
{
    claim_stop(r, BY_TASK, why, 0);
    atomic_store(&r->owner, OVER);
    atomic_store(&r->over, 1);
}

/* The first reading, and the coefficients for that position, before anything is commanded. */
static fault prepare(run_state *r)
{
    const settings *set = r->set;
    const double *reference = set->reference;
    row begin = {0};
    int32_t hot[N] = {0};
    r->start = now() + 0.01;
    r->read_begin = now();
    int status = set->read(set->plant, 0, begin.q, begin.qd, hot);
    if (status)
        return (fault){PLANT_LOST, -1, (double)status};
    for (int i = 0; i < N; ++i)
        if (!isfinite(begin.q[i]) || !isfinite(begin.qd[i]))
            return (fault){SENSOR_NAN, i, isfinite(begin.q[i]) ? begin.qd[i] : begin.q[i]};
    if (!all_finite(reference, 3 * N))
        return (fault){REFERENCE_NAN, -1, 0.0};
    memcpy(r->q, begin.q, sizeof r->q);
    memcpy(r->qd, begin.qd, sizeof r->qd);
    memcpy(r->still_q, begin.q, sizeof r->still_q);
    memcpy(r->still_reference, reference, sizeof r->still_reference);
#ifdef HORIZON
    fault found = beyond_limits(set, &begin, reference, hot);
    if (found.reason == FINISHED)
        found = first_plan(r, begin.q, begin.qd);
    if (found.reason != FINISHED)
        return found;
#endif
#ifdef HORIZON
    memcpy(r->planning.state, begin.q, sizeof begin.q);
    memcpy(r->planning.state + N, begin.qd, sizeof begin.qd);
#endif
    hand_over(r, &begin, reference);
    double *out = to_write(&r->inertia);
    inertia(begin.q, out, out + N * N);
    publish(&r->inertia, r->start);
    velocity(begin.q, begin.qd, reference + N, to_write(&r->velocity));
    publish(&r->velocity, r->start);
    return beyond_limits(set, &begin, reference, hot);
}

/* Runs the loop; returns after the stop sequence. ``rows`` has room for rows_needed(set) rows; ``ask`` may be set to 1
 * to stop. Invalid settings, and a plant that is at fault before the first cycle, are refused: nothing is commanded. */
void run(const settings *set, outcome *result, row *rows, int32_t *ask)
{
    pthread_t task, watchdog, threads[4];
    int count = 0, error = 0, watched = 0;
    int32_t ignored;
    memset(result, 0, sizeof *result);
    result->setting = invalid_setting(set, &result->joint, &result->value);
    if (result->setting) {
        result->reason = CONFIGURATION;
        return;
    }
    run_state *r = calloc(1, sizeof *r);
    if (!r) {
        result->reason = THREADS;
        result->value = ENOMEM;
        return;
    }
    r->set = set;
    r->result = result;
    r->rows = rows;
    r->ask = (_Atomic int32_t *)ask;
    atomic_store(&r->reason, -1);
    channel *channels[] = {&r->for_inertia, &r->for_velocity, &r->for_watchdog, &r->inertia, &r->velocity};
    for (int k = 0; k < 5; ++k)
        open_channel(channels[k]);
#ifdef HORIZON
    open_channel(&r->for_plan);
#endif
    result->lock_error = mlockall(MCL_CURRENT) ? errno : 0;
    memset(rows, 0, (size_t)rows_needed(set) * sizeof *rows); /* so that no page fault happens in the loop */
    fault found = prepare(r);
    if (found.reason != FINISHED) {
        refuse(r, found);
    } else {
        if (set->log && !(error = pthread_create(&threads[count], NULL, log_task, r)))
            ++count;
        if (!error && !(error = start_thread(&threads[count], set->priority / 2, inertia_task, r, &ignored)))
            ++count;
        if (!error && !(error = start_thread(&threads[count], set->priority / 2, velocity_task, r, &ignored)))
            ++count;
#ifdef HORIZON
        if (!error && !(error = start_thread(&threads[count], set->priority / 2, plan_task, r, &ignored)))
            ++count;
#endif
        if (!error && !(error = pthread_create(&watchdog, NULL, watchdog_task, r)))
            watched = 1;
        if (!error)
            error = start_thread(&task, set->priority, synchronous_task, r, &result->fifo_error);
        if (error)
            refuse(r, (fault){THREADS, -1, (double)error});
    }
    wait_until_over(r);
    result->rows = atomic_load(&r->done);
    for (int k = 0; k < count; ++k)
        pthread_join(threads[k], NULL);
    if (watched && !joined(watchdog))
        result->hung = 1;
    if (found.reason == FINISHED && !error && !joined(task))
        result->hung = 1;
    if (!result->hung)
        free(r);
    munlockall();
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
