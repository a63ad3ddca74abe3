/* Runs CUDA kernels on the CPU: every thread of a block is a fiber, a barrier switches to the next one.
 * Only what generated kernels use is here. Compile with -ffp-contract=off. */
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __constant__ static const
#define __forceinline__ inline
#undef __noinline__
#define __noinline__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__
#define __restrict__ __restrict

using std::min;

struct Index { unsigned int x, y, z; };
static Index threadIdx, blockIdx, blockDim, gridDim;
alignas(16) unsigned char shared_memory[1 << 20];

static inline float __fmul_rn(float a, float b) { return a * b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static inline float __fsqrt_rn(float a) { return std::sqrt(a); }
static inline double __dsqrt_rn(double a) { return std::sqrt(a); }

template <class To, class From> static inline To reinterpreted(From x)
{
    To y;
    static_assert(sizeof x == sizeof y);
    std::memcpy(&y, &x, sizeof y);
    return y;
}
static inline int __float_as_int(float x) { return reinterpreted<int>(x); }
static inline float __int_as_float(int x) { return reinterpreted<float>(x); }
static inline long long __double_as_longlong(double x) { return reinterpreted<long long>(x); }
static inline double __longlong_as_double(long long x) { return reinterpreted<double>(x); }

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(1 << 18);
    bool done = false;
};
static ucontext_t scheduler;
static Fiber *running;
static std::function<void()> work;

static inline void barrier() { swapcontext(&running->context, &scheduler); }
static inline void __syncwarp() { barrier(); }
static inline void __syncthreads() { barrier(); }

static inline int __popc(unsigned int x) { return __builtin_popcount(x); }

/* A bit for each thread of the warp. All of them must ask. */
static inline unsigned int __ballot_sync(unsigned int, bool own)
{
    static unsigned int votes[32];
    const unsigned int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    votes[warp] = (votes[warp] & ~(1u << lane)) | ((unsigned int)own << lane);
    barrier();
    const unsigned int all = votes[warp];
    barrier(); /* before one of them votes again */
    return all;
}

static void fiber_main()
{
    work();
    running->done = true;
    swapcontext(&running->context, &scheduler);
}

/* Runs ``kernel`` for all blocks and threads. Between two barriers the threads of a block run one after another, the
 * last one first if ``reversed``: a result that depends on that has a race. */
static void launch(unsigned int blocks, unsigned int threads, bool reversed, std::function<void()> kernel)
{
    work = kernel;
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    std::vector<Fiber> fibers(threads);
    for (unsigned int block = 0; block < blocks; ++block) {
        std::memset(shared_memory, 0xff, sizeof shared_memory); /* NaNs: what was not written must not be read */
        for (Fiber &fiber : fibers) {
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.data();
            fiber.context.uc_stack.ss_size = fiber.stack.size();
            fiber.context.uc_link = nullptr;
            fiber.done = false;
            makecontext(&fiber.context, fiber_main, 0);
        }
        for (bool active = true; active;) {
            active = false;
            for (unsigned int k = 0; k < threads; ++k) {
                const unsigned int thread = reversed ? threads - 1 - k : k;
                if (fibers[thread].done) continue;
                threadIdx = {thread, 0, 0};
                blockIdx = {block, 0, 0};
                running = &fibers[thread];
                swapcontext(&scheduler, &running->context);
                active = true;
            }
        }
    }
}
