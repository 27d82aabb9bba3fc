! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The failures of a test, and the test's name and rank.
module checks
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  integer :: rank = 0, ranks = 1, failures = 0

contains

  subroutine check(holds, promise)
    logical, intent(in) :: holds
    character(*), intent(in) :: promise
    if (holds) return
    failures = failures + 1
    write (error_unit, '(a,i0,a)') 'rank ', rank, ': does not hold: '//promise
  end subroutine

end module checks
