! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! What the other examples leave out: arrays of a module, templates, shifted and collapsed alignment, weights, all kinds of
! reductions, arrays that are read from a formatted file, single elements. Argument: size.
module fields
  implicit none
  integer, parameter :: m = 17
  double precision :: u(0:m), v(m)
  !DVM$ DISTRIBUTE u(BLOCK)
  !DVM$ ALIGN v(i) WITH u(i - 1)
contains
  subroutine fill_fields()
    integer :: i
    !DVM$ PARALLEL (i) ON u(i)
    do i = 0, m
      u(i) = 2 * i
    end do
    !DVM$ PARALLEL (i) ON v(i), SHADOW_RENEW(u)
    do i = 1, m
      v(i) = u(i) - u(i - 1) + i
    end do
  end subroutine
end module

program features
  use fields
  implicit none
  integer :: n, i, j, where_at(2), status
  real :: weights(4), most, least
  double precision :: total, times
  logical :: all_fit, any_fits, odd
  real, allocatable :: a(:,:), row(:), w(:)
  integer :: c(0:11)
  character(len=32) :: word
  !DVM$ TEMPLATE t(40, 40)
  !DVM$ DISTRIBUTE t(BLOCK, BLOCK)
  !DVM$ ALIGN a(i, j) WITH t(i + 2, j + 1)
  !DVM$ ALIGN row(j) WITH t(3, j + 1)
  !DVM$ DISTRIBUTE w(WGT_BLOCK(weights, 4))
  !DVM$ DISTRIBUTE c(MULT_BLOCK(3))
  weights = [1., 2., 1., 4.]
  call get_command_argument(1, word)
  read (word, *) n
  allocate (a(n, n), row(n), w(2 * n))
  call fill_fields()
  print '(4f8.2)', v(1), v(m), u(0) + u(m)
  !DVM$ PARALLEL (j, i) ON a(i, j)
  do j = 1, n
    do i = 1, n
      a(i, j) = mod(7 * i + 11 * j, 23)
    end do
  end do
  a(3, 4) = 99
  if (a(3, 4) > 98) a(n, n) = a(3, 4) - 200
  most = -1e30
  least = 1e30
  total = 5
  times = 1
  all_fit = .true.
  any_fits = .false.
  odd = .false.
  where_at = 0
  !DVM$ PARALLEL (j, i) ON a(i, j), REDUCTION(MAXLOC(most, where_at, 2), MIN(least), SUM(total)), &
  !DVM$ REDUCTION(AND(all_fit), OR(any_fits), NEQV(odd))
  do j = 1, n
    do i = 1, n
      if (a(i, j) > most) then
        most = a(i, j)
        where_at(1) = i
        where_at(2) = j
      end if
      least = min(least, a(i, j))
      total = total + a(i, j)
      all_fit = all_fit .and. a(i, j) < 50
      any_fits = any_fits .or. a(i, j) == 22
      if (i == j) odd = .not. odd
    end do
  end do
  print *, most, where_at, least, total, all_fit, any_fits, odd
  !DVM$ PARALLEL (j) ON row(j), REMOTE_ACCESS(a(2, :))
  do j = n, 1, -2
    row(j) = a(2, j)
  end do
  !DVM$ PARALLEL (j) ON row(j), REMOTE_ACCESS(a(1, :))
  do j = n - 1, 1, -2
    row(j) = a(1, j)
  end do
  total = 0
  !DVM$ PARALLEL (j) ON row(j), REDUCTION(SUM(total))
  do j = 1, n
    total = total + row(j)
  end do
  print *, total, row(1), row(n)
  !DVM$ PARALLEL (i) ON w(i), REDUCTION(PRODUCT(times))
  do i = 1, 2 * n
    w(i) = i
    if (i < 6) times = times * w(i)
  end do
  !DVM$ PARALLEL (i) ON c(i)
  do i = 0, 11
    c(i) = i * i
  end do
  print *, times, c
  open (7, file='features.txt', form='formatted', status='replace', iostat=status)
  write (7, *, iostat=status) w
  write (7, '(5f8.1)') a(2:4, 3:7)
  rewind (7)
  !DVM$ PARALLEL (i) ON w(i)
  do i = 1, 2 * n
    w(i) = 0
  end do
  read (7, *, iostat=status, end=10, err=10) w
  read (7, '(5f8.1)') a(1:3, 1:5)
  close (7)
  print *, w(1), w(n), w(2 * n), status, a(3, 5), size(w)
  do i = 1, 3
    print '(6f7.1)', (a(i, j), j = 1, 5)
  end do
  stop
10 print *, 'the file ends too early'
end program
