/* What FMI 2.0 and 3.0 have in common: the values of an instance, their access, and steps. The model itself is in
 * fmu_model.h and fmu_model.c. A value reference is the place of a variable in the array of values; 0 is the time. */

#ifndef FMU_CORE_H
#define FMU_CORE_H

#include "fmu_model.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define FMU_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define FMU_EXPORT __attribute__((visibility("default")))
#else
#define FMU_EXPORT
#endif

#define FMU_JOIN_(a, b) a##b
#define FMU_JOIN(a, b) FMU_JOIN_(a, b)

enum { FMU_INSTANTIATED = 0, FMU_INITIALIZATION = 1, FMU_RUNNING = 2, FMU_TERMINATED = 3 };

/* All that a saved state has. */
typedef struct {
    double v[MODEL_SIZE];
    int fresh; /* whether outputs belong to the inputs and states */
    int phase;
} fmu_state;

static void fmu_reset(fmu_state *s)
{
    (void)memset(s, 0, sizeof *s);
    (void)memcpy(s->v, model_start, sizeof model_start);
}

static void fmu_refresh(fmu_state *s)
{
    if (s->fresh == 0) {
        model_outputs(s->v);
        s->fresh = 1;
    }
}

/* Whether the outputs say that a number that they need is not finite. */
static int fmu_faulty(fmu_state *s)
{
#if MODEL_FAULT
    fmu_refresh(s);
    return s->v[MODEL_FAULT] > 0.5;
#else
    (void)s;
    return 0;
#endif
}

static const char *fmu_get(fmu_state *s, const unsigned int refs[], size_t count, double values[])
{
    for (size_t k = 0; k < count; ++k) {
        if (refs[k] >= MODEL_VARIABLES) {
            return "there is no variable with this value reference";
        }
        if (model_access[refs[k]] == MODEL_CALCULATED) {
            fmu_refresh(s);
        }
        values[k] = s->v[refs[k]];
    }
    return NULL;
}

static const char *fmu_set(fmu_state *s, const unsigned int refs[], size_t count, const double values[])
{
    for (size_t k = 0; k < count; ++k) {
        if (refs[k] >= MODEL_VARIABLES) {
            return "there is no variable with this value reference";
        }
        if (model_access[refs[k]] == MODEL_CALCULATED) {
            return "a calculated variable cannot be set";
        }
        if (model_access[refs[k]] == MODEL_INITIAL && s->phase >= FMU_RUNNING) {
            return "an initial value cannot be set after initialization";
        }
    }
    for (size_t k = 0; k < count; ++k) {
        s->v[refs[k]] = values[k];
    }
    s->fresh = 0;
    return NULL;
}

static void fmu_set_time(fmu_state *s, double time)
{
    s->v[0] = time;
    s->fresh = 0; /* outputs may depend on the time */
}

static int fmu_finite(const double *values, size_t count)
{
    for (size_t k = 0; k < count; ++k) {
        if (!isfinite(values[k])) {
            return 0;
        }
    }
    return 1;
}

/* A communication step in whole internal steps; inputs are held. */
static const char *fmu_advance(fmu_state *s, double time, double length)
{
    if (!(length >= 0.0) || !isfinite(length) || !isfinite(time)) {
        return "the communication step must be a finite number that is not negative";
    }
#if MODEL_STEPS
    {
        const double wanted = MODEL_STEP(s->v);
        double number, step = wanted;
        if (!(wanted > 0.0) || !isfinite(wanted)) {
            return "the internal step must be positive";
        }
        number = floor(length / wanted + 0.5);
        if (number > 1e9) {
            return "the communication step has more than 1e9 internal steps";
        }
        if (fabs(length - number * wanted) > 1e-9 * length) {
#if MODEL_SAMPLED
            return "the communication step must be a whole number of sample periods";
#else
            number = ceil(length / wanted);
            step = length / number;
#endif
        }
        for (long left = (long)number; left > 0; --left) {
            model_step(s->v, step);
            s->fresh = 0;
        }
        if (!fmu_finite(s->v + MODEL_FIRST_STATE, MODEL_STEPPED)) {
            return "the state is no longer finite";
        }
    }
#endif
    fmu_set_time(s, time + length);
    return NULL;
}

/* Derivatives of the unknowns along a direction of the knowns. */
static const char *fmu_directional(fmu_state *s, const unsigned int unknowns[], size_t n_unknowns,
                                   const unsigned int knowns[], size_t n_knowns, const double seed[], double found[])
{
#if MODEL_DIRECTIONAL
    double direction[MODEL_VARIABLES] = {0.0};
    for (size_t k = 0; k < n_knowns; ++k) {
        if (knowns[k] >= MODEL_VARIABLES || model_access[knowns[k]] == MODEL_CALCULATED) {
            return "a known of a directional derivative must be an input or a state";
        }
        direction[knowns[k]] += seed[k];
    }
    model_directional(s->v, direction);
    for (size_t k = 0; k < n_unknowns; ++k) {
        if (unknowns[k] >= MODEL_VARIABLES) {
            return "there is no variable with this value reference";
        }
        found[k] = direction[unknowns[k]];
    }
    return NULL;
#else
    (void)s, (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)seed, (void)found;
    return "this model has no directional derivatives";
#endif
}

static const char *fmu_set_states(fmu_state *s, const double x[], size_t count)
{
    if (count != MODEL_STATES) {
        return "wrong number of continuous states";
    }
    if (count != 0u) {
        (void)memcpy(s->v + MODEL_FIRST_STATE, x, count * sizeof *x);
    }
    s->fresh = 0;
    return NULL;
}

static const char *fmu_get_states(fmu_state *s, double x[], size_t count, int derivatives)
{
    if (count != MODEL_STATES) {
        return "wrong number of continuous states";
    }
    if (derivatives != 0) {
        fmu_refresh(s);
    }
    if (count != 0u) {
        (void)memcpy(x, s->v + (derivatives != 0 ? MODEL_FIRST_DERIVATIVE : MODEL_FIRST_STATE), count * sizeof *x);
    }
    return NULL;
}

static char *fmu_copied(const char *text)
{
    const size_t size = (text == NULL ? 0u : strlen(text)) + 1u;
    char *copy = calloc(size, 1);
    if (copy != NULL && text != NULL) {
        (void)memcpy(copy, text, size);
    }
    return copy;
}

#endif
