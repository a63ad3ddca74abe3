"""How a warp moves the rows of 32 states between global and shared memory, as CUDA text.

Rows follow each other in global memory, so the rows of a warp are one block of it, which the lanes copy together, 16
bytes each where that is possible. In shared memory a row has an odd pitch: the lanes, each reading its own row, then
access 32 different banks (of 4 bytes; with 8-byte scalars each half of the warp accesses 16 different pairs). Copies
into shared memory are asynchronous where the GPU can do that (compute capability 8.0): all inputs are on their way
before any is waited for, and none passes through a register.
"""

from __future__ import annotations

import re


def helpers(dtype: str) -> str:
    """The definitions that kernels of this precision use."""
    double = dtype == "float64"
    return _HELPERS.format(
        real="double" if double else "float",
        word="unsigned long long" if double else "unsigned int",
        bytes=8 if double else 4,
        sign=63 if double else 31,
        infinity="__longlong_as_double(0x7ff0000000000000ll)" if double else "__int_as_float(0x7f800000)",
        nan="__longlong_as_double(0x7ff8000000000000ll)" if double else "__int_as_float(0x7fc00000)",
        bits="(word)__double_as_longlong" if double else "(word)__float_as_int",
        back="__longlong_as_double((long long)" if double else "__int_as_float((int)",
    )


_HELPERS = """\
typedef {real} real;
typedef {word} word;
struct __align__(16) quad {{ unsigned int words[4]; }};

static __device__ __forceinline__ real infinity() {{ return {infinity}; }}
static __device__ __forceinline__ real not_a_number() {{ return {nan}; }}

/* Bit k of the representation of x. */
static __device__ __forceinline__ bool bit_of(real x, int k) {{ return ({bits}(x) >> k & 1) != 0; }}

/* -x if bit k of t is set, else x. */
static __device__ __forceinline__ real flipped(real x, real t, int k)
{{
    return {back}({bits}(x) ^ ({bits}(t) >> k & 1) << {sign}));
}}

/* The same number, of which the compiler knows nothing: what follows from it is not kept in registers over a loop. */
static __device__ __forceinline__ int opaque(int x)
{{
    asm volatile("" : "+r"(x));
    return x;
}}

/* The thread's number, asked for anew. */
static __device__ __forceinline__ int thread_index()
{{
#ifdef __CUDA_ARCH__
    int x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
#else
    return (int)threadIdx.x;
#endif
}}

/* Starts to copy a scalar or 16 bytes into shared memory. */
template <class T>
static __device__ __forceinline__ void copy(T *to, const T *from)
{{
#if __CUDA_ARCH__ >= 800
    const unsigned int place = (unsigned int)__cvta_generic_to_shared(to);
    if (sizeof(T) == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], {bytes};" :: "r"(place), "l"(from) : "memory");
#else
    *to = *from;
#endif
}}

/* States from ``first`` on that a warp has: 32, or fewer at the end. */
static __device__ __forceinline__ int rows_left(long long count, long long first)
{{
    return count - first < 32 ? (int)(count - first) : 32;
}}

/* Starts to copy the rows of 32 states into shared memory; ``lane`` is one of ``lanes`` that share the work. */
template <int size, int pitch, int lanes = 32>
static __device__ __forceinline__ void fetch_rows(
    real *room, const real *rows, long long stride, int lane, int states)
{{
    constexpr int scalars = 16 / sizeof(real), whole = 32 * size / scalars;
    if (pitch == size && states == 32 && stride == size && (unsigned long long)rows % 16 == 0) {{
#pragma unroll
        for (int k = 0; k < (whole + lanes - 1) / lanes; ++k)
            if (k * lanes + lane < whole)
                copy((quad *)room + k * lanes + lane, (const quad *)rows + k * lanes + lane);
    }} else {{
#pragma unroll 4
        for (int k = opaque(lane); k < states * size; k += lanes)
            copy(room + k / size * pitch + k % size, rows + k / size * stride + k % size);
    }}
}}

/* What was started so far is one group, the rows of the same states. */
static __device__ __forceinline__ void close_group()
{{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}}

/* Until then rows of groups before the last one must not be read; closes that one. */
static __device__ __forceinline__ void wait_for_older_rows()
{{
    close_group();
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
    __syncwarp();
}}

/* Until then no rows must be read. */
static __device__ __forceinline__ void wait_for_rows()
{{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncwarp();
}}

/* Copies the rows of a warp's states from shared memory. */
template <int size, int pitch>
static __device__ __forceinline__ void store_rows(real *rows, const real *room, int lane, int states)
{{
    constexpr int scalars = 16 / sizeof(real), whole = 32 * size / scalars;
    if (pitch == size && states == 32 && (unsigned long long)rows % 16 == 0) {{
#pragma unroll
        for (int k = 0; k < (whole + 31) / 32; ++k)
            if (k * 32 + lane < whole)
                ((quad *)rows)[k * 32 + lane] = ((const quad *)room)[k * 32 + lane];
    }} else {{
#pragma unroll 4
        for (int k = opaque(lane); k < states * size; k += 32)
            rows[k] = room[k / size * pitch + k % size];
    }}
}}

/* The same for rows that are ``stride`` scalars apart. */
template <int size, int pitch>
static __device__ __forceinline__ void spread_rows(
    real *rows, long long stride, const real *room, int lane, int states)
{{
#pragma unroll 4
    for (int k = opaque(lane); k < states * size; k += 32)
        rows[k / size * stride + k % size] = room[k / size * pitch + k % size];
}}
"""

NAMES = frozenset(re.findall(r"(\w+)\(", _HELPERS))
"""Functions of the helpers, and those that they call."""
