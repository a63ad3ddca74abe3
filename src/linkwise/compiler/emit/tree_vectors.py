"""Functions on rows of single-precision numbers as LLVM text; ``motion.planning.operations`` says what they do.

The nodes of a tree lie in groups of 16: for every coordinate the 16 numbers of a group side by side. No operation is
fused or reordered, and vectors have 16 lanes whatever registers the processor has, so that every processor finds the
same path.
"""

from __future__ import annotations

LANES = 16

MODULE = """
declare float @llvm.sqrt.f32(float)
declare float @llvm.fabs.f32(float)
declare float @llvm.ceil.f32(float)

define internal i64 @nearest(i64 %tree.a, i64 %count, i64 %n, i64 %q.a) {
entry:
  %tree = inttoptr i64 %tree.a to ptr
  %q = inttoptr i64 %q.a to ptr
  %over = add i64 %count, 15
  %groups = lshr i64 %over, 4
  %size = shl i64 %n, 4
  br label %group
group:
  %g = phi i64 [0, %entry], [%g1, %next]
  %best = phi <16 x float> [splat (float 0x7FF0000000000000), %entry], [%best1, %next]
  %which = phi <16 x i32> [zeroinitializer, %entry], [%which1, %next]
  %some = icmp slt i64 %g, %groups
  br i1 %some, label %start, label %reduce
start:
  %offset = mul i64 %g, %size
  %base = getelementptr float, ptr %tree, i64 %offset
  br label %axis
axis:
  %j = phi i64 [0, %start], [%j1, %axis]
  %sum = phi <16 x float> [zeroinitializer, %start], [%sum1, %axis]
  %at = shl i64 %j, 4
  %place = getelementptr float, ptr %base, i64 %at
  %x = load <16 x float>, ptr %place, align 4
  %y.at = getelementptr float, ptr %q, i64 %j
  %y = load float, ptr %y.at, align 4
  %y.one = insertelement <16 x float> poison, float %y, i64 0
  %y.all = shufflevector <16 x float> %y.one, <16 x float> poison, <16 x i32> zeroinitializer
  %d = fsub <16 x float> %x, %y.all
  %dd = fmul <16 x float> %d, %d
  %sum1 = fadd <16 x float> %sum, %dd
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, %n
  br i1 %more, label %axis, label %next
next:
  %less = fcmp olt <16 x float> %sum1, %best
  %best1 = select <16 x i1> %less, <16 x float> %sum1, <16 x float> %best
  %g.32 = trunc i64 %g to i32
  %g.one = insertelement <16 x i32> poison, i32 %g.32, i64 0
  %g.all = shufflevector <16 x i32> %g.one, <16 x i32> poison, <16 x i32> zeroinitializer
  %which1 = select <16 x i1> %less, <16 x i32> %g.all, <16 x i32> %which
  %g1 = add i64 %g, 1
  br label %group
reduce:
  br label %lane
lane:
  %k = phi i64 [0, %reduce], [%k1, %lane]
  %least = phi float [0x7FF0000000000000, %reduce], [%least1, %lane]
  %number = phi i64 [0, %reduce], [%number1, %lane]
  %value = extractelement <16 x float> %best, i64 %k
  %group.32 = extractelement <16 x i32> %which, i64 %k
  %group.64 = zext i32 %group.32 to i64
  %first = shl i64 %group.64, 4
  %mine = add i64 %first, %k
  %better = fcmp olt float %value, %least
  %equal = fcmp oeq float %value, %least
  %earlier = icmp slt i64 %mine, %number
  %tie = and i1 %equal, %earlier
  %take = or i1 %better, %tie
  %least1 = select i1 %take, float %value, float %least
  %number1 = select i1 %take, i64 %mine, i64 %number
  %k1 = add i64 %k, 1
  %again = icmp slt i64 %k1, 16
  br i1 %again, label %lane, label %done
done:
  ret i64 %number1
}

define internal ptr @node(i64 %tree.a, i64 %n, i64 %number) alwaysinline {
  %tree = inttoptr i64 %tree.a to ptr
  %g = lshr i64 %number, 4
  %size = shl i64 %n, 4
  %offset = mul i64 %g, %size
  %lane = and i64 %number, 15
  %place = add i64 %offset, %lane
  %at = getelementptr float, ptr %tree, i64 %place
  ret ptr %at
}

define internal i64 @get_node(i64 %tree, i64 %n, i64 %number, i64 %to.a) {
entry:
  %to = inttoptr i64 %to.a to ptr
  %from = call ptr @node(i64 %tree, i64 %n, i64 %number)
  br label %axis
axis:
  %j = phi i64 [0, %entry], [%j1, %axis]
  %offset = shl i64 %j, 4
  %source = getelementptr float, ptr %from, i64 %offset
  %x = load float, ptr %source, align 4
  %target = getelementptr float, ptr %to, i64 %j
  store float %x, ptr %target, align 4
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, %n
  br i1 %more, label %axis, label %done
done:
  ret i64 0
}

define internal i64 @set_node(i64 %tree, i64 %n, i64 %number, i64 %q.a) {
entry:
  %q = inttoptr i64 %q.a to ptr
  %at = call ptr @node(i64 %tree, i64 %n, i64 %number)
  %lane = and i64 %number, 15
  %first = icmp eq i64 %lane, 0
  br i1 %first, label %clear, label %store
clear:
  %c = phi i64 [0, %entry], [%c1, %clear]
  %c.at = shl i64 %c, 4
  %row = getelementptr float, ptr %at, i64 %c.at
  store <16 x float> splat (float 0x430C6BF520000000), ptr %row, align 4
  %c1 = add i64 %c, 1
  %c.more = icmp slt i64 %c1, %n
  br i1 %c.more, label %clear, label %store
store:
  br label %axis
axis:
  %j = phi i64 [0, %store], [%j1, %axis]
  %source = getelementptr float, ptr %q, i64 %j
  %x = load float, ptr %source, align 4
  %offset = shl i64 %j, 4
  %target = getelementptr float, ptr %at, i64 %offset
  store float %x, ptr %target, align 4
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, %n
  br i1 %more, label %axis, label %done
done:
  ret i64 0
}

define internal float @distance(ptr %a, ptr %b, i64 %n) {
entry:
  br label %axis
axis:
  %j = phi i64 [0, %entry], [%j1, %axis]
  %sum = phi float [0.0, %entry], [%sum1, %axis]
  %a.at = getelementptr float, ptr %a, i64 %j
  %b.at = getelementptr float, ptr %b, i64 %j
  %x = load float, ptr %a.at, align 4
  %y = load float, ptr %b.at, align 4
  %d = fsub float %y, %x
  %dd = fmul float %d, %d
  %sum1 = fadd float %sum, %dd
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, %n
  br i1 %more, label %axis, label %done
done:
  %root = call float @llvm.sqrt.f32(float %sum1)
  ret float %root
}

define internal void @mix(ptr %a, ptr %b, i64 %n, float %part, ptr %to) {
entry:
  br label %axis
axis:
  %j = phi i64 [0, %entry], [%j1, %axis]
  %a.at = getelementptr float, ptr %a, i64 %j
  %b.at = getelementptr float, ptr %b, i64 %j
  %x = load float, ptr %a.at, align 4
  %y = load float, ptr %b.at, align 4
  %d = fsub float %y, %x
  %p = fmul float %d, %part
  %z = fadd float %x, %p
  %to.at = getelementptr float, ptr %to, i64 %j
  store float %z, ptr %to.at, align 4
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, %n
  br i1 %more, label %axis, label %done
done:
  ret void
}

define internal i64 @steer(i64 %a.a, i64 %b.a, i64 %n, i64 %settings.a, i64 %to.a) {
  %a = inttoptr i64 %a.a to ptr
  %b = inttoptr i64 %b.a to ptr
  %to = inttoptr i64 %to.a to ptr
  %settings = inttoptr i64 %settings.a to ptr
  %step = load float, ptr %settings, align 4
  %far = call float @distance(ptr %a, ptr %b, i64 %n)
  %reached = fcmp ole float %far, %step
  br i1 %reached, label %all, label %part
all:
  %copied = call i64 @copy_row(i64 %to.a, i64 %b.a, i64 %n)
  ret i64 1
part:
  %share = fdiv float %step, %far
  call void @mix(ptr %a, ptr %b, i64 %n, float %share, ptr %to)
  ret i64 0
}

define internal i64 @blocks_between(i64 %a.a, i64 %b.a, i64 %n, i64 %settings.a) {
entry:
  %a = inttoptr i64 %a.a to ptr
  %b = inttoptr i64 %b.a to ptr
  %settings = inttoptr i64 %settings.a to ptr
  br label %axis
axis:
  %j = phi i64 [0, %entry], [%j1, %axis]
  %sum = phi float [0.0, %entry], [%sum1, %axis]
  %a.at = getelementptr float, ptr %a, i64 %j
  %b.at = getelementptr float, ptr %b, i64 %j
  %x = load float, ptr %a.at, align 4
  %y = load float, ptr %b.at, align 4
  %d = fsub float %y, %x
  %size = call float @llvm.fabs.f32(float %d)
  %j1 = add i64 %j, 1
  %f.at = getelementptr float, ptr %settings, i64 %j1
  %f = load float, ptr %f.at, align 4
  %part = fmul float %f, %size
  %sum1 = fadd float %sum, %part
  %more = icmp slt i64 %j1, %n
  br i1 %more, label %axis, label %done
done:
  %up = call float @llvm.ceil.f32(float %sum1)
  %small = fcmp olt float %up, 1.0e+6
  %bounded = select i1 %small, float %up, float 1.0e+6
  %blocks = fptosi float %bounded to i64
  %none = icmp slt i64 %blocks, 1
  %least = select i1 %none, i64 1, i64 %blocks
  ret i64 %least
}

define internal i64 @fill(i64 %to.a, i64 %a.a, i64 %b.a, i64 %n, i64 %block, i64 %blocks) {
entry:
  %to = inttoptr i64 %to.a to ptr
  %a = inttoptr i64 %a.a to ptr
  %b = inttoptr i64 %b.a to ptr
  %all = shl i64 %blocks, 4
  %all.f = sitofp i64 %all to float
  br label %lane
lane:
  %k = phi i64 [0, %entry], [%k1, %lane]
  %row = mul i64 %k, %blocks
  %one = add i64 %row, %block
  %place = add i64 %one, 1
  %place.f = sitofp i64 %place to float
  %part = fdiv float %place.f, %all.f
  %offset = mul i64 %k, %n
  %target = getelementptr float, ptr %to, i64 %offset
  call void @mix(ptr %a, ptr %b, i64 %n, float %part, ptr %target)
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, 16
  br i1 %more, label %lane, label %done
done:
  ret i64 0
}

define internal i64 @any_hit(i64 %values.a) {
  %values = inttoptr i64 %values.a to ptr
  %v = load <16 x float>, ptr %values, align 4
  %set = fcmp une <16 x float> %v, zeroinitializer
  %bits = bitcast <16 x i1> %set to i16
  %some = icmp ne i16 %bits, 0
  %found = zext i1 %some to i64
  ret i64 %found
}

; 64 random bits of a counter (splitmix64)
define internal i64 @mixed(i64 %seed, i64 %counter) {
  %spread = mul i64 %counter, -7046029254386353131
  %start = add i64 %spread, %seed
  %a1 = lshr i64 %start, 30
  %a2 = xor i64 %start, %a1
  %a3 = mul i64 %a2, -4658895280553007687
  %b1 = lshr i64 %a3, 27
  %b2 = xor i64 %a3, %b1
  %b3 = mul i64 %b2, -7723592293110705685
  %c1 = lshr i64 %b3, 31
  %c2 = xor i64 %b3, %c1
  ret i64 %c2
}

define internal float @part_of(i64 %seed, i64 %counter) {
  %bits = call i64 @mixed(i64 %seed, i64 %counter)
  %high = lshr i64 %bits, 40
  %real = uitofp i64 %high to float
  %part = fmul float %real, 0x3E70000000000000
  ret float %part
}

define internal i64 @draw(i64 %seed, i64 %counter, i64 %n, i64 %lower.a, i64 %extent.a, i64 %to.a) {
entry:
  %lower = inttoptr i64 %lower.a to ptr
  %extent = inttoptr i64 %extent.a to ptr
  %to = inttoptr i64 %to.a to ptr
  %first = mul i64 %counter, %n
  br label %axis
axis:
  %j = phi i64 [0, %entry], [%j1, %axis]
  %place = add i64 %first, %j
  %part = call float @part_of(i64 %seed, i64 %place)
  %low.at = getelementptr float, ptr %lower, i64 %j
  %low = load float, ptr %low.at, align 4
  %size.at = getelementptr float, ptr %extent, i64 %j
  %size = load float, ptr %size.at, align 4
  %x = fmul float %part, %size
  %y = fadd float %low, %x
  %target = getelementptr float, ptr %to, i64 %j
  store float %y, ptr %target, align 4
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, %n
  br i1 %more, label %axis, label %done
done:
  ret i64 0
}

define internal i64 @between(i64 %a.a, i64 %b.a, i64 %n, i64 %sixteenths, i64 %to.a) {
  %a = inttoptr i64 %a.a to ptr
  %b = inttoptr i64 %b.a to ptr
  %to = inttoptr i64 %to.a to ptr
  %real = uitofp i64 %sixteenths to float
  %part = fmul float %real, 0.0625
  call void @mix(ptr %a, ptr %b, i64 %n, float %part, ptr %to)
  ret i64 0
}

define internal i64 @copy_row(i64 %to.a, i64 %from.a, i64 %n) {
entry:
  %to = inttoptr i64 %to.a to ptr
  %from = inttoptr i64 %from.a to ptr
  br label %axis
axis:
  %j = phi i64 [0, %entry], [%j1, %axis]
  %source = getelementptr float, ptr %from, i64 %j
  %x = load float, ptr %source, align 4
  %target = getelementptr float, ptr %to, i64 %j
  store float %x, ptr %target, align 4
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, %n
  br i1 %more, label %axis, label %done
done:
  ret i64 0
}
"""
