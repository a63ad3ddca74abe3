/* The functions of FMI 2.0 for co-simulation and model exchange. */

#include "fmu_core.h"

#ifdef FMI2_FUNCTION_PREFIX
#define FMU_JOIN_(a, b) a##b
#define FMU_JOIN(a, b) FMU_JOIN_(a, b)
#define FMI2(name) FMU_JOIN(FMI2_FUNCTION_PREFIX, name)
#else
#define FMI2(name) name
#endif
#define STATUS(name) FMU_EXPORT status FMI2(name)

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

static status said(instance *m, const char *message)
{
    if (message == NULL) {
        return OK;
    }
    if (m->log != NULL) {
        m->log(m->environment, m->name, ERROR, "logStatusError", "%s", message);
    }
    return ERROR;
}

static status phase(instance *m, int from, int to, const char *message)
{
    if (m->s.phase != from) {
        return said(m, message);
    }
    m->s.phase = to;
    return OK;
}

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

STATUS(fmi2SetDebugLogging)(void *c, int on, size_t count, const char *const categories[])
{
    (void)c, (void)on, (void)count, (void)categories;
    return OK;
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
    fmu_set_time(&((instance *)c)->s, start);
    return OK;
}

STATUS(fmi2EnterInitializationMode)(void *c)
{
    return phase(c, FMU_INSTANTIATED, FMU_INITIALIZATION, "fmi2EnterInitializationMode: not just instantiated");
}

STATUS(fmi2ExitInitializationMode)(void *c)
{
    return phase(c, FMU_INITIALIZATION, FMU_RUNNING, "fmi2ExitInitializationMode: not in initialization");
}

STATUS(fmi2Terminate)(void *c)
{
    return phase(c, FMU_RUNNING, FMU_TERMINATED, "fmi2Terminate: not running");
}

STATUS(fmi2Reset)(void *c)
{
    fmu_reset(&((instance *)c)->s);
    return OK;
}

STATUS(fmi2GetReal)(void *c, const unsigned int refs[], size_t count, double values[])
{
    return said(c, fmu_get(&((instance *)c)->s, refs, count, values));
}

STATUS(fmi2SetReal)(void *c, const unsigned int refs[], size_t count, const double values[])
{
    return said(c, fmu_set(&((instance *)c)->s, refs, count, values));
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

STATUS(fmi2GetFMUstate)(void *c, void **saved)
{
    if (*saved == NULL) {
        *saved = calloc(1, sizeof(fmu_state));
    }
    if (*saved == NULL) {
        return said(c, "no memory for a state");
    }
    (void)memcpy(*saved, &((instance *)c)->s, sizeof(fmu_state));
    return OK;
}

STATUS(fmi2SetFMUstate)(void *c, void *saved)
{
    (void)memcpy(&((instance *)c)->s, saved, sizeof(fmu_state));
    return OK;
}

STATUS(fmi2FreeFMUstate)(void *c, void **saved)
{
    (void)c;
    free(*saved);
    *saved = NULL;
    return OK;
}

STATUS(fmi2SerializedFMUstateSize)(void *c, void *saved, size_t *size)
{
    (void)c, (void)saved;
    *size = sizeof(fmu_state);
    return OK;
}

STATUS(fmi2SerializeFMUstate)(void *c, void *saved, char bytes[], size_t size)
{
    if (size < sizeof(fmu_state)) {
        return said(c, "fmi2SerializeFMUstate: too few bytes");
    }
    (void)memcpy(bytes, saved, sizeof(fmu_state));
    return OK;
}

STATUS(fmi2DeSerializeFMUstate)(void *c, const char bytes[], size_t size, void **saved)
{
    if (size != sizeof(fmu_state)) {
        return said(c, "fmi2DeSerializeFMUstate: not a state of this FMU");
    }
    if (*saved == NULL) {
        *saved = calloc(1, sizeof(fmu_state));
    }
    if (*saved == NULL) {
        return said(c, "no memory for a state");
    }
    (void)memcpy(*saved, bytes, sizeof(fmu_state));
    return OK;
}

STATUS(fmi2GetDirectionalDerivative)(void *c, const unsigned int unknowns[], size_t n_unknowns,
                                     const unsigned int knowns[], size_t n_knowns, const double seed[],
                                     double found[])
{
    return said(c, fmu_directional(&((instance *)c)->s, unknowns, n_unknowns, knowns, n_knowns, seed, found));
}

/* -- model exchange ----------------------------------------------------------------------------------------------- */

STATUS(fmi2EnterEventMode)(void *c)
{
    (void)c;
    return OK;
}

STATUS(fmi2NewDiscreteStates)(void *c, event_info *info)
{
    (void)c;
    (void)memset(info, 0, sizeof *info);
    return OK;
}

STATUS(fmi2EnterContinuousTimeMode)(void *c)
{
    (void)c;
    return OK;
}

STATUS(fmi2CompletedIntegratorStep)(void *c, int no_return, int *enter_event_mode, int *terminate)
{
    (void)c, (void)no_return;
    *enter_event_mode = 0;
    *terminate = 0;
    return OK;
}

STATUS(fmi2SetTime)(void *c, double time)
{
    fmu_set_time(&((instance *)c)->s, time);
    return OK;
}

STATUS(fmi2SetContinuousStates)(void *c, const double x[], size_t count)
{
    return said(c, fmu_set_states(&((instance *)c)->s, x, count));
}

STATUS(fmi2GetDerivatives)(void *c, double dx[], size_t count)
{
    return said(c, fmu_get_states(&((instance *)c)->s, dx, count, 1));
}

STATUS(fmi2GetEventIndicators)(void *c, double indicators[], size_t count)
{
    (void)indicators;
    return said(c, count == 0u ? NULL : "fmi2GetEventIndicators: there are none");
}

STATUS(fmi2GetContinuousStates)(void *c, double x[], size_t count)
{
    return said(c, fmu_get_states(&((instance *)c)->s, x, count, 0));
}

STATUS(fmi2GetNominalsOfContinuousStates)(void *c, double nominals[], size_t count)
{
    (void)c;
    for (size_t k = 0; k < count; ++k) {
        nominals[k] = 1.0;
    }
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
    return said(m, fmu_advance(&m->s, time, length));
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
    *value = ((instance *)c)->s.v[0]; /* the last successful time */
    return OK;
}

STATUS(fmi2GetBooleanStatus)(void *c, int kind, int *value)
{
    (void)c, (void)kind;
    *value = 0;
    return OK;
}
