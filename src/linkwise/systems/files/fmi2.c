/* The functions of FMI 2.0 for co-simulation and model exchange. */

#include "fmu_core.h"

#ifdef FMI2_FUNCTION_PREFIX
#define FMI2(name) FMU_JOIN(FMI2_FUNCTION_PREFIX, name)
#else
#define FMI2(name) name
#endif
#define STATUS(name) FMU_EXPORT status FMI2(name)
#define FMI(name) FMU_JOIN(fmi2, name)
#define STATE(name) FMU_JOIN(FMI(name), FMUstate)
#define FMU_DESERIALIZE DeSerialize
#define FMU_GET_DERIVATIVES GetDerivatives

typedef int flag;
typedef char byte;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING } status;
typedef void (*logger)(void *environment, const char *instance, status state, const char *category,
                       const char *message, ...);
typedef struct {
    logger log;
    void *(*allocate)(size_t count, size_t size);
    void (*release)(void *memory);
    void (*step_finished)(void *environment, status state);
    void *environment;
} callbacks;
typedef struct {
    int new_states_needed, terminate, nominals_changed, values_changed, next_event_defined;
    double next_event;
} event_info;
typedef struct {
    fmu_state s;
    logger log;
    void *environment;
    char *name;
    int exchange; /* whether it is for model exchange */
} instance;

static status logged(instance *m, status found, const char *category, const char *message)
{
    if (m->log != NULL) {
        m->log(m->environment, m->name, found, category, "%s", message);
    }
    return found;
}

#include "fmu_functions.h"

FMU_EXPORT const char *FMI2(fmi2GetTypesPlatform)(void);
FMU_EXPORT const char *FMI2(fmi2GetTypesPlatform)(void)
{
    return "default";
}

FMU_EXPORT const char *FMI2(fmi2GetVersion)(void);
FMU_EXPORT const char *FMI2(fmi2GetVersion)(void)
{
    return "2.0";
}

FMU_EXPORT void *FMI2(fmi2Instantiate)(const char *name, int type, const char *guid, const char *resources,
                                       const callbacks *functions, int visible, int logging)
{
    instance *m;
    (void)resources, (void)visible, (void)logging;
    if (guid == NULL || strcmp(guid, MODEL_TOKEN) != 0 || (type == 0 && !MODEL_EXCHANGE)) {
        if (functions != NULL && functions->log != NULL) {
            functions->log(functions->environment, name, ERROR, "logStatusError", "%s",
                           type == 0 && !MODEL_EXCHANGE ? "this FMU has no model exchange" : "the GUID differs");
        }
        return NULL;
    }
    m = calloc(1, sizeof *m);
    if (m == NULL) {
        return NULL;
    }
    m->name = fmu_copied(name);
    if (m->name == NULL) {
        free(m);
        return NULL;
    }
    m->log = functions != NULL ? functions->log : NULL;
    m->environment = functions != NULL ? functions->environment : NULL;
    m->exchange = type == 0;
    fmu_reset(&m->s);
    return m;
}

FMU_EXPORT void FMI2(fmi2FreeInstance)(void *c)
{
    if (c != NULL) {
        free(((instance *)c)->name);
        free(c);
    }
}

STATUS(fmi2SetupExperiment)(void *c, int has_tolerance, double tolerance, double start, int has_stop, double stop)
{
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    fmu_set_time(state_of(c), start);
    return OK;
}

STATUS(fmi2EnterInitializationMode)(void *c)
{
    return phase(c, FMU_INSTANTIATED, FMU_INITIALIZATION, "fmi2EnterInitializationMode: not just instantiated");
}

STATUS(fmi2GetReal)(void *c, const unsigned int refs[], size_t count, double values[])
{
    return said(c, fmu_get(state_of(c), refs, count, values));
}

STATUS(fmi2SetReal)(void *c, const unsigned int refs[], size_t count, const double values[])
{
    return said(c, fmu_set(state_of(c), refs, count, values));
}

/* All variables are real. */
#define NO_VARIABLES(name, type) \
    STATUS(name)(void *c, const unsigned int refs[], size_t count, type values[]) \
    { \
        (void)refs, (void)values; \
        return said(c, count == 0u ? NULL : #name ": all variables are real"); \
    }
NO_VARIABLES(fmi2GetInteger, int)
NO_VARIABLES(fmi2GetBoolean, int)
NO_VARIABLES(fmi2GetString, const char *)
NO_VARIABLES(fmi2SetInteger, const int)
NO_VARIABLES(fmi2SetBoolean, const int)
NO_VARIABLES(fmi2SetString, const char *const)

STATUS(fmi2GetDirectionalDerivative)(void *c, const unsigned int unknowns[], size_t n_unknowns,
                                     const unsigned int knowns[], size_t n_knowns, const double seed[],
                                     double found[])
{
    return said(c, fmu_directional(state_of(c), unknowns, n_unknowns, knowns, n_knowns, seed, found));
}

/* -- model exchange ----------------------------------------------------------------------------------------------- */

STATUS(fmi2NewDiscreteStates)(void *c, event_info *info)
{
    (void)c;
    (void)memset(info, 0, sizeof *info);
    return OK;
}

/* -- co-simulation ------------------------------------------------------------------------------------------------ */

STATUS(fmi2DoStep)(void *c, double time, double length, int no_return)
{
    instance *m = c;
    (void)no_return;
    if (m->s.phase != FMU_RUNNING || m->exchange) {
        return said(m, "fmi2DoStep: not initialized for co-simulation");
    }
    return stepped(m, fmu_advance(&m->s, time, length));
}

STATUS(fmi2CancelStep)(void *c)
{
    return said(c, "fmi2CancelStep: steps are not asynchronous");
}

STATUS(fmi2SetRealInputDerivatives)(void *c, const unsigned int refs[], size_t count, const int orders[],
                                    const double values[])
{
    (void)refs, (void)orders, (void)values;
    return said(c, count == 0u ? NULL : "fmi2SetRealInputDerivatives: inputs are held");
}

STATUS(fmi2GetRealOutputDerivatives)(void *c, const unsigned int refs[], size_t count, const int orders[],
                                     double values[])
{
    (void)refs, (void)orders, (void)values;
    return said(c, count == 0u ? NULL : "fmi2GetRealOutputDerivatives: not available");
}

#define NO_STATUS(name, type) \
    STATUS(name)(void *c, int kind, type *value) \
    { \
        (void)kind, (void)value; \
        (void)c; \
        return DISCARD; \
    }
NO_STATUS(fmi2GetStatus, status)
NO_STATUS(fmi2GetIntegerStatus, int)
NO_STATUS(fmi2GetStringStatus, const char *)

STATUS(fmi2GetRealStatus)(void *c, int kind, double *value)
{
    if (kind != 2) {
        return DISCARD;
    }
    *value = state_of(c)->v[0]; /* the last successful time */
    return OK;
}

STATUS(fmi2GetBooleanStatus)(void *c, int kind, int *value)
{
    (void)c, (void)kind;
    *value = 0;
    return OK;
}
