! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Jacobi's method in three dimensions; the arrays are arguments of procedures of a module. Argument: size.
module steps
  implicit none
contains
  subroutine fill(a, b, n)
    integer, intent(in) :: n
    double precision :: a(n, n, n), b(n, n, n)
    !DVM$ INHERIT a, b
    integer :: i, j, k
    !DVM$ PARALLEL (k, j, i) ON a(i, j, k)
    do k = 1, n
      do j = 1, n
        do i = 1, n
          a(i, j, k) = 0
          b(i, j, k) = i + 2 * j + 3 * k
        end do
      end do
    end do
  end subroutine

  subroutine step(a, b, n, eps)
    integer, intent(in) :: n
    double precision :: a(n, n, n), b(n, n, n)
    !DVM$ INHERIT a, b
    double precision, intent(out) :: eps
    integer :: i, j, k
    eps = 0
    !DVM$ PARALLEL (k, j, i) ON a(i, j, k), REDUCTION(MAX(eps))
    do k = 2, n - 1
      do j = 2, n - 1
        do i = 2, n - 1
          eps = max(eps, abs(b(i, j, k) - a(i, j, k)))
          a(i, j, k) = b(i, j, k)
        end do
      end do
    end do
    !DVM$ PARALLEL (k, j, i) ON b(i, j, k), SHADOW_RENEW(a)
    do k = 2, n - 1
      do j = 2, n - 1
        do i = 2, n - 1
          b(i, j, k) = (a(i - 1, j, k) + a(i + 1, j, k) + a(i, j - 1, k) + a(i, j + 1, k) + a(i, j, k - 1) + a(i, j, k + 1)) / 6
        end do
      end do
    end do
  end subroutine
end module

program jac3d
  use steps
  implicit none
  integer :: n, it
  double precision :: eps
  double precision, allocatable :: a(:,:,:), b(:,:,:)
  character(len=32) :: word
  !DVM$ DISTRIBUTE a(*, BLOCK, BLOCK)
  !DVM$ ALIGN b(i, j, k) WITH a(i, j, k)
  call get_command_argument(1, word)
  read (word, *) n
  allocate (a(n, n, n), b(n, n, n))
  call fill(a, b, n)
  do it = 1, 10
    call step(a, b, n, eps)
    print '(a,i6,a,es22.14)', 'it = ', it, ' eps = ', eps
  end do
  print '(3es22.14)', b(2, 2, 2), b(n / 2, 3, n - 1), maxval([b(3, 3, 3), b(4, 4, 4)])
end program
