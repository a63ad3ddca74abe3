/* -- a simulated plant --------------------------------------------------------------------------------------------- */

enum injected { NOTHING, NAN_SENSOR, LOST, HOT, JUMPED, SLEEP, SPIN, FREEZE, PUSH };

typedef struct {
    double q[N], qd[N];
    _Atomic double tau[N]; /* the watchdog may write while the synchronous task is reading */
    double frozen_q[N], frozen_qd[N];
    int64_t cycle, fault_cycle;
    int32_t fault, fault_joint;
    double fault_value;
    int32_t brakes, braked, is_frozen;
} simulated;

static void simulate_until(simulated *p, int64_t cycle)
{
    for (; p->cycle < cycle; ++p->cycle) {
        double next_q[N], next_qd[N], tau[N];
        if (p->braked)
            continue;
        for (int i = 0; i < N; ++i)
            tau[i] = atomic_load(&p->tau[i]);
        if (p->fault == PUSH && p->cycle >= p->fault_cycle)
            tau[p->fault_joint] += p->fault_value;
        plant(p->q, p->qd, tau, next_q, next_qd);
        memcpy(p->q, next_q, sizeof p->q);
        memcpy(p->qd, next_qd, sizeof p->qd);
    }
}

int simulated_read(void *self, int64_t cycle, double *q, double *qd, int32_t *hot)
{
    simulated *p = self;
    simulate_until(p, cycle);
    memcpy(q, p->q, sizeof p->q);
    memcpy(qd, p->qd, sizeof p->qd);
    if (!p->fault || cycle < p->fault_cycle)
        return 0;
    switch (p->fault) {
    case NAN_SENSOR:
        q[p->fault_joint] = (double)NAN;
        break;
    case LOST:
        return -1;
    case HOT:
        hot[p->fault_joint] = 1;
        break;
    case JUMPED:
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
    case FREEZE:
        if (!p->is_frozen) {
            memcpy(p->frozen_q, q, sizeof p->frozen_q);
            memcpy(p->frozen_qd, qd, sizeof p->frozen_qd);
            p->is_frozen = 1;
        }
        q[p->fault_joint] = p->frozen_q[p->fault_joint];
        qd[p->fault_joint] = p->frozen_qd[p->fault_joint];
        break;
    }
    return 0;
}

int simulated_write(void *self, const double *tau)
{
    for (int i = 0; i < N; ++i)
        atomic_store(&((simulated *)self)->tau[i], tau[i]);
    return 0;
}

int simulated_brake(void *self)
{
    simulated *p = self;
    p->braked = p->brakes;
    if (p->braked)
        memset(p->qd, 0, sizeof p->qd);
    return p->braked;
}

