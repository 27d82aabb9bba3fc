! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Jacobi's method with a checkpoint of two files, saved every 10 iterations while the program computes on.
! Arguments: size, iterations, 1 to go on from the last copy.
program jacobi_saved
  implicit none
  integer :: n, last, resumed, first, it, i, j, status
  real :: eps, most
  real, allocatable :: a(:,:), b(:,:)
  character(len=32) :: word
  !DVM$ DISTRIBUTE (BLOCK, BLOCK) :: a
  !DVM$ ALIGN b(i, j) WITH a(i, j)
  call get_command_argument(1, word)
  read (word, *) n
  call get_command_argument(2, word)
  read (word, *) last
  call get_command_argument(3, word)
  read (word, *) resumed
  allocate (a(n, n), b(n, n))
  it = 0
  !DVM$ CP_CREATE saved, VARLIST(b, a, it), FILES('jacobi.0', 'jacobi.1'), PARALLEL
  !DVM$ PARALLEL (j, i) ON a(i, j)
  do j = 1, n
    do i = 1, n
      a(i, j) = 0.
      b(i, j) = 0.
      if (i > 1 .and. j > 1 .and. i < n .and. j < n) b(i, j) = 1. + i + j
    end do
  end do
  if (resumed == 1) then
    !DVM$ CP_LOAD saved
  end if
  first = it + 1
  do it = first, last
    eps = 0.
    !DVM$ PARALLEL (j, i) ON a(i, j), REDUCTION(MAX(eps))
    do j = 2, n - 1
      do i = 2, n - 1
        eps = max(eps, abs(b(i, j) - a(i, j)))
        a(i, j) = b(i, j)
      end do
    end do
    !DVM$ PARALLEL (j, i) ON b(i, j), SHADOW_RENEW(a)
    do j = 2, n - 1
      do i = 2, n - 1
        b(i, j) = (a(i - 1, j) + a(i + 1, j) + a(i, j - 1) + a(i, j + 1)) / 4
      end do
    end do
    print '(a,i6,a,es14.6)', 'it = ', it, ' eps = ', eps
    if (mod(it, 10) == 0) then
      !DVM$ CP_SAVE saved, ASYNC
    end if
  end do
  !DVM$ CP_WAIT saved, STATUS(status)
  most = b(n / 2, n / 2)
  print '(a,es14.6)', 'middle ', most
end program
