/* The functions of FMI 3.0 for co-simulation and model exchange. */

#include "fmu_core.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef FMI3_FUNCTION_PREFIX
#define FMI3(name) FMU_JOIN(FMI3_FUNCTION_PREFIX, name)
#else
#define FMI3(name) name
#endif
#define STATUS(name) FMU_EXPORT status FMI3(name)
#define FMI(name) FMU_JOIN(fmi3, name)
#define STATE(name) FMU_JOIN(FMI(name), FMUState)
#define FMU_DESERIALIZE Deserialize
#define FMU_GET_DERIVATIVES GetContinuousStateDerivatives

typedef bool flag;
typedef uint8_t byte;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } status;
typedef void (*logger)(void *environment, status state, const char *category, const char *message);
typedef struct {
    fmu_state s;
    logger log;
    void *environment;
    bool exchange; /* whether it is for model exchange */
} instance;

static status logged(instance *m, status found, const char *category, const char *message)
{
    if (m->log != NULL) {
        m->log(m->environment, found, category, message);
    }
    return found;
}

#include "fmu_functions.h"

FMU_EXPORT const char *FMI3(fmi3GetVersion)(void);
FMU_EXPORT const char *FMI3(fmi3GetVersion)(void)
{
    return "3.0";
}

static void *made(const char *token, void *environment, logger log, bool exchange)
{
    instance *m = NULL;
    if (token == NULL || strcmp(token, MODEL_TOKEN) != 0) {
        if (log != NULL) {
            log(environment, ERROR, "logStatusError", "the instantiation token differs");
        }
        return NULL;
    }
    m = calloc(1, sizeof *m);
    if (m != NULL) {
        m->log = log;
        m->environment = environment;
        m->exchange = exchange;
        fmu_reset(&m->s);
    }
    return m;
}

FMU_EXPORT void *FMI3(fmi3InstantiateModelExchange)(const char *name, const char *token, const char *resources,
                                                    bool visible, bool logging, void *environment, logger log)
{
    (void)name, (void)resources, (void)visible, (void)logging;
#if MODEL_EXCHANGE
    return made(token, environment, log, true);
#else
    (void)token;
    if (log != NULL) {
        log(environment, ERROR, "logStatusError", "this FMU has no model exchange");
    }
    return NULL;
#endif
}

FMU_EXPORT void *FMI3(fmi3InstantiateCoSimulation)(const char *name, const char *token, const char *resources,
                                                   bool visible, bool logging, bool event_mode, bool early_return,
                                                   const uint32_t intermediate[], size_t count, void *environment,
                                                   logger log, void (*update)(void))
{
    (void)name, (void)resources, (void)visible, (void)logging, (void)event_mode, (void)early_return;
    (void)intermediate, (void)count, (void)update;
    return made(token, environment, log, false);
}

FMU_EXPORT void *FMI3(fmi3InstantiateScheduledExecution)(const char *name, const char *token, const char *resources,
                                                         bool visible, bool logging, void *environment, logger log,
                                                         void (*clock)(void), void (*lock)(void), void (*unlock)(void))
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)clock, (void)lock, (void)unlock;
    if (log != NULL) {
        log(environment, ERROR, "logStatusError", "this FMU has no scheduled execution");
    }
    return NULL;
}

FMU_EXPORT void FMI3(fmi3FreeInstance)(void *c)
{
    free(c);
}

STATUS(fmi3EnterInitializationMode)(void *c, bool has_tolerance, double tolerance, double start, bool has_stop,
                                    double stop)
{
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    fmu_set_time(state_of(c), start);
    return phase(c, FMU_INSTANTIATED, FMU_INITIALIZATION, "fmi3EnterInitializationMode: not just instantiated");
}

STATUS(fmi3GetFloat64)(void *c, const uint32_t refs[], size_t count, double values[], size_t size)
{
    if (size != count) {
        return said(c, "fmi3GetFloat64: all variables are scalars");
    }
    return said(c, fmu_get(state_of(c), refs, count, values));
}

STATUS(fmi3SetFloat64)(void *c, const uint32_t refs[], size_t count, const double values[], size_t size)
{
    if (size != count) {
        return said(c, "fmi3SetFloat64: all variables are scalars");
    }
    return said(c, fmu_set(state_of(c), refs, count, values));
}

/* All variables are Float64. */
#define NO_VARIABLES(name, type) \
    STATUS(fmi3Get##name)(void *c, const uint32_t refs[], size_t count, type values[], size_t size) \
    { \
        (void)refs, (void)values, (void)size; \
        return said(c, count == 0u ? NULL : "fmi3Get" #name ": all variables are Float64"); \
    } \
    STATUS(fmi3Set##name)(void *c, const uint32_t refs[], size_t count, const type values[], size_t size) \
    { \
        (void)refs, (void)values, (void)size; \
        return said(c, count == 0u ? NULL : "fmi3Set" #name ": all variables are Float64"); \
    }
typedef const char *text;
NO_VARIABLES(Float32, float)
NO_VARIABLES(Int8, int8_t)
NO_VARIABLES(UInt8, uint8_t)
NO_VARIABLES(Int16, int16_t)
NO_VARIABLES(UInt16, uint16_t)
NO_VARIABLES(Int32, int32_t)
NO_VARIABLES(UInt32, uint32_t)
NO_VARIABLES(Int64, int64_t)
NO_VARIABLES(UInt64, uint64_t)
NO_VARIABLES(Boolean, bool)
NO_VARIABLES(String, text)

/* A function of variables or modes that this FMU does not have: an error. */
#define ABSENT(name, ...) \
    STATUS(name)(void *c, __VA_ARGS__) \
    { \
        return said(c, #name ": not available in this FMU"); \
    }
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
ABSENT(fmi3GetBinary, const uint32_t refs[], size_t count, size_t sizes[], const uint8_t *values[], size_t size)
ABSENT(fmi3SetBinary, const uint32_t refs[], size_t count, const size_t sizes[], const uint8_t *const values[],
       size_t size)
ABSENT(fmi3GetClock, const uint32_t refs[], size_t count, bool values[])
ABSENT(fmi3SetClock, const uint32_t refs[], size_t count, const bool values[])
ABSENT(fmi3GetNumberOfVariableDependencies, uint32_t ref, size_t *count)
ABSENT(fmi3GetVariableDependencies, uint32_t ref, size_t elements[], uint32_t independents[], size_t others[],
       int kinds[], size_t count)
ABSENT(fmi3GetAdjointDerivative, const uint32_t unknowns[], size_t n_unknowns, const uint32_t knowns[],
       size_t n_knowns, const double seed[], size_t n_seed, double found[], size_t n_found)
ABSENT(fmi3GetIntervalDecimal, const uint32_t refs[], size_t count, double intervals[], int qualifiers[])
ABSENT(fmi3GetIntervalFraction, const uint32_t refs[], size_t count, uint64_t counters[], uint64_t resolutions[],
       int qualifiers[])
ABSENT(fmi3GetShiftDecimal, const uint32_t refs[], size_t count, double shifts[])
ABSENT(fmi3GetShiftFraction, const uint32_t refs[], size_t count, uint64_t counters[], uint64_t resolutions[])
ABSENT(fmi3SetIntervalDecimal, const uint32_t refs[], size_t count, const double intervals[])
ABSENT(fmi3SetIntervalFraction, const uint32_t refs[], size_t count, const uint64_t counters[],
       const uint64_t resolutions[])
ABSENT(fmi3SetShiftDecimal, const uint32_t refs[], size_t count, const double shifts[])
ABSENT(fmi3SetShiftFraction, const uint32_t refs[], size_t count, const uint64_t counters[],
       const uint64_t resolutions[])
ABSENT(fmi3GetOutputDerivatives, const uint32_t refs[], size_t count, const int32_t orders[], double values[],
       size_t size)
ABSENT(fmi3ActivateModelPartition, uint32_t clock, double time)

STATUS(fmi3GetDirectionalDerivative)(void *c, const uint32_t unknowns[], size_t n_unknowns, const uint32_t knowns[],
                                     size_t n_knowns, const double seed[], size_t n_seed, double found[],
                                     size_t n_found)
{
    if (n_seed != n_knowns || n_found != n_unknowns) {
        return said(c, "fmi3GetDirectionalDerivative: all variables are scalars");
    }
    return said(c, fmu_directional(state_of(c), unknowns, n_unknowns, knowns, n_knowns, seed, found));
}

#define NOTHING_TO_DO(name) \
    STATUS(name)(void *c) \
    { \
        (void)c; \
        return OK; \
    }
NOTHING_TO_DO(fmi3EnterConfigurationMode)
NOTHING_TO_DO(fmi3ExitConfigurationMode)
NOTHING_TO_DO(fmi3EvaluateDiscreteStates)
NOTHING_TO_DO(fmi3EnterStepMode)

STATUS(fmi3UpdateDiscreteStates)(void *c, bool *again, bool *terminate, bool *nominals, bool *values, bool *defined,
                                 double *next)
{
    (void)c;
    *again = *terminate = *nominals = *values = *defined = false;
    *next = 0.0;
    return OK;
}

/* -- model exchange ----------------------------------------------------------------------------------------------- */

STATUS(fmi3GetNumberOfEventIndicators)(void *c, size_t *count)
{
    (void)c;
    *count = 0;
    return OK;
}

STATUS(fmi3GetNumberOfContinuousStates)(void *c, size_t *count)
{
    (void)c;
    *count = MODEL_STATES;
    return OK;
}

/* -- co-simulation ------------------------------------------------------------------------------------------------ */

STATUS(fmi3DoStep)(void *c, double time, double length, bool no_return, bool *event, bool *terminate, bool *early,
                   double *last)
{
    instance *m = c;
    status found;
    (void)no_return;
    *event = *terminate = *early = false;
    *last = m->s.v[0];
    if (m->s.phase != FMU_RUNNING || m->exchange) {
        return said(m, "fmi3DoStep: not initialized for co-simulation");
    }
    found = stepped(m, fmu_advance(&m->s, time, length));
    *last = m->s.v[0];
    return found;
}
