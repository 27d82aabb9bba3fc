! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Conjugate gradients for Poisson's equation on a square. Argument: size. Sums are added by ranks, so that the last
! digits may differ from those of a serial run: fewer are printed.
program cg
  implicit none
  integer :: n, it, i, j
  double precision :: rho, next, alpha, dot
  double precision, allocatable :: x(:,:), r(:,:), p(:,:), q(:,:)
  character(len=32) :: word
  !DVM$ DISTRIBUTE x(BLOCK, BLOCK)
  !DVM$ ALIGN (i, j) WITH x(i, j) :: r, p, q
  call get_command_argument(1, word)
  read (word, *) n
  allocate (x(0:n + 1, 0:n + 1), r(0:n + 1, 0:n + 1), p(0:n + 1, 0:n + 1), q(0:n + 1, 0:n + 1))
  !DVM$ PARALLEL (j, i) ON x(i, j)
  do j = 0, n + 1
    do i = 0, n + 1
      x(i, j) = 0
      q(i, j) = 0
      r(i, j) = 0
      if (i > 0 .and. j > 0 .and. i <= n .and. j <= n) r(i, j) = 1d0 / (i + j)
      p(i, j) = r(i, j)
    end do
  end do
  rho = 0
  !DVM$ PARALLEL (j, i) ON r(i, j), REDUCTION(SUM(rho))
  do j = 1, n
    do i = 1, n
      rho = rho + r(i, j) ** 2
    end do
  end do
  do it = 1, 20
    dot = 0
    !DVM$ PARALLEL (j, i) ON q(i, j), SHADOW_RENEW(p), REDUCTION(SUM(dot))
    do j = 1, n
      do i = 1, n
        q(i, j) = 4 * p(i, j) - p(i - 1, j) - p(i + 1, j) - p(i, j - 1) - p(i, j + 1)
        dot = dot + p(i, j) * q(i, j)
      end do
    end do
    alpha = rho / dot
    next = 0
    !DVM$ PARALLEL (j, i) ON x(i, j), REDUCTION(SUM(next))
    do j = 1, n
      do i = 1, n
        x(i, j) = x(i, j) + alpha * p(i, j)
        r(i, j) = r(i, j) - alpha * q(i, j)
        next = next + r(i, j) ** 2
      end do
    end do
    !DVM$ PARALLEL (j, i) ON p(i, j)
    do j = 1, n
      do i = 1, n
        p(i, j) = r(i, j) + next / rho * p(i, j)
      end do
    end do
    rho = next
    print '(a,i4,a,es13.6)', 'it = ', it, ' residual = ', sqrt(rho)
  end do
  print '(es13.6)', x(n / 2, n / 2)
end program
