! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Alternating directions: sweeps along rows, then along columns, on an array that is distributed anew for each.
! Argument: size.
program adi
  implicit none
  integer :: n, it, i, j
  double precision :: eps, old
  double precision, allocatable :: a(:,:)
  character(len=32) :: word
  !DVM$ DISTRIBUTE (*, BLOCK) :: a
  !DVM$ DYNAMIC a
  call get_command_argument(1, word)
  read (word, *) n
  allocate (a(n, n))
  !DVM$ PARALLEL (j, i) ON a(i, j)
  do j = 1, n
    do i = 1, n
      a(i, j) = 0
      if (i == 1 .or. j == 1 .or. i == n .or. j == n) a(i, j) = 10d0 * (i - 1) / (n - 1) + 10d0 * (j - 1) / (n - 1)
    end do
  end do
  do it = 1, 10
    eps = 0
    !DVM$ REDISTRIBUTE a(*, BLOCK)
    !DVM$ PARALLEL (j) ON a(*, j), PRIVATE(i)
    do j = 2, n - 1
      do i = 2, n - 1
        a(i, j) = (a(i - 1, j) + a(i + 1, j)) / 2
      end do
    end do
    !DVM$ REDISTRIBUTE a(BLOCK, *)
    !DVM$ PARALLEL (i) ON a(i, *), PRIVATE(j, old), REDUCTION(MAX(eps))
    do i = 2, n - 1
      do j = 2, n - 1
        old = a(i, j)
        a(i, j) = (a(i, j - 1) + a(i, j + 1)) / 2
        eps = max(eps, abs(old - a(i, j)))
      end do
    end do
    ! The same sweep backwards, as a pipeline over the ranks.
    !DVM$ PARALLEL (i, j) ON a(i, j), ACROSS(a(1:1, 0:0))
    do i = n - 1, 2, -1
      do j = 2, n - 1
        a(i, j) = (a(i - 1, j) + a(i + 1, j)) / 2
      end do
    end do
    print '(a,i4,a,es22.14)', 'it = ', it, ' eps = ', eps
  end do
  print '(a,2es22.14)', 'middle ', a(n / 2, n / 2), a(2, n - 1)
end program
