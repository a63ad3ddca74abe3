/* -- torques ------------------------------------------------------------------------------------------------------- */

static double bounded(double torque, double effort)
{
    if (torque > effort)
        return effort;
    if (torque < -effort)
        return -effort;
    return isfinite(torque) ? torque : 0.0;
}

/* The only place that writes to the plant. The torques are bounded by the effort limits in place. Once the watchdog
 * has taken over, a synchronous task that returns late from its driver repeats the watchdog's command, because its own
 * may have arrived after it. */
static int send_torques(run_state *r, enum owner by, double *tau)
{
    const settings *set = r->set;
    for (int i = 0; i < N; ++i)
        tau[i] = bounded(tau[i], set->effort[i]);
    if (by == BY_WATCHDOG) {
        for (int i = 0; i < N; ++i)
            atomic_store(&r->watchdog_torques[i], tau[i]);
        return set->write(set->plant, tau);
    }
    if (atomic_load(&r->owner) > BY_TASK)
        return 0;
    int status = set->write(set->plant, tau);
    memcpy(r->sent, tau, sizeof r->sent);
    if (atomic_load(&r->owner) > BY_TASK) {
        double last[N];
        for (int i = 0; i < N; ++i)
            last[i] = atomic_load(&r->watchdog_torques[i]);
        set->write(set->plant, last);
    }
    return status;
}

/* -- the stop sequence --------------------------------------------------------------------------------------------- */

/* The first reason counts; who claims the stop runs the sequence. */
static int claim_stop(run_state *r, enum owner by, fault why, int64_t cycle)
{
    int32_t expected = CONTROLLING;
    if (!atomic_compare_exchange_strong(&r->owner, &expected, (int32_t)by))
        return 0;
    r->result->reason = (int32_t)why.reason;
    r->result->joint = why.joint;
    r->result->value = why.value;
    r->result->cycle = cycle;
    atomic_store(&r->reason, (int32_t)why.reason);
    return 1;
}

/* Whether the loop may still be closed over the sensors after a fault. After missed deadlines it may not: feedback at
 * irregular times can be unstable. */
static int feedback_after(enum reason why)
{
    switch (why) {
    case SENSOR_NAN:
    case JUMP:
    case FROZEN:
    case PLANT_LOST:
    case DEADLINES:
    case WATCHDOG:
        return 0;
    default:
        return 1;
    }
}

/* Whether the plant is still read, if only for the record. */
static int reading_after(enum reason why)
{
    return why != PLANT_LOST && why != DEADLINES && why != WATCHDOG;
}

static int engage_brakes(const settings *set)
{
    return set->brake && set->brake(set->plant) > 0;
}

/* Brings the arm to rest from q0, qd0 and leaves it as the stop mode says:
 *   HOLD   decelerates, then holds against gravity; at the end brakes, and if there are none, keeps the gravity torques
 *   RAMP   the same torques, scaled from 1 down to 0 over the stop time
 *   BRAKE  brakes at once; decelerates and holds like HOLD if they do not engage
 * A motor that is too hot is not held: HOLD becomes RAMP. Without feedback the torques are those of the model, and
 * brakes are engaged at once. Brakes that report that they hold end the sequence with zero torques. */
static void stop_sequence(run_state *r, enum owner by, const double *q0, const double *qd0, int64_t first)
{
    const settings *set = r->set;
    enum reason why = (enum reason)r->result->reason;
    int mode = set->stop_mode == HOLD && why == OVER_TEMPERATURE ? RAMP : set->stop_mode;
    int feedback = by == BY_TASK && feedback_after(why), reading = by == BY_TASK && reading_after(why);
    int asked_brakes = 0, braked = 0, last = 0;
    double begin = now(), ramp = mode == RAMP;
    int64_t count = 0, capacity = stop_capacity(set), cycle = by == BY_TASK ? r->read_cycle : 0;
    while (!last && !braked) {
        if (by == BY_TASK && atomic_load(&r->owner) != BY_TASK)
            return; /* the watchdog has taken over */
        double wake = now(), t = wake - begin;
        row *out = &r->rows[first + count];
        memset(out, 0, sizeof *out);
        out->time = wake - r->start;
        last = t >= set->stop_time || count >= capacity - 2;
        if (reading) {
            int32_t hot[N] = {0};
            int64_t due = (int64_t)((wake - r->start) / set->period);
            cycle = due > cycle ? due : cycle;
            enum reason found = measure(r, cycle, out, hot).reason;
            feedback = feedback && found == FINISHED;
            reading = found != PLANT_LOST;
        }
        /* nothing corrects the last command: gravity torques where the arm is */
        double trusted = feedback && !last, until = last ? set->stop_time : t, still[N] = {0};
        safe_stop(&until, last && feedback ? out->q : q0, last && feedback ? still : qd0, out->q, out->qd, &trusted, set->kp,
                  set->kd, &set->stop_time, &ramp, set->speed, set->effort, out->tau);
        send_torques(r, by, out->tau);
        out->finish = now() - wake;
        ++count;
        atomic_fetch_add(&r->beats, 1);
        if (!asked_brakes && (last || mode == BRAKE || !feedback)) {
            asked_brakes = 1;
            braked = engage_brakes(set);
        }
        if (!last && !braked)
            sleep_until(begin + (floor((now() - begin) / set->period) + 1.0) * set->period);
    }
    if (braked) {
        row *out = &r->rows[first + count++];
        memset(out, 0, sizeof *out);
        out->time = now() - r->start;
        send_torques(r, by, out->tau);
    }
    int32_t expected = (int32_t)by;
    if (!atomic_compare_exchange_strong(&r->owner, &expected, OVER))
        return;
    r->result->braked = braked;
    r->result->stop_first = first;
    r->result->stop_rows = count;
    atomic_store(&r->over, 1);
}
