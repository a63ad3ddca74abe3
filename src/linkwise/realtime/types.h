/* What a caller of the two-rate runtime gives and gets. It follows a definition of JOINTS and includes <stdint.h>. */

#define N JOINTS

enum reason {
    FINISHED, ASKED, SENSOR_NAN, REFERENCE_NAN, TORQUE_NAN, PLANT_LOST, OVER_TEMPERATURE, POSITION_LIMIT,
    SPEED_LIMIT, DEADLINES, STALE, WATCHDOG, JUMP, FROZEN, FOLLOWING, CONFIGURATION, THREADS, COLLISION, OLD_PLAN, NO_PLAN,
    NOT_CONVERGING
};
enum missed { ON_TIME, OURS, SCHEDULER, PLANT };
enum stop_mode { HOLD, RAMP, BRAKE };

/* A driver; read and write return 0 for success. ``cycle`` counts periods, missed ones included. ``brake`` returns 1
 * once the brakes hold the arm, 0 if there are none; it may be NULL. */
typedef int (*read_function)(void *self, int64_t cycle, double *q, double *qd, int32_t *hot);
typedef int (*write_function)(void *self, const double *tau);
typedef int (*brake_function)(void *self);

#ifdef HORIZON
/* What became of the plans of predictive control; times in s. */
typedef struct {
    int64_t iterations, failed, late_ours, late_scheduler;
    double processor_sum, processor_most, duration_most;
    double time; /* of the last cycle, since the start of the loop */
} plan_counts;
#endif

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
    int32_t core;        /* on which the synchronous task runs: its number and 1; 0: any */
    read_function read;
    write_function write;
    brake_function brake;
    void *plant;
    const char *log;
#ifdef HORIZON
    const double *parameters; /* of the costs; may be changed while the loop runs */
    int32_t *changes;         /* odd while they are being changed */
    plan_counts *plans;
    double plan_period;       /* [s] */
    double oldest_plan;       /* largest age of a plan [s] */
    int64_t first_iterations; /* of the first plan */
#endif
} settings;

/* One row per cycle. All doubles, so that callers can use the rows as one array. */
typedef struct {
    double time, late, task, finish, processor, inertia_age, velocity_age, missed; /* [s] */
    double q[N], qd[N], tau[N];
#ifdef OBSERVER_MEMORY
    double external[N]; /* estimated external torques */
#endif
#ifdef HORIZON
    double plan_age; /* of the plan in use */
#endif
} row;

typedef struct {
    int32_t reason, joint, fifo_error, lock_error, log_error;
    int32_t hung;    /* a driver call did not return: its thread is lost, and its memory is kept */
    int32_t braked;  /* the brakes reported that they hold the arm */
    int32_t core_error; /* why the core was refused */
    int32_t setting; /* which setting is invalid, for CONFIGURATION: see invalid_setting() */
    int64_t cycle, rows;
    int64_t stop_first, stop_rows; /* rows of the stop sequence */
    double value;
} outcome;

/* Follows the reference, then stops; returns when the stop sequence is complete. ``rows`` has rows_needed(set) rows;
 * another thread stops the loop by setting ``ask`` to 1. */
void run(const settings *set, outcome *result, row *rows, int32_t *ask);
int64_t rows_needed(const settings *set);

/* Durations of ``calls`` synchronous tasks [s], ``count`` of them. */
void time_synchronous(const double *numbers, double *result, int64_t count, int64_t calls);

/* The simulated plant as a driver. */
int simulated_read(void *self, int64_t cycle, double *q, double *qd, int32_t *hot);
int simulated_write(void *self, const double *tau);
int simulated_brake(void *self);

