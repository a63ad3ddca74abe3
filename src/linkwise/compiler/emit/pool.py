"""Threads that wait for batches, as LLVM text; see ``linkwise.compiler.native_threads``.

``serve`` is what every helper runs, for ever: wait for a job, take part in it, wait for the next. ``run_job`` is called
with a job in the pool: it lets as many helpers join as there are tickets, takes part itself and returns when the last
of them has left. The arrays of a job are not accessed after that.

- ``generation`` counts the jobs; helpers look at it for a short while before they sleep, so that a call soon after
  another finds them awake.
- A helper joins a job by taking a ticket. Those left over are void when the caller has run out of chunks.
- The caller wakes two helpers that sleep, each of these two more: waking takes some ten microseconds, one after the
  other would take longer than many jobs.
- Chunks are handed out by one counter, so a helper that was held up takes fewer of them.

Sleeping is by the C library's mutexes and conditions. A thread that is about to sleep announces it and then checks
again; a thread that changes something changes it first and then looks for sleepers: with sequentially consistent
order one of the two sees the other.
"""

from __future__ import annotations

# Places in the pool, in bytes. What different threads write lies in different cache lines.
PLACES = {
    "generation": 0,
    "tickets": 128,
    "next": 256,
    "left": 384,
    "caller_sleeps": 512,
    "sleepers": 520,
    # the job
    "run": 640,
    "count": 648,
    "chunk": 656,
    "arguments": 664,
    "scratch": 672,
    "scratch_step": 680,
    "helpers": 688,
    "slots": 768,
    # what the C library has
    "mutex": 896,
    "work": 1024,
    "done": 1152,
    "lock": 1280,
    "unlock": 1288,
    "wait": 1296,
    "signal": 1304,
}
SIZE = 1408
SPINS = 4000  # looks before sleeping, each with a pause of the processor: some tens of microseconds
_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "AMD64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def module(processor: str) -> str:
    """The text for a processor by the name that ``platform.machine`` gives."""
    declaration, pause = _PAUSES.get(processor, ("", ""))
    places = "\n".join(
        f"  %{name}_at = getelementptr i8, ptr %pool, i64 {place}" for name, place in PLACES.items()
    )
    text = _TEXT.replace("PLACES", places).replace("SPINS", str(SPINS)).replace("PAUSE", pause)
    return f"{declaration}\n{text}"


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
  %mutex_lock = load ptr, ptr %lock_at
  %mutex_unlock = load ptr, ptr %unlock_at
  %wait = load ptr, ptr %wait_at
  %signal = load ptr, ptr %signal_at
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
  call i32 %mutex_lock(ptr %mutex_at)
  call i32 %signal(ptr %work_at)
  call i32 %signal(ptr %work_at)
  call i32 %mutex_unlock(ptr %mutex_at)
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
  br i1 %patient, label %pause, label %sleep
pause:
  PAUSE
  br label %spin
sleep:
  call i32 %mutex_lock(ptr %mutex_at)
  store atomic i64 1, ptr %caller_sleeps_at seq_cst, align 8
  br label %check
check:
  %gone2 = load atomic i64, ptr %left_at seq_cst, align 8
  %finished2 = icmp eq i64 %gone2, %joined
  br i1 %finished2, label %wake_up, label %doze
doze:
  call i32 %wait(ptr %done_at, ptr %mutex_at)
  br label %check
wake_up:
  call i32 %mutex_unlock(ptr %mutex_at)
  br label %end
end:
  ret void
}

define void @serve(ptr %pool) nounwind {
entry:
PLACES
  %mutex_lock = load ptr, ptr %lock_at
  %mutex_unlock = load ptr, ptr %unlock_at
  %wait = load ptr, ptr %wait_at
  %signal = load ptr, ptr %signal_at
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
  %patient = icmp slt i64 %spins1, SPINS
  br i1 %patient, label %pause, label %sleep
pause:
  PAUSE
  br label %spin
sleep:
  call i32 %mutex_lock(ptr %mutex_at)
  atomicrmw add ptr %sleepers_at, i64 1 seq_cst
  br label %check
check:
  %newest2 = load atomic i64, ptr %generation_at seq_cst, align 8
  %changed2 = icmp ne i64 %newest2, %seen
  br i1 %changed2, label %wake_up, label %doze
doze:
  call i32 %wait(ptr %work_at, ptr %mutex_at)
  br label %check
wake_up:
  atomicrmw sub ptr %sleepers_at, i64 1 seq_cst
  call i32 %mutex_unlock(ptr %mutex_at)
  %tickets = load atomic i64, ptr %tickets_at seq_cst, align 8
  %more = icmp sgt i64 %tickets, 1
  br i1 %more, label %pass_on, label %joining
pass_on:
  call i32 %signal(ptr %work_at)
  call i32 %signal(ptr %work_at)
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
  call i32 %mutex_lock(ptr %mutex_at)
  call i32 %signal(ptr %done_at)
  call i32 %mutex_unlock(ptr %mutex_at)
  br label %next_job
}
"""
