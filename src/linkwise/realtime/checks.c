/* -- what the threads share ---------------------------------------------------------------------------------------- */

/* Who runs the stop sequence. The watchdog may take over from the synchronous task; OVER is final. */
enum owner { CONTROLLING, BY_TASK, BY_WATCHDOG, OVER };

#ifdef HORIZON
typedef struct {
    double stamp; /* when its first state was measured */
    double xs[(HORIZON + 1) * 2 * N], us[HORIZON * N], gains[HORIZON * N * 2 * N];
    double low[N], high[N]; /* limits of torques */
#ifdef PROGRESS_MEMORY
    double target[TARGET]; /* of the joints, or position and orientation of the tip */
#endif
} plan;

typedef struct {
    _Atomic unsigned shared;
    unsigned back, front;
    plan data[3];
} plan_channel;

typedef struct {
    plan_channel channel; /* to the synchronous task */
    plan start;
    double parameters[PARAMETERS];
    double mu, report[PLAN_REPORT], room[PLAN_ROOM];
    double working[PARAMETERS]; /* the parameters for the state that the arm is in */

    /* used by the synchronous task alone */
    double memory[WATCH_MEMORY], state[2 * N], modelled[2 * N], disturbance[N], caused[N];
#ifdef PROGRESS_MEMORY
    double way[PROGRESS_MEMORY], target[TARGET]; /* what is known of the way to this target */
#endif
    int64_t watched_cycle; /* of the last sample */
} planning;
#endif

typedef struct {
    const settings *set;
    outcome *result;
    row *rows;
    _Atomic int64_t done;     /* rows that may be read */
    _Atomic int64_t beats;    /* completed cycles, those of the stop sequence included */
    _Atomic int32_t reason;   /* -1 while controlling; set when everything about the stop is known */
    _Atomic int32_t owner;
    _Atomic int32_t over;     /* the stop sequence is complete */
    _Atomic int32_t *ask;     /* set by the caller to stop */
    _Atomic double watchdog_torques[N]; /* the watchdog's last command */
    double start;
    channel for_inertia, for_velocity, for_watchdog; /* states, from the synchronous task */
    channel inertia, velocity;                       /* coefficients, to it */
#ifdef HORIZON
    channel for_plan;
    planning planning;
#endif

    /* used by the synchronous task alone */
    double q[N], qd[N];       /* the last state that passed the checks */
    double sent[N];           /* the last command */
    double read_begin;        /* time before the reading of q */
    int64_t read_cycle;
    double still_q[N], still_reference[N]; /* position, and the reference when the position last changed */
    int still_cycles[N];                   /* in which the reference was too far away from that */
#ifdef OBSERVER_MEMORY
    double observer_memory[OBSERVER_MEMORY];
    int64_t observed_cycle;
#endif
} run_state;

static int controlling(run_state *r)
{
    return atomic_load(&r->reason) < 0;
}

/* -- settings ------------------------------------------------------------------------------------------------------ */

#define LONGEST_STOP 60.0 /* [s] */

static int positive(double x)
{
    return isfinite(x) && x > 0;
}

/* 0, or the number of the first setting that is invalid; the Python module has the names in this order. Limits of
 * speed and effort may be infinite only for the simulated plant. */
static int invalid_setting(const settings *set, int *joint, double *value)
{
    int simulated = set->read == simulated_read;
    *joint = -1;
    *value = 0;
#define REQUIRE(number, name, condition) \
    do {                                 \
        if (!(condition)) {              \
            *value = (double)(name);     \
            return number;               \
        }                                \
    } while (0)
    REQUIRE(1, set->period, positive(set->period));
    REQUIRE(2, set->inertia_period, positive(set->inertia_period));
    REQUIRE(3, set->velocity_period, positive(set->velocity_period));
    REQUIRE(4, set->cycles, set->cycles >= 1);
    REQUIRE(5, set->reference_rows, set->reference && set->reference_rows >= 1);
    REQUIRE(6, set->oldest, positive(set->oldest));
    REQUIRE(7, set->patience, positive(set->patience));
    REQUIRE(8, set->stop_time, set->stop_time >= 0 && set->stop_time <= LONGEST_STOP);
    REQUIRE(9, set->deadlines, set->deadlines >= 0);
    REQUIRE(10, set->priority, set->priority >= 0 && set->priority <= 99);
    REQUIRE(11, set->stop_mode, set->stop_mode >= HOLD && set->stop_mode <= BRAKE);
    REQUIRE(12, 0, set->read && set->write && (set->brake || set->stop_mode != BRAKE));
    REQUIRE(20, set->core, set->core >= 0 && set->core <= CPU_SETSIZE);
#ifdef HORIZON
    REQUIRE(21, 0, set->parameters && set->changes && set->plans);
    REQUIRE(22, set->plan_period, positive(set->plan_period));
    REQUIRE(23, set->oldest_plan, positive(set->oldest_plan));
    REQUIRE(24, set->first_iterations, set->first_iterations >= 1);
#endif
    for (*joint = 0; *joint < N; ++*joint) {
        int i = *joint;
        REQUIRE(13, set->kp[i], isfinite(set->kp[i]) && set->kp[i] >= 0);
        REQUIRE(14, set->kd[i], isfinite(set->kd[i]) && set->kd[i] >= 0);
        REQUIRE(15, set->lower[i], set->lower[i] < set->upper[i]);
        REQUIRE(16, set->speed[i], set->speed[i] > 0 && (simulated || isfinite(set->speed[i])));
        REQUIRE(17, set->effort[i], set->effort[i] > 0 && (simulated || isfinite(set->effort[i])));
        REQUIRE(18, set->following[i], set->following[i] > 0);
        REQUIRE(19, set->frozen[i], set->frozen[i] > 0);
    }
#undef REQUIRE
    *joint = -1;
    return 0;
}

static int64_t stop_capacity(const settings *set)
{
    return (int64_t)(set->stop_time / set->period) + 4;
}

/* How many rows run() needs room for; 0 if the settings are invalid. The stop sequence may be begun by the synchronous
 * task and then taken over by the watchdog. */
int64_t rows_needed(const settings *set)
{
    int joint;
    double value;
    return invalid_setting(set, &joint, &value) ? 0 : set->cycles + 2 * stop_capacity(set);
}

/* -- sensors ------------------------------------------------------------------------------------------------------- */

#define JUMP_MARGIN 1.1 /* times the speed limit: encoders have counts, clocks have jitter */

static int all_finite(const double *x, int count)
{
    for (int k = 0; k < count; ++k)
        if (!isfinite(x[k]))
            return 0;
    return 1;
}

typedef struct {
    enum reason reason; /* FINISHED: no fault */
    int joint;
    double value;
} fault;

static const fault no_fault = {FINISHED, -1, 0.0};

/* Reads the plant. Finds values that no working sensor gives: not finite, or further from the last position than the
 * speed limit allows in the time between the beginning of the last reading and the end of this one, at least one period
 * (sensors may sample at the same rate). A state that passes becomes the last good one. */
static fault measure(run_state *r, int64_t cycle, row *out, int32_t *hot)
{
    const settings *set = r->set;
    double begin = now();
    int status = set->read(set->plant, cycle, out->q, out->qd, hot);
    if (status)
        return (fault){PLANT_LOST, -1, (double)status};
    double cycles = fmax(1.0, (double)(cycle - r->read_cycle));
    double elapsed = fmax(now() - r->read_begin, cycles * set->period);
    for (int i = 0; i < N; ++i) {
        /* an arm that was stopped for its speed is faster than its limit for some cycles of the stop sequence */
        double step = out->q[i] - r->q[i], speed = fmax(set->speed[i], fabs(r->qd[i]));
        if (!isfinite(out->q[i]))
            return (fault){SENSOR_NAN, i, out->q[i]};
        if (!isfinite(out->qd[i]))
            return (fault){SENSOR_NAN, i, out->qd[i]};
        if (!(fabs(step) <= JUMP_MARGIN * speed * elapsed))
            return (fault){JUMP, i, step};
    }
    r->read_begin = begin;
    r->read_cycle = cycle;
    memcpy(r->q, out->q, sizeof r->q);
    memcpy(r->qd, out->qd, sizeof r->qd);
    return no_fault;
}

#define FROZEN_CYCLES 5 /* a joint needs some cycles to follow a step of the reference */

/* An unchanged position is that of a frozen encoder once the reference has moved away from where it was. */
static fault frozen(run_state *r, const row *out, const double *reference)
{
    for (int i = 0; i < N; ++i) {
        double moved = fabs(reference[i] - r->still_reference[i]);
        if (out->q[i] != r->still_q[i]) {
            r->still_q[i] = out->q[i];
            r->still_reference[i] = reference[i];
            r->still_cycles[i] = 0;
        } else if (!(moved <= r->set->frozen[i]) && ++r->still_cycles[i] >= FROZEN_CYCLES) {
            return (fault){FROZEN, i, moved};
        }
    }
    return no_fault;
}

static fault beyond_limits(const settings *set, const row *out, const double *reference, const int32_t *hot)
{
    for (int i = 0; i < N; ++i) {
        double q = out->q[i], qd = out->qd[i], error = q - reference[i];
        if (hot[i])
            return (fault){OVER_TEMPERATURE, i, (double)hot[i]};
        if (!(fabs(qd) <= set->speed[i]))
            return (fault){SPEED_LIMIT, i, qd};
        if (!(q >= set->lower[i] && q <= set->upper[i]))
            return (fault){POSITION_LIMIT, i, q};
        if (!(fabs(error) <= set->following[i]))
            return (fault){FOLLOWING, i, error};
    }
    return no_fault;
}

/* External torques from the momentum of the arm under the torques that were sent in the last cycle. */
static fault pushed(run_state *r, int64_t cycle, row *out)
{
#ifdef OBSERVER_MEMORY
    double contact[N], collision, next[OBSERVER_MEMORY];
    double elapsed = r->set->period * fmax(1.0, (double)(cycle - r->observed_cycle));
    observer(out->q, out->qd, r->sent, &elapsed, r->observer_memory, out->external, contact, &collision, next);
    memcpy(r->observer_memory, next, sizeof next);
    r->observed_cycle = cycle;
    for (int i = 0; i < N; ++i)
        if (!(contact[i] <= 0))
            return (fault){COLLISION, i, out->external[i]};
#else
    (void)r, (void)cycle, (void)out;
#endif
    return no_fault;
}

/* Reads the plant and makes all checks. */
static fault sense(run_state *r, int64_t cycle, const double *reference, row *out)
{
    int32_t hot[N] = {0};
    fault found = measure(r, cycle, out, hot);
    if (found.reason == FINISHED)
        found = frozen(r, out, reference);
    if (found.reason == FINISHED)
        found = beyond_limits(r->set, out, reference, hot);
    return found.reason == FINISHED ? pushed(r, cycle, out) : found;
}
