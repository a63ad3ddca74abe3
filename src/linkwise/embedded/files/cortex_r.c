/* Starts the check on a Cortex-R with a floating-point unit, which is switched on. */

void lw_reset(void);

__attribute__((naked, section(".vectors"), used)) void lw_reset(void)
{
    __asm volatile("ldr sp, =stack_top\n"
                   "mrc p15, 0, r0, c1, c0, 2\n"
                   "orr r0, r0, #0xf00000\n"
                   "mcr p15, 0, r0, c1, c0, 2\n"
                   "isb\n"
                   "mov r0, #0x40000000\n"
                   "vmsr fpexc, r0\n"
                   "b _start\n");
}
