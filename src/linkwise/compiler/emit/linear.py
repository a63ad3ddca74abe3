"""Products, orthogonal triangles and rotations of matrices of any size, as LLVM text; see ``linkwise.solve.linear``.

A matrix is a list of vectors of ``length`` numbers, one after the other; ``length`` is a multiple of ``LANES`` and
what is not used is zero. A sum has ``LANES`` parts, whatever registers the processor has, and they are added in one
order; no multiplication is fused with an addition. So every processor returns the same bits.
"""

from __future__ import annotations

LANES = 8
SWEEPS = 60  # of rotations, at most: six to ten are usual

MODULE = """
declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.copysign.f64(double, double)

; the eight parts of a sum, added in one order
define internal double @total(<8 x double> %parts) alwaysinline {
  %low4 = shufflevector <8 x double> %parts, <8 x double> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %high4 = shufflevector <8 x double> %parts, <8 x double> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %four = fadd <4 x double> %low4, %high4
  %low2 = shufflevector <4 x double> %four, <4 x double> poison, <2 x i32> <i32 0, i32 1>
  %high2 = shufflevector <4 x double> %four, <4 x double> poison, <2 x i32> <i32 2, i32 3>
  %two = fadd <2 x double> %low2, %high2
  %low = extractelement <2 x double> %two, i32 0
  %high = extractelement <2 x double> %two, i32 1
  %sum = fadd double %low, %high
  ret double %sum
}

; a . b over [first, length)
define internal double @dot(ptr %a, ptr %b, i64 %first, i64 %length) alwaysinline {
start:
  br label %test
test:
  %k = phi i64 [%first, %start], [%next, %body]
  %parts = phi <8 x double> [zeroinitializer, %start], [%more, %body]
  %on = icmp slt i64 %k, %length
  br i1 %on, label %body, label %done
body:
  %a_at = getelementptr double, ptr %a, i64 %k
  %b_at = getelementptr double, ptr %b, i64 %k
  %x = load <8 x double>, ptr %a_at, align 8
  %y = load <8 x double>, ptr %b_at, align 8
  %xy = fmul <8 x double> %x, %y
  %more = fadd <8 x double> %parts, %xy
  %next = add i64 %k, 8
  br label %test
done:
  %sum = call double @total(<8 x double> %parts)
  ret double %sum
}

; C (rows, columns) = A B', with the rows of A and of B
define void @linear_product(ptr %A, ptr %B, ptr %C, i64 %rows, i64 %columns, i64 %length) {
start:
  br label %row
row:
  %i = phi i64 [0, %start], [%i_next, %row_end]
  %more_rows = icmp slt i64 %i, %rows
  br i1 %more_rows, label %row_begin, label %done
row_begin:
  %a_place = mul i64 %i, %length
  %a = getelementptr double, ptr %A, i64 %a_place
  %c_place = mul i64 %i, %columns
  %c = getelementptr double, ptr %C, i64 %c_place
  br label %column
column:
  %j = phi i64 [0, %row_begin], [%j_next, %cell]
  %more_columns = icmp slt i64 %j, %columns
  br i1 %more_columns, label %cell, label %row_end
cell:
  %b_place = mul i64 %j, %length
  %b = getelementptr double, ptr %B, i64 %b_place
  %sum = call double @dot(ptr %a, ptr %b, i64 0, i64 %length)
  %c_at = getelementptr double, ptr %c, i64 %j
  store double %sum, ptr %c_at, align 8
  %j_next = add i64 %j, 1
  br label %column
row_end:
  %i_next = add i64 %i, 1
  br label %row
done:
  ret void
}

; the square of a vector over [k, length)
define internal double @square_from(ptr %a, i64 %k, i64 %length) {
start:
  %over = add i64 %k, 7
  %whole = and i64 %over, -8
  %rest = call double @dot(ptr %a, ptr %a, i64 %whole, i64 %length)
  br label %test
test:
  %i = phi i64 [%k, %start], [%next, %body]
  %sum = phi double [%rest, %start], [%more, %body]
  %on = icmp slt i64 %i, %whole
  br i1 %on, label %body, label %done
body:
  %at = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %at, align 8
  %xx = fmul double %x, %x
  %more = fadd double %sum, %xx
  %next = add i64 %i, 1
  br label %test
done:
  ret double %sum
}

; of the vectors k to ``among`` - 1 the one that is longest over [k, length) changes places with vector k
define internal void @put_longest_first(ptr %A, ptr %order, i64 %k, i64 %among, i64 %length) {
start:
  br label %test
test:
  %j = phi i64 [%k, %start], [%j_next, %body]
  %best = phi i64 [%k, %start], [%best_next, %body]
  %largest = phi double [-1.0, %start], [%largest_next, %body]
  %on = icmp slt i64 %j, %among
  br i1 %on, label %body, label %found
body:
  %place = mul i64 %j, %length
  %a = getelementptr double, ptr %A, i64 %place
  %square = call double @square_from(ptr %a, i64 %k, i64 %length)
  %larger = fcmp ogt double %square, %largest
  %largest_next = select i1 %larger, double %square, double %largest
  %best_next = select i1 %larger, i64 %j, i64 %best
  %j_next = add i64 %j, 1
  br label %test
found:
  %order_k = getelementptr i64, ptr %order, i64 %k
  %order_best = getelementptr i64, ptr %order, i64 %best
  %own = load i64, ptr %order_k, align 8
  %other = load i64, ptr %order_best, align 8
  store i64 %other, ptr %order_k, align 8
  store i64 %own, ptr %order_best, align 8
  %k_place = mul i64 %k, %length
  %best_place = mul i64 %best, %length
  %x = getelementptr double, ptr %A, i64 %k_place
  %y = getelementptr double, ptr %A, i64 %best_place
  br label %swap
swap:
  %i = phi i64 [0, %found], [%i_next, %swapped]
  %more = icmp slt i64 %i, %length
  br i1 %more, label %swapped, label %done
swapped:
  %x_at = getelementptr double, ptr %x, i64 %i
  %y_at = getelementptr double, ptr %y, i64 %i
  %xs = load <8 x double>, ptr %x_at, align 8
  %ys = load <8 x double>, ptr %y_at, align 8
  store <8 x double> %ys, ptr %x_at, align 8
  store <8 x double> %xs, ptr %y_at, align 8
  %i_next = add i64 %i, 8
  br label %swap
done:
  ret void
}

; Householder's reflections: of the vectors of A, the first ``steps`` become columns of a triangle; v is scratch. The
; first ``among`` vectors are taken longest first, and ``order`` with them; 0: in the order in which they are
define void @linear_triangle(ptr %A, ptr %v, ptr %order, i64 %vectors, i64 %length, i64 %steps, i64 %among) {
start:
  br label %step
step:
  %k = phi i64 [0, %start], [%k_next, %step_end]
  %more_steps = icmp slt i64 %k, %steps
  br i1 %more_steps, label %choose, label %done
choose:
  %chosen = icmp slt i64 %k, %among
  br i1 %chosen, label %exchange, label %copy_begin
exchange:
  call void @put_longest_first(ptr %A, ptr %order, i64 %k, i64 %among, i64 %length)
  br label %copy_begin
copy_begin:
  %first = and i64 %k, -8
  %own_place = mul i64 %k, %length
  %own = getelementptr double, ptr %A, i64 %own_place
  br label %copy
copy:
  %c = phi i64 [%first, %copy_begin], [%c_next, %copied]
  %more_copies = icmp slt i64 %c, %length
  br i1 %more_copies, label %copied, label %clear
copied:
  %from = getelementptr double, ptr %own, i64 %c
  %to = getelementptr double, ptr %v, i64 %c
  %value = load <8 x double>, ptr %from, align 8
  store <8 x double> %value, ptr %to, align 8
  %c_next = add i64 %c, 8
  br label %copy
clear:
  %z = phi i64 [%first, %copy], [%z_next, %cleared]
  %more_zeros = icmp slt i64 %z, %k
  br i1 %more_zeros, label %cleared, label %reflect
cleared:
  %zero_at = getelementptr double, ptr %v, i64 %z
  store double 0.0, ptr %zero_at, align 8
  %z_next = add i64 %z, 1
  br label %clear
reflect:
  %square = call double @dot(ptr %v, ptr %v, i64 %first, i64 %length)
  %norm = call double @llvm.sqrt.f64(double %square)
  %pivot_at = getelementptr double, ptr %v, i64 %k
  %pivot = load double, ptr %pivot_at, align 8
  %signed = call double @llvm.copysign.f64(double %norm, double %pivot)
  %grown = fadd double %pivot, %signed
  store double %grown, ptr %pivot_at, align 8
  %size = call double @llvm.fabs.f64(double %pivot)
  %part = fmul double %size, %norm
  %half = fadd double %square, %part
  %none = fcmp oeq double %half, 0.0
  %diagonal = fneg double %signed
  %diagonal_at = getelementptr double, ptr %own, i64 %k
  store double %diagonal, ptr %diagonal_at, align 8
  %after = add i64 %k, 1
  br i1 %none, label %step_end, label %other
other:
  %j = phi i64 [%after, %reflect], [%j_next, %other_end]
  %more_others = icmp slt i64 %j, %vectors
  br i1 %more_others, label %other_begin, label %step_end
other_begin:
  %b_place = mul i64 %j, %length
  %b = getelementptr double, ptr %A, i64 %b_place
  %product = call double @dot(ptr %v, ptr %b, i64 %first, i64 %length)
  %factor = fdiv double %product, %half
  %one = insertelement <8 x double> poison, double %factor, i32 0
  %factors = shufflevector <8 x double> %one, <8 x double> poison, <8 x i32> zeroinitializer
  br label %take
take:
  %t = phi i64 [%first, %other_begin], [%t_next, %taken]
  %more_taken = icmp slt i64 %t, %length
  br i1 %more_taken, label %taken, label %other_end
taken:
  %v_at = getelementptr double, ptr %v, i64 %t
  %b_at = getelementptr double, ptr %b, i64 %t
  %vs = load <8 x double>, ptr %v_at, align 8
  %bs = load <8 x double>, ptr %b_at, align 8
  %away = fmul <8 x double> %factors, %vs
  %rest = fsub <8 x double> %bs, %away
  store <8 x double> %rest, ptr %b_at, align 8
  %t_next = add i64 %t, 8
  br label %take
other_end:
  %j_next = add i64 %j, 1
  br label %other
step_end:
  %k_next = add i64 %k, 1
  br label %step
done:
  ret void
}

; Jacobi's rotations of pairs of vectors of ``pitch`` numbers, until their first ``length`` numbers are orthogonal
; within the tolerance; returns the number of sweeps
define i64 @linear_rotate(ptr %A, i64 %vectors, i64 %length, i64 %pitch, double %tolerance, i64 %most) {
start:
  br label %sweep
sweep:
  %sweeps = phi i64 [0, %start], [%sweeps_next, %sweep_end]
  %more_sweeps = icmp slt i64 %sweeps, %most
  br i1 %more_sweeps, label %first, label %done
first:
  %i = phi i64 [0, %sweep], [%i_next, %first_end]
  %turned_i = phi i64 [0, %sweep], [%turned_j, %first_end]
  %more_first = icmp slt i64 %i, %vectors
  br i1 %more_first, label %first_begin, label %sweep_end
first_begin:
  %a_place = mul i64 %i, %pitch
  %a = getelementptr double, ptr %A, i64 %a_place
  %after = add i64 %i, 1
  br label %second
second:
  %j = phi i64 [%after, %first_begin], [%j_next, %second_end]
  %turned_j = phi i64 [%turned_i, %first_begin], [%turned, %second_end]
  %more_second = icmp slt i64 %j, %vectors
  br i1 %more_second, label %pair, label %first_end
pair:
  %b_place = mul i64 %j, %pitch
  %b = getelementptr double, ptr %A, i64 %b_place
  %aa = call double @dot(ptr %a, ptr %a, i64 0, i64 %length)
  %bb = call double @dot(ptr %b, ptr %b, i64 0, i64 %length)
  %ab = call double @dot(ptr %a, ptr %b, i64 0, i64 %length)
  %a_norm = call double @llvm.sqrt.f64(double %aa)
  %b_norm = call double @llvm.sqrt.f64(double %bb)
  %norms = fmul double %a_norm, %b_norm
  %share = fmul double %tolerance, %norms
  %bound = fadd double %share, 0x0C10000000000000 ; 2^-830: squares of shorter vectors are lost
  %size = call double @llvm.fabs.f64(double %ab)
  %oblique = fcmp ogt double %size, %bound
  %shorter = fcmp olt double %aa, %bb ; the longer vector comes first (de Rijk 1989)
  %moved = or i1 %oblique, %shorter
  br i1 %moved, label %rotate, label %second_end
rotate:
  %difference = fsub double %bb, %aa
  %twice = fadd double %ab, %ab
  %zeta = fdiv double %difference, %twice
  %zeta_square = fmul double %zeta, %zeta
  %zeta_more = fadd double %zeta_square, 1.0
  %zeta_root = call double @llvm.sqrt.f64(double %zeta_more)
  %zeta_size = call double @llvm.fabs.f64(double %zeta)
  %below = fadd double %zeta_size, %zeta_root
  %tangent_size = fdiv double 1.0, %below
  %tangent = call double @llvm.copysign.f64(double %tangent_size, double %zeta)
  %tangent_square = fmul double %tangent, %tangent
  %tangent_more = fadd double %tangent_square, 1.0
  %tangent_root = call double @llvm.sqrt.f64(double %tangent_more)
  %cosine_oblique = fdiv double 1.0, %tangent_root
  %sine_oblique = fmul double %cosine_oblique, %tangent
  %cosine = select i1 %oblique, double %cosine_oblique, double 1.0
  %sine = select i1 %oblique, double %sine_oblique, double 0.0
  %c_one = insertelement <8 x double> poison, double %cosine, i32 0
  %c = shufflevector <8 x double> %c_one, <8 x double> poison, <8 x i32> zeroinitializer
  %s_one = insertelement <8 x double> poison, double %sine, i32 0
  %s = shufflevector <8 x double> %s_one, <8 x double> poison, <8 x i32> zeroinitializer
  br label %turn
turn:
  %k = phi i64 [0, %rotate], [%k_next, %body]
  %on = icmp slt i64 %k, %pitch
  br i1 %on, label %body, label %second_end
body:
  %a_at = getelementptr double, ptr %a, i64 %k
  %b_at = getelementptr double, ptr %b, i64 %k
  %x = load <8 x double>, ptr %a_at, align 8
  %y = load <8 x double>, ptr %b_at, align 8
  %cx = fmul <8 x double> %c, %x
  %sy = fmul <8 x double> %s, %y
  %sx = fmul <8 x double> %s, %x
  %cy = fmul <8 x double> %c, %y
  %x_new = fsub <8 x double> %cx, %sy
  %y_new = fadd <8 x double> %sx, %cy
  %first_new = select i1 %shorter, <8 x double> %y_new, <8 x double> %x_new
  %second_new = select i1 %shorter, <8 x double> %x_new, <8 x double> %y_new
  store <8 x double> %first_new, ptr %a_at, align 8
  store <8 x double> %second_new, ptr %b_at, align 8
  %k_next = add i64 %k, 8
  br label %turn
second_end:
  %change = zext i1 %oblique to i64
  %turned = or i64 %turned_j, %change
  %j_next = add i64 %j, 1
  br label %second
first_end:
  %i_next = add i64 %i, 1
  br label %first
sweep_end:
  %sweeps_next = add i64 %sweeps, 1
  %again = icmp ne i64 %turned_i, 0
  br i1 %again, label %sweep, label %done_after
done_after:
  ret i64 %sweeps_next
done:
  ret i64 -1
}
"""
