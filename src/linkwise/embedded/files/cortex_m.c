/* Starts the check on a Cortex-M with a floating-point unit: a table of vectors, and the unit switched on. */

#include <stdint.h>

extern uint32_t stack_top[];
extern void _start(void);
void lw_reset(void);
void lw_stuck(void);

typedef void (*vector)(void);

typedef struct {
    uint32_t *stack;
    vector handlers[15];
} vectors;

__attribute__((section(".vectors"), used)) static const vectors table = {
    stack_top, {lw_reset, lw_stuck, lw_stuck, lw_stuck, lw_stuck, lw_stuck, lw_stuck, lw_stuck, lw_stuck, lw_stuck,
                lw_stuck, lw_stuck, lw_stuck, lw_stuck, lw_stuck}};

void lw_stuck(void)
{
    for (;;) {
    }
}

void lw_reset(void)
{
    volatile uint32_t *const coprocessors = (volatile uint32_t *)0xE000ED88u;
    *coprocessors |= (uint32_t)0xF << 20;
    __asm volatile("dsb\n isb");
    _start();
    lw_stuck();
}
