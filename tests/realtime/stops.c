/* Every stop of the loop by fault injection: a plant that is simulated by the clock, in closed loop, and faults in it.
 * Follows the generated source of a robot with two joints. Prints one line of JSON per run. */

enum test_fault {
    T_NONE, T_NAN, T_INF_SPEED, T_JUMP, T_FREEZE, T_LOST, T_HOT, T_DEADLINES, T_WATCHDOG, T_FOLLOWING, T_STALE,
    T_REFERENCE, T_TORQUE, T_SPEED, T_POSITION, T_WRITE, T_ASKED, T_HANG_IN_STOP, T_NAN_IN_STOP, T_BRAKE_FAILS, T_COUNT
};

#define PERIOD 1e-3
#define CYCLES 120
#define FAULT_CYCLE 60
#define EFFORT 60.0

typedef struct {
    double q[N], qd[N], tau[N], begin, largest, last[N], still_q, still_qd;
    int64_t steps, writes, brakes;
    int fault, braked, finite, frozen, hung;
    int32_t *ask;
} test_plant;

static void test_advance(test_plant *p)
{
    int64_t due = (int64_t)((now() - p->begin) / PERIOD);
    for (; p->steps < due; ++p->steps) {
        double next_q[N], next_qd[N], tau[N];
        memcpy(tau, p->tau, sizeof tau);
        if (p->fault == T_FOLLOWING && p->writes > FAULT_CYCLE)
            tau[0] += 300.0;
        if (!p->braked && p->writes) { /* held until the first command */
            plant(p->q, p->qd, tau, next_q, next_qd);
            memcpy(p->q, next_q, sizeof p->q);
            memcpy(p->qd, next_qd, sizeof p->qd);
        }
    }
}

static int test_read(void *self, int64_t cycle, double *q, double *qd, int32_t *hot)
{
    test_plant *p = self;
    test_advance(p);
    memcpy(q, p->q, sizeof p->q);
    memcpy(qd, p->qd, sizeof p->qd);
    if (p->fault == T_HANG_IN_STOP && cycle > CYCLES && !p->hung) {
        p->hung = 1;
        usleep(400000);
    }
    if (p->fault == T_NAN_IN_STOP && cycle > CYCLES)
        q[0] = NAN;
    if (cycle < FAULT_CYCLE)
        return 0;
    switch (p->fault) {
    case T_NAN:
        q[1] = NAN;
        break;
    case T_INF_SPEED:
        qd[0] = -INFINITY;
        break;
    case T_JUMP:
        q[1] += 0.8;
        break;
    case T_FREEZE:
        if (!p->frozen) {
            p->frozen = 1;
            p->still_q = q[0];
            p->still_qd = qd[0];
        }
        q[0] = p->still_q;
        qd[0] = p->still_qd;
        break;
    case T_LOST:
        return -7;
    case T_HOT:
        hot[1] = 1;
        break;
    case T_DEADLINES:
        usleep(4000);
        break;
    case T_WATCHDOG:
        if (!p->hung) {
            p->hung = 1;
            usleep(500000);
        }
        break;
    case T_ASKED:
        *p->ask = 1;
        break;
    }
    return 0;
}

static int test_write(void *self, const double *tau)
{
    test_plant *p = self;
    test_advance(p);
    for (int i = 0; i < N; ++i) {
        p->finite &= isfinite(tau[i]) != 0;
        p->largest = fmax(p->largest, fabs(tau[i]));
    }
    memcpy(p->tau, tau, sizeof p->tau);
    memcpy(p->last, tau, sizeof p->last);
    return ++p->writes > FAULT_CYCLE && p->fault == T_WRITE ? -3 : 0;
}

static int test_brake(void *self)
{
    test_plant *p = self;
    ++p->brakes;
    if (p->fault == T_BRAKE_FAILS)
        return 0;
    p->braked = 1;
    memset(p->qd, 0, sizeof p->qd);
    return 1;
}

static void print_numbers(const char *name, const double *x)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < N; ++i)
        if (isfinite(x[i]))
            printf("%s%.17g", i ? ", " : "", x[i]);
        else
            printf("%snull", i ? ", " : "");
    printf("], ");
}

/* Returns 0 if the machine was too busy for the loop to get into its stride. */
static int one_run(int kind, int mode, int brakes)
{
    static double reference[CYCLES][3 * N];
    for (int k = 0; k < CYCLES; ++k) /* from rest, up to 0.36 rad/s */
        for (int i = 0; i < N; ++i) {
            double t = k * PERIOD, a = i ? -3.0 : 3.0;
            reference[k][i] = 0.5 * a * t * t;
            reference[k][N + i] = a * t;
            reference[k][2 * N + i] = a;
        }
    if (kind == T_REFERENCE)
        reference[FAULT_CYCLE][1] = NAN;
    if (kind == T_TORQUE)
        reference[FAULT_CYCLE][2 * N] = 1.7e308;
    int32_t ask = 0;
    test_plant p = {.fault = kind, .finite = 1, .ask = &ask, .begin = now()};
    settings set = {.period = PERIOD, .inertia_period = kind == T_STALE ? 5.0 : 5e-3, .velocity_period = 5e-3,
                    .cycles = CYCLES, .reference = &reference[0][0], .reference_rows = CYCLES,
                    .oldest = kind == T_STALE ? 0.045 : 20, .patience = 20, .stop_time = 0.06, .stop_mode = mode,
                    .priority = 80, .deadlines = kind == T_DEADLINES ? 6 : 0, .read = test_read, .write = test_write,
                    .brake = brakes ? test_brake : NULL, .plant = &p};
    if (kind == T_WATCHDOG || kind == T_HANG_IN_STOP)
        set.patience = 0.1;
    for (int i = 0; i < N; ++i) {
        set.kp[i] = 900, set.kd[i] = 60, set.lower[i] = -2, set.upper[i] = 2;
        set.speed[i] = kind == T_SPEED ? 0.15 : kind == T_FOLLOWING ? 50 : 3, set.effort[i] = EFFORT;
        set.following[i] = 0.1, set.frozen[i] = 0.005;
    }
    if (kind == T_POSITION)
        set.upper[0] = 0.01;
    outcome result;
    row *rows = calloc((size_t)rows_needed(&set), sizeof *rows);
    run(&set, &result, rows, &ask);
    if (result.rows < FAULT_CYCLE / 2) {
        fprintf(stderr, "%lld cycles only\n", (long long)result.rows);
        return 0; /* the rows may still be in use */
    }
    const row *stop = rows + result.stop_first;
    printf("{\"kind\": %d, \"mode\": %d, \"brakes\": %d, \"reason\": %d, \"joint\": %d, ", kind, mode, brakes, result.reason,
           result.joint);
    printf("\"braked\": %d, \"asked_brakes\": %lld, \"rows\": %lld, \"finite\": %d, \"largest\": %.17g, ", result.braked,
           (long long)p.brakes, (long long)result.rows, p.finite, p.largest);
    print_numbers("last", p.last);
    print_numbers("q", p.q);
    print_numbers("qd", p.qd);
    print_numbers("row_q", rows[result.rows - 1].q);
    print_numbers("row_qd", rows[result.rows - 1].qd);
    print_numbers("before_q", rows[result.rows - 2].q);
    print_numbers("before_qd", rows[result.rows - 2].qd);
    print_numbers("stop_q", stop[result.stop_rows - 1].q);
    print_numbers("stop_qd", stop[result.stop_rows - 1].qd);
    printf("\"stop\": [");
    for (int64_t k = 0; k < result.stop_rows; ++k) {
        printf("%s[%.9g", k ? ", " : "", stop[k].time - stop[0].time);
        for (int i = 0; i < N; ++i)
            printf(", %.17g", stop[k].tau[i]);
        printf("]");
    }
    printf("]}\n");
    fflush(stdout);
    if (!result.hung)
        free(rows);
    else
        usleep(600000);
    return 1;
}

static void some_runs(int kind, int mode, int brakes)
{
    for (int attempt = 0; attempt < 10 && !one_run(kind, mode, brakes); ++attempt)
        ;
}

int main(void)
{
    for (int kind = 0; kind < T_COUNT; ++kind) {
        some_runs(kind, HOLD, 0);
        some_runs(kind, RAMP, 0);
        some_runs(kind, BRAKE, 1);
        if (kind <= T_JUMP || kind == T_BRAKE_FAILS)
            some_runs(kind, HOLD, 1);
    }
    return 0;
}
