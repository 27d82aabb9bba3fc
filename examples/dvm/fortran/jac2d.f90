! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Jacobi's method in two dimensions. Arguments: size, iterations.
program jac2d
  implicit none
  integer :: n, last, it, i, j
  real :: eps
  real, allocatable :: a(:,:), b(:,:)
  character(len=32) :: word
  !DVM$ DISTRIBUTE (BLOCK, BLOCK) :: a
  !DVM$ ALIGN b(i, j) WITH a(i, j)
  call get_command_argument(1, word)
  read (word, *) n
  call get_command_argument(2, word)
  read (word, *) last
  allocate (a(n, n), b(n, n))
  !DVM$ REGION
  !DVM$ PARALLEL (j, i) ON a(i, j)
  do j = 1, n
    do i = 1, n
      a(i, j) = 0.
      if (i == 1 .or. j == 1 .or. i == n .or. j == n) then
        b(i, j) = 0.
      else
        b(i, j) = 1. + i + j
      end if
    end do
  end do
  !DVM$ END REGION
  do it = 1, last
    eps = 0.
    !DVM$ ACTUAL (eps)
    !DVM$ REGION
    !DVM$ PARALLEL (j, i) ON a(i, j), &
    !DVM$& REDUCTION(MAX(eps))
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
    !DVM$ END REGION
    !DVM$ GET_ACTUAL (eps)
    if (mod(it, 10) == 0) print '(a,i6,a,es14.6)', 'it = ', it, ' eps = ', eps
  end do
  open (3, file='jac2d.dat', form='formatted', status='unknown')
  write (3, *) b
  close (3)
end program
