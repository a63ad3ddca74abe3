/* lw_fma and lw_fmaf: a*b + c with one rounding, the same bits on every processor.
 *
 * Where the processor has the instruction it is used; the GNU C library's functions are exact, too. Other libraries
 * (newlib among them) round twice, so there it is computed here: in whole numbers for double, and for float in double,
 * rounded to odd before the last rounding (S. Boldo, G. Melquiond, 2008). LW_CONSTANT_TIME: no functions of a library,
 * and floats without a branch, which takes more instructions.
 */

#ifndef LW_FMA_H
#define LW_FMA_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__) || defined(__GLIBC__) \
    || (defined(__ARM_FEATURE_FMA) && defined(__ARM_FP) && (__ARM_FP & 8)) \
    || (defined(__riscv_flen) && (__riscv_flen >= 64))
#define LW_EXACT_FMA 1
#else
#define LW_EXACT_FMA 0
#endif

#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__) \
    || (defined(__GLIBC__) && !defined(LW_CONSTANT_TIME)) \
    || (defined(__ARM_FEATURE_FMA) && defined(__ARM_FP) && (__ARM_FP & 4)) \
    || (defined(__riscv_flen) && (__riscv_flen >= 32))
#define LW_EXACT_FMAF 1
#else
#define LW_EXACT_FMAF 0
#endif

#if !LW_EXACT_FMA
/* A whole number of 128 bits. */
typedef struct {
    uint64_t high;
    uint64_t low;
} lw_wide;

static inline uint64_t lw_any(uint64_t x)
{
    return (x != 0u) ? UINT64_C(1) : UINT64_C(0);
}

/* Shifted right; the last bit says whether ones were lost. */
static inline lw_wide lw_shifted_right(lw_wide x, uint32_t by)
{
    lw_wide y = x;
    if (by >= 128u) {
        y.low = lw_any(x.high | x.low);
        y.high = 0u;
    } else if (by >= 64u) {
        const uint64_t rest = (by == 64u) ? UINT64_C(0) : (x.high << (128u - by));
        y.low = (x.high >> (by - 64u)) | lw_any(rest | x.low);
        y.high = 0u;
    } else if (by > 0u) {
        const uint64_t lost = x.low << (64u - by);
        y.low = (x.low >> by) | (x.high << (64u - by)) | lw_any(lost);
        y.high = x.high >> by;
    } else {
        /* not shifted */
    }
    return y;
}

static inline lw_wide lw_product(uint64_t a, uint64_t b)
{
    const uint64_t a0 = a & 0xffffffffu;
    const uint64_t a1 = a >> 32;
    const uint64_t b0 = b & 0xffffffffu;
    const uint64_t b1 = b >> 32;
    const uint64_t middle = (a1 * b0) + ((a0 * b0) >> 32);
    const uint64_t other = (a0 * b1) + (middle & 0xffffffffu);
    lw_wide y;
    y.high = (a1 * b1) + (middle >> 32) + (other >> 32);
    y.low = (other << 32) | ((a0 * b0) & 0xffffffffu);
    return y;
}

/* The exponent of a finite number other than zero, whose digits become a whole number of 53 bits. */
static inline int lw_split(uint64_t bits, uint64_t *digits)
{
    const uint64_t field = (bits >> 52) & 0x7ffu;
    int exponent = (int)field;
    *digits = bits & 0xfffffffffffffu;
    if (exponent != 0) {
        *digits |= (uint64_t)1 << 52;
    } else {
        exponent = 1;
        while ((*digits >> 52) == 0u) {
            *digits <<= 1;
            --exponent;
        }
    }
    return exponent;
}

/* The nearest double of a positive whole number times a power of two; ties go to the even one. */
static inline uint64_t lw_rounded(lw_wide x, int power)
{
    lw_wide y = x;
    int exponent = power + 127 + 1023;
    uint64_t bits;
    while ((y.high >> 63) == 0u) {
        y.high = (y.high << 1) | (y.low >> 63);
        y.low <<= 1;
        --exponent;
    }
    if (exponent < 1) {
        const int below = 1 - exponent;
        y = lw_shifted_right(y, (uint32_t)below);
        exponent = 1;
    }
    if (exponent >= 0x7ff) {
        bits = (uint64_t)0x7ff << 52;
    } else {
        const uint64_t rest = (y.high & 0x7ffu) | lw_any(y.low);
        const int field = exponent - 1;
        bits = (y.high >> 11) + ((uint64_t)field << 52);
        if ((rest > 0x400u) || ((rest == 0x400u) && ((bits & 1u) != 0u))) {
            ++bits;
        }
    }
    return bits;
}

static inline double lw_fma(double a, double b, double c)
{
    const uint64_t top = (uint64_t)0x7ff << 52;
    const uint64_t sign = (uint64_t)1 << 63;
    uint64_t bits_a;
    uint64_t bits_b;
    uint64_t bits_c;
    double result;
    (void)memcpy(&bits_a, &a, sizeof bits_a);
    (void)memcpy(&bits_b, &b, sizeof bits_b);
    (void)memcpy(&bits_c, &c, sizeof bits_c);
    if (((bits_a & top) == top) || ((bits_b & top) == top) || ((bits_c & top) == top) || ((bits_a & ~sign) == 0u)
        || ((bits_b & ~sign) == 0u) || ((bits_c & ~sign) == 0u)) {
        result = (a * b) + c;
    } else {
        uint64_t digits_a;
        uint64_t digits_b;
        uint64_t digits_c;
        uint64_t sign_of_result = (bits_a ^ bits_b) & sign;
        int power = lw_split(bits_a, &digits_a) + lw_split(bits_b, &digits_b) - (2 * 1075) - 20;
        const int power_c = lw_split(bits_c, &digits_c) - 1075 - 72;
        lw_wide x = lw_product(digits_a, digits_b);
        const int further = power - power_c;
        lw_wide y;
        x.high = (x.high << 20) | (x.low >> 44);
        x.low <<= 20;
        y.high = digits_c << 8;
        y.low = 0u;
        if (further > 0) {
            y = lw_shifted_right(y, (uint32_t)further);
        } else {
            const int nearer = -further;
            x = lw_shifted_right(x, (uint32_t)nearer);
            power = power_c;
        }
        if (sign_of_result == (bits_c & sign)) {
            x.low += y.low;
            x.high += y.high + ((x.low < y.low) ? UINT64_C(1) : UINT64_C(0));
        } else {
            if ((x.high < y.high) || ((x.high == y.high) && (x.low < y.low))) {
                const lw_wide larger = y;
                y = x;
                x = larger;
                sign_of_result ^= sign;
            }
            x.high -= y.high + ((x.low < y.low) ? UINT64_C(1) : UINT64_C(0));
            x.low -= y.low;
        }
        if ((x.high | x.low) == 0u) {
            bits_a = 0u;
        } else {
            bits_a = sign_of_result | lw_rounded(x, power);
        }
        (void)memcpy(&result, &bits_a, sizeof result);
    }
    return result;
}
#else
static inline double lw_fma(double a, double b, double c)
{
    return fma(a, b, c);
}
#endif

#if !LW_EXACT_FMAF
static inline float lw_fmaf(float a, float b, float c)
{
    const double product = (double)a * (double)b;
    const double addend = (double)c;
    double sum = product + addend;
    const double part = sum - product;
    const double lost = (product - (sum - part)) + (addend - part);
    uint64_t bits;
    (void)memcpy(&bits, &sum, sizeof bits);
#if defined(LW_CONSTANT_TIME)
    {
        /* 1 or 0: the sum is finite, is not exact, is even, and is nearer to zero than the exact one */
        uint64_t rest;
        (void)memcpy(&rest, &lost, sizeof rest);
        const uint64_t finite = ((((bits >> 52) & 0x7ffu) + 1u) >> 11) ^ 1u;
        const uint64_t inexact = ((rest << 1) | (0u - (rest << 1))) >> 63;
        const uint64_t even = (bits & 1u) ^ 1u;
        const uint64_t outward = ((bits ^ rest) >> 63) ^ 1u;
        bits += (0u - (finite & inexact & even)) & ((outward << 1) - 1u);
        (void)memcpy(&sum, &bits, sizeof sum);
    }
#else
    if (((lost < 0.0) || (lost > 0.0)) && (((bits >> 52) & 0x7ffu) != 0x7ffu) && ((bits & 1u) == 0u)) {
        if ((lost > 0.0) == (sum > 0.0)) {
            ++bits;
        } else {
            --bits;
        }
        (void)memcpy(&sum, &bits, sizeof sum);
    }
#endif
    return (float)sum;
}
#else
static inline float lw_fmaf(float a, float b, float c)
{
    return fmaf(a, b, c);
}
#endif

#endif
