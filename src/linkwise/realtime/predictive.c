/* Predictive control in the two-rate structure: a background task improves a plan of torques, the synchronous task
 * applies it with the feedback gains that belong to it.
 *
 * This text follows definitions of HORIZON (steps), STEP [s], PARAMETERS (numbers of the costs, ROW of them a stage),
 * PLAN_ROOM, PLAN_REPORT and places in the report, and the generated function
 *   void next_plan(const double start[], const double parameters[], const double states[], const double torques[],
 *                  const double late[], const double regularisation[], double new_states[], double new_torques[],
 *                  double gains[], double report[], double room[]);
 * with MULTIPLIERS, a table of them and a comma, after the parameters where there are limits of states. The functions of
 * linkwise.optimal.predictive are those of the Python controller:
 *   plan_torques  torques of a plan with feedback
 *   watch    which readings are believed, and what the model misses
 *   guard    torques that keep the limits of speed and position one sample ahead
 *   progress whether the target is approached, where it is that of the standard problem
 *   aim      targets nearby, weights and limits of torques for the state that the arm is in; aim_tip for poses
 *
 * next_plan says whether the plan counts. A late or failed iteration leaves the last one in force, for at most ``oldest_plan``; then the loop stops as after
 * every other fault.
 */

#define STATE (2 * N)

static void rest_until(run_state *r, double when);

static void open_plans(plan_channel *c)
{
    c->shared = 0;
    c->back = 1;
    c->front = 2;
}

static plan *plan_to_write(plan_channel *c)
{
    return &c->data[c->back];
}

static void publish_plan(plan_channel *c)
{
    c->back = atomic_exchange_explicit(&c->shared, c->back | NEW, memory_order_acq_rel) & 3u;
}

static const plan *newest_plan(plan_channel *c)
{
    if (atomic_load_explicit(&c->shared, memory_order_relaxed) & NEW)
        c->front = atomic_exchange_explicit(&c->shared, c->front, memory_order_acq_rel) & 3u;
    return &c->data[c->front];
}

/* The parameters of the costs, which the caller changes while the loop runs: he makes ``changes`` odd while he writes.
 * What cannot be read whole within some tries, or has a number that is not finite, leaves those before in force. */
static void read_parameters(const settings *set, double *kept)
{
    double found[PARAMETERS];
    for (int tries = 0; tries < 100; ++tries) {
        int32_t before = atomic_load((_Atomic int32_t *)set->changes);
        memcpy(found, set->parameters, sizeof found);
        atomic_thread_fence(memory_order_acquire);
        if (before % 2 == 0 && atomic_load((_Atomic int32_t *)set->changes) == before) {
            if (all_finite(found, PARAMETERS))
                memcpy(kept, found, sizeof found);
            return;
        }
    }
}

/* Limits of torques, of all stages alike: those of the parameters, at most the effort limits. */
static void torque_limits(const settings *set, const double *parameters, double *low, double *high)
{
    for (int i = 0; i < N; ++i) {
        double effort = fmin(set->effort[i], FAR);
#ifdef LOWER_AT
        low[i] = fmax(parameters[LOWER_AT + i], -effort);
        high[i] = fmin(parameters[UPPER_AT + i], effort);
#else
        (void)parameters;
        low[i] = -effort;
        high[i] = effort;
#endif
    }
}

/* Limits of positions and speeds, finite. */
static void state_limits(const settings *set, double *lowest, double *highest, double *speed)
{
    for (int i = 0; i < N; ++i) {
        lowest[i] = fmax(set->lower[i], -FAR);
        highest[i] = fmin(set->upper[i], FAR);
        speed[i] = fmin(set->speed[i], FAR);
    }
}

/* Numbers of the problem for the state that the arm is in, as the Python controller sets them. */
static void set_numbers(run_state *r, const double *state, const double *disturbance, const double *given)
{
    planning *p = &r->planning;
    double low[N], high[N], lowest[N], highest[N], speed[N], near[N], hold[N], scale[N * N], least[N], most[N];
    double frequency = FREQUENCY;
    torque_limits(r->set, given, low, high);
    state_limits(r->set, lowest, highest, speed);
    memcpy(p->working, given, sizeof p->working);
#ifdef TARGET_AT
    const double *target = given + TARGET_AT;
#else
    const double *target = state;
#endif
    aim(state, target, disturbance, target_reach, low, high, lowest, highest, &frequency, near, hold, scale, least, most);
    for (int k = 0; k <= HORIZON; ++k) {
        double *row_of = p->working + k * ROW;
#ifdef LOWER_AT
        memcpy(row_of + LOWER_AT, least, sizeof least);
        memcpy(row_of + UPPER_AT, most, sizeof most);
#endif
#ifdef EFFORT_AT
        memcpy(row_of + EFFORT_AT, hold, sizeof hold);
        memcpy(row_of + SCALE_AT, scale, sizeof scale);
        for (int i = 0; i < N; ++i)
            row_of[TARGET_AT + i] = near[i] + (given[k * ROW + TARGET_AT + i] - given[TARGET_AT + i]);
#endif
    }
#ifdef TIP_AT
    double place[3], turn[4], distance[2];
    aim_tip(state, given + TIP_AT, given + TURN_AT, tip_reach, place, turn, distance);
    for (int k = 0; k <= HORIZON; ++k) {
        memcpy(p->working + k * ROW + TIP_AT, place, sizeof place);
        memcpy(p->working + k * ROW + TURN_AT, turn, sizeof turn);
    }
#endif
}

#ifdef PROGRESS_MEMORY
/* Whether the target of the newest plan is approached; a new target begins anew. */
static fault approaching(run_state *r, const plan *newest, double period)
{
    planning *p = &r->planning;
    double lowest[N], highest[N], speed[N], verdict[3], next[PROGRESS_MEMORY];
    if (memcmp(p->target, newest->target, sizeof p->target) != 0) {
        memcpy(p->target, newest->target, sizeof p->target);
        memset(p->way, 0, sizeof p->way);
    }
    state_limits(r->set, lowest, highest, speed);
#ifdef TIP_AT
    double place[3], turn[4], distance[2];
    aim_tip(p->state, p->target, p->target + 3, tip_reach, place, turn, distance);
    progress(p->state, &period, speed, distance, p->way, verdict, next);
#else
    progress(p->state, &period, speed, p->target, lowest, highest, p->way, verdict, next);
#endif
    memcpy(p->way, next, sizeof next);
    return verdict[0] > 1.5 ? (fault){NOT_CONVERGING, -1, verdict[2]} : no_fault;
}
#endif

/* Which readings are believed. A fault ends the loop; the stop begins at the state that is believed. */
static fault watched(run_state *r, int64_t cycle, row *out)
{
    planning *p = &r->planning;
    double lowest[N], highest[N], speed[N], verdict[4], next[WATCH_MEMORY];
    double elapsed = r->set->period * (double)(cycle - p->watched_cycle);
    state_limits(r->set, lowest, highest, speed);
    watch(out->q, out->qd, p->caused, &elapsed, speed, p->memory, p->state, p->modelled, p->disturbance, verdict,
          next);
    memcpy(p->memory, next, sizeof next);
    p->watched_cycle = cycle;
    if (verdict[0] <= 0.5 && verdict[3] > 0.5)
        return no_fault;
    memcpy(r->q, p->state, sizeof r->q);
    memcpy(r->qd, p->state + N, sizeof r->qd);
    int joint = (int)verdict[1];
    return (fault){verdict[0] > 1.5 ? FROZEN : JUMP, joint, joint >= 0 ? fabs(out->q[joint] - p->state[joint]) : 0.0};
}

/* Improves a plan for a state, with what the model misses after it, that was measured at ``stamp``. Returns whether the
 * new one can be used. */
static int improve(run_state *r, const double *state, const double *parameters, const plan *from, double stamp, plan *to)
{
    planning *p = &r->planning;
    double late = (stamp - from->stamp) / STEP;
    set_numbers(r, state, state + STATE, parameters);
    next_plan(state, p->working, MULTIPLIERS from->xs, from->us, &late, &p->mu, to->xs, to->us, to->gains, p->report,
              p->room);
    p->mu = p->report[REPORT_MU];
    to->stamp = stamp;
    torque_limits(r->set, parameters, to->low, to->high);
#ifdef TIP_AT
    memcpy(to->target, parameters + TIP_AT, 3 * sizeof(double));
    memcpy(to->target + 3, parameters + TURN_AT, 4 * sizeof(double));
#elif defined(PROGRESS_MEMORY)
    memcpy(to->target, parameters + TARGET_AT, N * sizeof(double));
#endif
    return p->report[REPORT_USABLE] > 0.5;
}

static void *plan_task(void *given)
{
    run_state *r = given;
    planning *p = &r->planning;
    const settings *set = r->set;
    plan_counts *counts = set->plans;
    double parameters[PARAMETERS], next = r->start;
    plan last = p->start;
    memcpy(parameters, p->parameters, sizeof parameters);
    while (controlling(r)) {
        double stamp, begin = now(), processor = seconds(CLOCK_THREAD_CPUTIME_ID);
        const double *state = newest(&r->for_plan, &stamp);
        read_parameters(set, parameters);
        plan *made = plan_to_write(&p->channel);
        if (improve(r, state, parameters, &last, stamp, made)) {
            last = *made;
            publish_plan(&p->channel);
        } else {
            ++counts->failed;
        }
        double finish = now(), used = seconds(CLOCK_THREAD_CPUTIME_ID) - processor;
        ++counts->iterations;
        counts->processor_sum += used;
        counts->processor_most = fmax(counts->processor_most, used);
        counts->duration_most = fmax(counts->duration_most, finish - begin);
        int64_t late = (int64_t)((finish - next) / set->plan_period);
        if (late > 0) {
            if (used > set->plan_period)
                ++counts->late_ours;
            else
                ++counts->late_scheduler;
        }
        next += (double)(1 + (late > 0 ? late : 0)) * set->plan_period;
        rest_until(r, next);
    }
    return NULL;
}

/* The first plan, before anything is commanded: from torques that hold the arm, improved some times. */
static fault first_plan(run_state *r, const double *q, const double *qd)
{
    planning *p = &r->planning;
    const settings *set = r->set;
    double state[STATE + N] = {0}, D[N * N], gravity[N];
    plan *from = &p->start, *to;
    open_plans(&p->channel);
    memcpy(p->parameters, set->parameters, sizeof p->parameters);
    if (!all_finite(p->parameters, PARAMETERS))
        return (fault){NO_PLAN, -1, 0.0};
    memcpy(state, q, N * sizeof(double));
    memcpy(state + N, qd, N * sizeof(double));
    inertia(q, D, gravity);
    for (int k = 0; k <= HORIZON; ++k)
        memcpy(from->xs + k * STATE, state, STATE * sizeof(double));
    for (int k = 0; k < HORIZON; ++k)
        for (int i = 0; i < N; ++i)
            from->us[k * N + i] = bounded(gravity[i], set->effort[i]);
    from->stamp = r->start;
    p->mu = 0.0;
    to = plan_to_write(&p->channel);
    for (int k = 0; k < set->first_iterations; ++k)
        if (improve(r, state, p->parameters, from, r->start, to))
            *from = *to;
        else if (k == 0)
            return (fault){NO_PLAN, -1, p->report[0]};
    r->start = fmax(r->start, now() + 0.01); /* the plan took its time */
    from->stamp = r->start;
    *to = *from;
    publish_plan(&p->channel);
    return no_fault;
}

/* Torques of the newest plan: u + K (x - x_plan) at the time since its state was measured, as the guard lets them pass. */
static fault planned(run_state *r, row *out, double *tau)
{
    const plan *p = newest_plan(&r->planning.channel);
    double age = fmax(0.0, r->start + out->time - p->stamp), at = age / STEP;
    out->plan_age = age;
    r->set->plans->time = out->time;
    if (!(age <= r->set->oldest_plan) || !(at < (double)HORIZON))
        return (fault){OLD_PLAN, -1, age};
#ifdef PROGRESS_MEMORY
    fault lost = approaching(r, p, r->set->period);
    if (lost.reason != FINISHED)
        return lost;
#endif
    int k = (int)at;
    double part = at - (double)k;
    const double *before = p->xs + k * STATE;
    planning *own = &r->planning;
    double wanted[N], lowest[N], highest[N], speed[N], low[N], high[N], stop = 0.0, action, period = r->set->period;
    for (int i = 0; i < N; ++i) { /* the guard has the limits */
        low[i] = -FAR;
        high[i] = FAR;
    }
    if (plan_torques(own->state, before, before + STATE, &part, p->us + k * N, p->gains + k * N * STATE, low, high, wanted))
        return (fault){TORQUE_NAN, -1, (double)NAN};
    state_limits(r->set, lowest, highest, speed);
    guard(own->state, own->modelled, wanted, own->disturbance, &stop, &period, p->low, p->high, lowest, highest, speed, tau,
          own->caused, &action);
    return no_fault;
}
