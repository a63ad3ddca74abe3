/* Functions of FMI that versions 2.0 and 3.0 share but for their names. A version defines before: FMI(name), a function's
 * name with the version; STATE(name), the same of saved states; STATUS(name), the head of a function; and the types
 * status, instance, flag and byte, with a function logged(instance, status, category, message) that gives the status. */

#ifndef FMU_FUNCTIONS_H
#define FMU_FUNCTIONS_H

#define FMU_QUOTED(text) #text
#define FMU_TEXT(name) FMU_QUOTED(name)

static fmu_state *state_of(void *c)
{
    return &((instance *)c)->s;
}

/* OK where there is no message. */
static status said(instance *m, const char *message)
{
    return message == NULL ? OK : logged(m, ERROR, "logStatusError", message);
}

/* The status of a step of co-simulation: a controller whose outputs say that an input was not a finite number warns. */
static status stepped(instance *m, const char *message)
{
    if (message != NULL) {
        return said(m, message);
    }
    return fmu_faulty(&m->s) != 0 ? logged(m, WARNING, "logStatusWarning", "fault: a number is not finite") : OK;
}

static status phase(instance *m, int from, int to, const char *message)
{
    if (m->s.phase != from) {
        return said(m, message);
    }
    m->s.phase = to;
    return OK;
}

/* Copies a state to where saved points; memory is made where there is none. */
static status kept(instance *m, const void *from, void **saved)
{
    if (*saved == NULL) {
        *saved = calloc(1, sizeof(fmu_state));
    }
    if (*saved == NULL) {
        return said(m, "no memory for a state");
    }
    (void)memcpy(*saved, from, sizeof(fmu_state));
    return OK;
}

STATUS(FMI(SetDebugLogging))(void *c, flag on, size_t count, const char *const categories[])
{
    (void)c, (void)on, (void)count, (void)categories;
    return OK;
}

STATUS(FMI(ExitInitializationMode))(void *c)
{
    return phase(c, FMU_INITIALIZATION, FMU_RUNNING, FMU_TEXT(FMI(ExitInitializationMode)) ": not in initialization");
}

STATUS(FMI(Terminate))(void *c)
{
    return phase(c, FMU_RUNNING, FMU_TERMINATED, FMU_TEXT(FMI(Terminate)) ": not running");
}

STATUS(FMI(Reset))(void *c)
{
    fmu_reset(state_of(c));
    return OK;
}

/* -- saved states ------------------------------------------------------------------------------------------------- */

STATUS(STATE(Get))(void *c, void **saved)
{
    return kept(c, state_of(c), saved);
}

STATUS(STATE(Set))(void *c, void *saved)
{
    (void)memcpy(state_of(c), saved, sizeof(fmu_state));
    return OK;
}

STATUS(STATE(Free))(void *c, void **saved)
{
    (void)c;
    free(*saved);
    *saved = NULL;
    return OK;
}

STATUS(FMU_JOIN(STATE(Serialized), Size))(void *c, void *saved, size_t *size)
{
    (void)c, (void)saved;
    *size = sizeof(fmu_state);
    return OK;
}

STATUS(STATE(Serialize))(void *c, void *saved, byte bytes[], size_t size)
{
    if (size < sizeof(fmu_state)) {
        return said(c, FMU_TEXT(STATE(Serialize)) ": too few bytes");
    }
    (void)memcpy(bytes, saved, sizeof(fmu_state));
    return OK;
}

STATUS(STATE(FMU_DESERIALIZE))(void *c, const byte bytes[], size_t size, void **saved)
{
    if (size != sizeof(fmu_state)) {
        return said(c, FMU_TEXT(STATE(FMU_DESERIALIZE)) ": not a state of this FMU");
    }
    return kept(c, bytes, saved);
}

/* -- model exchange ----------------------------------------------------------------------------------------------- */

STATUS(FMI(EnterEventMode))(void *c)
{
    (void)c;
    return OK;
}

STATUS(FMI(EnterContinuousTimeMode))(void *c)
{
    (void)c;
    return OK;
}

STATUS(FMI(CompletedIntegratorStep))(void *c, flag no_return, flag *enter_event_mode, flag *terminate)
{
    (void)c, (void)no_return;
    *enter_event_mode = 0;
    *terminate = 0;
    return OK;
}

STATUS(FMI(SetTime))(void *c, double time)
{
    fmu_set_time(state_of(c), time);
    return OK;
}

STATUS(FMI(SetContinuousStates))(void *c, const double x[], size_t count)
{
    return said(c, fmu_set_states(state_of(c), x, count));
}

STATUS(FMI(GetContinuousStates))(void *c, double x[], size_t count)
{
    return said(c, fmu_get_states(state_of(c), x, count, 0));
}

STATUS(FMI(FMU_GET_DERIVATIVES))(void *c, double dx[], size_t count)
{
    return said(c, fmu_get_states(state_of(c), dx, count, 1));
}

STATUS(FMI(GetEventIndicators))(void *c, double indicators[], size_t count)
{
    (void)indicators;
    return said(c, count == 0u ? NULL : FMU_TEXT(FMI(GetEventIndicators)) ": there are none");
}

STATUS(FMI(GetNominalsOfContinuousStates))(void *c, double nominals[], size_t count)
{
    (void)c;
    for (size_t k = 0; k < count; ++k) {
        nominals[k] = 1.0;
    }
    return OK;
}

#endif
