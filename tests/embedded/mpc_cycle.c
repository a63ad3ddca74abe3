/* A whole cycle of predictive control with the functions of a package: read, check, plan, limit, stop. As
 * optimal.Predictive, for the package of two_link. */

#include <string.h>

#include "two_link.h"

#define N TWO_LINK_N
#define X (2 * N)
#define H TWO_LINK_MPC_HORIZON
#define ROW TWO_LINK_MPC_ROW
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

enum status { PLANNED, KEPT, STOPPED, NOT_CONVERGING };

static const double step = 0.03, oldest = 0.5 * H * 0.03, frequency[1] = {10.0};
static double memory[LENGTH(two_link_mpc_watch_memory)], way[LENGTH(two_link_mpc_progress_memory)];
static double acceleration[N], regularisation[1], period[1], last;
static double states[(H + 1) * X], torques[H * N], gains[H * N * X], age; /* the plan */
static double goal[N];
static int samples, planned;

void aim(const double *target)
{
    memcpy(goal, target, sizeof goal);
    memset(way, 0, sizeof way);
}

void reset(void)
{
    memset(memory, 0, sizeof memory);
    memset(way, 0, sizeof way);
    memset(acceleration, 0, sizeof acceleration);
    regularisation[0] = period[0] = 0.0;
    samples = planned = 0;
}

/* A better plan from the last one, or from rest; 1 if there is one. */
static int improved(const double *x, const double *disturbance, double *least, double *most)
{
    double parameters[(H + 1) * ROW], near[N], hold[N], scale[N * N], report[TWO_LINK_MPC_REPORT], room[TWO_LINK_MPC_ROOM];
    double old_states[(H + 1) * X], old_torques[H * N], new_states[(H + 1) * X], new_torques[H * N], new_gains[H * N * X];
    double late[1] = {0.0};
    int fresh = !planned || age > oldest, found = 0;
    two_link_mpc_aim(x, goal, disturbance, two_link_mpc_aim_reach, two_link_mpc_guard_low, two_link_mpc_guard_high,
                     two_link_mpc_guard_lowest, two_link_mpc_guard_highest, frequency, near, hold, scale, least, most);
    memcpy(parameters, two_link_mpc_parameters, sizeof parameters);
    for (int k = 0; k <= H; ++k) {
        double *row = parameters + k * ROW;
        memcpy(row + TWO_LINK_MPC_AT_JOINTS_TARGET, near, sizeof near);
        memcpy(row + TWO_LINK_MPC_AT_EFFORT_TARGET, hold, sizeof hold);
        memcpy(row + TWO_LINK_MPC_AT_EFFORT_SCALE, scale, sizeof scale);
        memcpy(row + TWO_LINK_MPC_AT_TORQUE_LOWER, least, N * sizeof(double));
        memcpy(row + TWO_LINK_MPC_AT_TORQUE_UPPER, most, N * sizeof(double));
    }
    if (fresh) {
        for (int k = 0; k <= H; ++k)
            memcpy(old_states + k * X, x, X * sizeof(double));
        for (int k = 0; k < H; ++k)
            memcpy(old_torques + k * N, hold, sizeof hold);
    } else {
        late[0] = age / step;
        memcpy(old_states, states, sizeof states);
        memcpy(old_torques, torques, sizeof torques);
    }
    for (int turn = 0; turn < (fresh ? 20 : 1); ++turn) {
        two_link_mpc(x, parameters, old_states, old_torques, late, regularisation, new_states, new_torques, new_gains, report,
                     room);
        regularisation[0] = report[TWO_LINK_MPC_REPORT_REGULARISATION];
        if (report[TWO_LINK_MPC_REPORT_USABLE] < 0.5)
            continue;
        late[0] = 0.0;
        memcpy(old_states, new_states, sizeof new_states);
        memcpy(old_torques, new_torques, sizeof new_torques);
        memcpy(states, old_states, sizeof states);
        memcpy(torques, old_torques, sizeof torques);
        memcpy(gains, new_gains, sizeof gains);
        found = 1;
    }
    return found;
}

int cycle(double t, const double *q, const double *qd, double *tau)
{
    double x[X], modelled[X], disturbance[N], verdict[4], next[LENGTH(memory)], far[3], further[LENGTH(way)];
    double since[1] = {samples ? t - last : 0.0}, stop[1] = {0.0}, wanted[N] = {0}, action[1], least[N], most[N];
    int status = PLANNED;
    age += since[0];
    period[0] = since[0] > 0.0 ? since[0] : (period[0] > 0.0 ? period[0] : step);
    last = t;
    ++samples;
    two_link_mpc_watch(q, qd, acceleration, since, two_link_mpc_watch_speed, memory, x, modelled, disturbance, verdict, next);
    memcpy(memory, next, sizeof memory);
    memset(tau, 0, N * sizeof(double));
    if (verdict[3] < 0.5)
        return STOPPED; /* nothing has been measured yet */
    if (verdict[0] > 0.5) {
        status = STOPPED;
    } else {
        two_link_mpc_progress(x, since, two_link_mpc_progress_speed, goal, two_link_mpc_progress_lowest,
                              two_link_mpc_progress_highest, way, far, further);
        memcpy(way, further, sizeof way);
        status = far[0] > 1.5 ? NOT_CONVERGING : PLANNED;
    }
    if (status == PLANNED) {
        if (verdict[2] < 0.5 && improved(x, disturbance, least, most)) {
            planned = 1;
            age = 0.0;
        } else {
            status = !planned || age > oldest ? STOPPED : KEPT;
        }
    }
    if (status <= KEPT) {
        double at = age / step, part[1];
        int k = at < H - 1 ? (int)at : H - 1;
        part[0] = at - k;
        for (int i = 0; i < N; ++i) {
            least[i] = -1e9; /* the guard has the limits */
            most[i] = 1e9;
        }
        two_link_mpc_torques(x, states + k * X, states + (k + 1) * X, part, torques + k * N, gains + k * N * X, least, most,
                             wanted);
    }
    stop[0] = status > KEPT;
    two_link_mpc_guard(x, modelled, wanted, disturbance, stop, period, two_link_mpc_guard_low, two_link_mpc_guard_high,
                       two_link_mpc_guard_lowest, two_link_mpc_guard_highest, two_link_mpc_guard_speed, tau, acceleration,
                       action);
    return status;
}
