"""Threads that wait for batches, as LLVM text; see ``linkwise.compiler.runtime.native_threads``.

Every helper runs ``serve`` without end: wait for a job, take part in it, wait for the next. ``run_job`` is called
with a job in the pool: it lets as many helpers join as there are tickets, takes part itself and returns when the last
of them has left. The arrays of a job are not accessed after that. ``share_job`` takes the words of a job and calls
``run_job``, or returns 0 at once if the pool is at work for another caller. It needs no interpreter lock.

- ``generation`` counts the jobs; helpers poll it for a while before they sleep, so that they are awake for a call
soon after another.
- A helper joins a job by taking a ticket. Those left over are void when the caller has run out of chunks.
- The caller wakes ``FAN`` helpers that sleep, each of these as many more: a thread takes some ten microseconds to wake,
  and waking it some microseconds.
- One counter gives out the chunks, so a helper that was delayed takes fewer of them.

A thread sleeps until a word changes: by Linux' futex, which needs no lock after waking, else by a mutex and a condition
of the C library. A thread that is about to sleep announces it, and the word is compared once more before it sleeps; a
thread that changes the word changes it first and then checks for sleeping threads: with sequentially consistent order
one of the two sees the change of the other.
"""

from __future__ import annotations

JOB = (
    "run",
    "count",
    "chunk",
    "arguments",
    "scratch",
    "scratch_step",
    "helpers",
)  # words, one after the other
# Places in the pool, in bytes. What different threads write lies in different cache lines.
PLACES = {
    "generation": 0,
    "tickets": 128,
    "next": 256,
    "left": 384,
    "caller_sleeps": 512,
    "sleepers": 520,
    "busy": 528,  # 1 while a job is under way
    **{word: 640 + 8 * k for k, word in enumerate(JOB)},
    "slots": 768,
    # what the C library has
    "mutex": 896,
    "changed": 1024,
    "lock": 1152,
    "unlock": 1160,
    "wait": 1168,
    "broadcast": 1176,
    "syscall": 1184,
}
SIZE = 1280
SPINS = (
    4000  # polls of the caller before sleeping, each with a pause of the processor: some tens of microseconds
)
PATIENCE = 20000  # polls of a helper: several tenths of a millisecond, about as long as the smallest jobs
FAN = 4
FUTEX = {"x86_64": 202, "aarch64": 98}  # number of the system call
_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "AMD64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def module(processor: str, futex: int | None = None) -> str:
    """The text for a processor, by its name in ``platform.machine``; ``futex``: the number of the system call."""
    declaration, pause = _PAUSES.get(processor, ("", ""))
    places = "\n".join(
        f"  %{name}_at = getelementptr i8, ptr %pool, i64 {place}" for name, place in PLACES.items()
    )
    text = (_CONDITION if futex is None else _FUTEX) + _TEXT
    copy = "\n".join(
        f"  %{name}_from = getelementptr i64, ptr %job, i64 {k}\n"
        f"  %{name}_word = load i64, ptr %{name}_from\n"
        f"  store i64 %{name}_word, ptr %{name}_at"
        for k, name in enumerate(JOB)
    )
    words = {
        "PLACES": places,
        "COPY": copy,
        "SPINS": SPINS,
        "PATIENCE": PATIENCE,
        "PAUSE": pause,
        "FAN": FAN,
        "NUMBER": futex,
    }
    for word, value in words.items():
        text = text.replace(word, str(value))
    return f"{declaration}\n{text}"


# ``sleep`` returns when ``wake`` is called for its word, when the word is not ``seen``, or for no reason.
_FUTEX = """
define internal void @sleep(ptr %pool, ptr %word, i64 %seen) nounwind {
entry:
PLACES
  %syscall = load ptr, ptr %syscall_at
  %half = trunc i64 %seen to i32
  call i64 (i64, ...) %syscall(i64 NUMBER, ptr %word, i32 128, i32 %half, ptr null)
  ret void
}

define internal void @wake(ptr %pool, ptr %word, i32 %threads) nounwind {
entry:
PLACES
  %syscall = load ptr, ptr %syscall_at
  call i64 (i64, ...) %syscall(i64 NUMBER, ptr %word, i32 129, i32 %threads)
  ret void
}
"""
_CONDITION = """
define internal void @sleep(ptr %pool, ptr %word, i64 %seen) nounwind {
entry:
PLACES
  %lock = load ptr, ptr %lock_at
  %unlock = load ptr, ptr %unlock_at
  %wait = load ptr, ptr %wait_at
  call i32 %lock(ptr %mutex_at)
  %now = load atomic i64, ptr %word seq_cst, align 8
  %same = icmp eq i64 %now, %seen
  br i1 %same, label %doze, label %end
doze:
  call i32 %wait(ptr %changed_at, ptr %mutex_at)
  br label %end
end:
  call i32 %unlock(ptr %mutex_at)
  ret void
}

define internal void @wake(ptr %pool, ptr %word, i32 %threads) nounwind {
entry:
PLACES
  %lock = load ptr, ptr %lock_at
  %unlock = load ptr, ptr %unlock_at
  %broadcast = load ptr, ptr %broadcast_at
  call i32 %lock(ptr %mutex_at)
  call i32 %broadcast(ptr %changed_at)
  call i32 %unlock(ptr %mutex_at)
  ret void
}
"""
_TEXT = """
define internal void @take_part(ptr %pool, i64 %slot) nounwind {
entry:
PLACES
  %run = load ptr, ptr %run_at
  %count = load i64, ptr %count_at
  %chunk = load i64, ptr %chunk_at
  %arguments = load ptr, ptr %arguments_at
  %scratch = load ptr, ptr %scratch_at
  %step = load i64, ptr %scratch_step_at
  %offset = mul i64 %step, %slot
  %own = getelementptr i8, ptr %scratch, i64 %offset
  br label %look
look:
  %k = atomicrmw add ptr %next_at, i64 1 monotonic
  %first = mul i64 %k, %chunk
  %more = icmp slt i64 %first, %count
  br i1 %more, label %work, label %end
work:
  %rest = sub i64 %count, %first
  %short = icmp slt i64 %rest, %chunk
  %number = select i1 %short, i64 %rest, i64 %chunk
  call void %run(i64 %first, i64 %number, ptr %arguments, ptr %own)
  br label %look
end:
  ret void
}

define void @run_job(ptr %pool) nounwind {
entry:
PLACES
  %helpers = load i64, ptr %helpers_at
  store atomic i64 0, ptr %next_at monotonic, align 8
  store atomic i64 0, ptr %left_at monotonic, align 8
  store atomic i64 1, ptr %slots_at monotonic, align 8
  store atomic i64 0, ptr %caller_sleeps_at monotonic, align 8
  store atomic i64 %helpers, ptr %tickets_at seq_cst, align 8
  atomicrmw add ptr %generation_at, i64 1 seq_cst
  %asleep = load atomic i64, ptr %sleepers_at seq_cst, align 8
  %any = icmp sgt i64 %asleep, 0
  br i1 %any, label %wake, label %begin
wake:
  call void @wake(ptr %pool, ptr %generation_at, i32 FAN)
  br label %begin
begin:
  call void @take_part(ptr %pool, i64 0)
  %void = atomicrmw xchg ptr %tickets_at, i64 0 seq_cst
  %negative = icmp slt i64 %void, 0
  %unused = select i1 %negative, i64 0, i64 %void
  %joined = sub i64 %helpers, %unused
  br label %spin
spin:
  %spins = phi i64 [ 0, %begin ], [ %spins1, %pause ]
  %gone = load atomic i64, ptr %left_at seq_cst, align 8
  %finished = icmp eq i64 %gone, %joined
  br i1 %finished, label %end, label %wait_on
wait_on:
  %spins1 = add i64 %spins, 1
  %patient = icmp slt i64 %spins1, SPINS
  br i1 %patient, label %pause, label %announce
pause:
  PAUSE
  br label %spin
announce:
  store atomic i64 1, ptr %caller_sleeps_at seq_cst, align 8
  br label %check
check:
  %gone2 = load atomic i64, ptr %left_at seq_cst, align 8
  %finished2 = icmp eq i64 %gone2, %joined
  br i1 %finished2, label %end, label %doze
doze:
  call void @sleep(ptr %pool, ptr %left_at, i64 %gone2)
  br label %check
end:
  ret void
}

define i64 @share_job(ptr %pool, ptr %job) nounwind {
entry:
PLACES
  %taken = cmpxchg ptr %busy_at, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue { i64, i1 } %taken, 1
  br i1 %free, label %begin, label %end
begin:
COPY
  call void @run_job(ptr %pool)
  store atomic i64 0, ptr %busy_at seq_cst, align 8
  br label %end
end:
  %done = zext i1 %free to i64
  ret i64 %done
}

define void @serve(ptr %pool) nounwind {
entry:
PLACES
  br label %next_job
next_job:
  %seen = phi i64 [ 0, %entry ], [ %now, %joining ], [ %now, %work ], [ %now, %tell ]
  br label %spin
spin:
  %spins = phi i64 [ 0, %next_job ], [ %spins1, %pause ]
  %newest = load atomic i64, ptr %generation_at seq_cst, align 8
  %changed = icmp ne i64 %newest, %seen
  br i1 %changed, label %joining, label %wait_on
wait_on:
  %spins1 = add i64 %spins, 1
  %patient = icmp slt i64 %spins1, PATIENCE
  br i1 %patient, label %pause, label %announce
pause:
  PAUSE
  br label %spin
announce:
  atomicrmw add ptr %sleepers_at, i64 1 seq_cst
  br label %check
check:
  %newest2 = load atomic i64, ptr %generation_at seq_cst, align 8
  %changed2 = icmp ne i64 %newest2, %seen
  br i1 %changed2, label %wake_up, label %doze
doze:
  call void @sleep(ptr %pool, ptr %generation_at, i64 %seen)
  br label %check
wake_up:
  %asleep = atomicrmw sub ptr %sleepers_at, i64 1 seq_cst
  %tickets = load atomic i64, ptr %tickets_at seq_cst, align 8
  %wanted = icmp sgt i64 %tickets, 1
  %others = icmp sgt i64 %asleep, 1
  %more = and i1 %wanted, %others
  br i1 %more, label %pass_on, label %joining
pass_on:
  call void @wake(ptr %pool, ptr %generation_at, i32 FAN)
  br label %joining
joining:
  %now = phi i64 [ %newest, %spin ], [ %newest2, %wake_up ], [ %newest2, %pass_on ]
  %ticket = atomicrmw sub ptr %tickets_at, i64 1 seq_cst
  %joins = icmp sgt i64 %ticket, 0
  br i1 %joins, label %work, label %next_job
work:
  %slot = atomicrmw add ptr %slots_at, i64 1 monotonic
  call void @take_part(ptr %pool, i64 %slot)
  atomicrmw add ptr %left_at, i64 1 seq_cst
  %sleeping = load atomic i64, ptr %caller_sleeps_at seq_cst, align 8
  %must_tell = icmp ne i64 %sleeping, 0
  br i1 %must_tell, label %tell, label %next_job
tell:
  call void @wake(ptr %pool, ptr %left_at, i32 1)
  br label %next_job
}
"""
