! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Tests the Fortran face of encoders over recorder_encoders.c, which calls them at once.
module encoder_cases
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64
  use checks
  use recorder_checks
  use tailrace
  implicit none

  logical :: refuses = .false.

contains

  subroutine check_told(record)
    type(tr_record), intent(in) :: record
    call check(record%stream == 'out/{lead}.own' .and. record%field == 'temperature', 'texts pass')
    call check(all(record%shape == [3, 2]) .and. record%count == 6, 'shapes are as Fortran has them')
    call check(record%level_type == 'isobaricInhPa' .and. nint(record%level) == 850, 'the level passes')
    call check(nint(record%level_bottom) == 800 .and. all(nint(record%level_values) == [1000, 850]), 'levels pass')
    call check(record%level_number == 2 .and. record%field_number == 5, 'numbers count from 1')
    call check(record%statistic == 'maximum' .and. record%lead == 7200 .and. record%interval_start == 3600, &
               'the interval passes')
    call check(record%base_time == '2026-03-01T00:00:00Z' .and. record%calendar == 'noleap', 'times pass')
    call check(record%member == 7 .and. record%bits == 12, 'member and bits pass')
    call check(nint(100*record%accuracy) == 50 .and. nint(100*record%relative_accuracy) == 25, 'accuracies pass')
    call check(record%has_missing .and. nint(record%missing) == -9, 'the missing value passes')
    call check(record%key('quality') == '3' .and. record%key('speed') == '', 'options are found by name')
  end subroutine

  ! Appends the last of the values in the record's own type, or fails.
  recursive subroutine encode_last(record, out)
    type(tr_record), intent(in) :: record
    type(tr_encoded), intent(inout) :: out
    integer(int32), pointer :: i4(:)
    integer(int64), pointer :: i8(:,:)
    real(real32), pointer :: f4(:,:), other(:,:,:)
    real(real64), pointer :: f8(:)
    call check_told(record)
    call record%values(i4)
    call record%values(i8)
    call record%values(f4)
    call record%values(f8)
    call record%values(other)
    call check(.not. associated(other), 'a record of rank 2 is no array of rank 3')
    call check(count([associated(i4), associated(i8), associated(f4), associated(f8)]) == 1, 'one type fits')
    if (associated(i4)) call out%append(i4(6))
    if (associated(i8)) call out%append([i8(3, 2), i8(1, 2)])
    if (associated(f4)) call out%append(f4(3, 2))
    if (associated(f8)) then
      call out%append('ab')
      call out%append([1_int8, 2_int8])
      call out%append('')
      call out%fail('no more', index=5)
    end if
  end subroutine

  function twice(field, out) result(bytes)
    type(tr_record), intent(in) :: field
    type(tr_encoded), intent(inout) :: out
    integer(int64) :: bytes
    real(real32), pointer :: t(:)
    call field%values(t)
    call check(.not. associated(t), 'a bound knows no values')
    if (refuses) call out%fail('no such field', index=3)
    bytes = 2*field%count
  end function

  subroutine two_fields(fields, out)
    type(tr_record), intent(in) :: fields(:)
    type(tr_encoded), intent(inout) :: out
    call check(size(fields) == 2, 'a head is told all fields')
    call check_told(fields(2))
    call out%append(fields(2)%field(:2))
  end subroutine

  subroutine encoders_are_called()
    integer :: code
    call tr_encoder_register('mine', encode_last, twice, two_fields)
    call check(recorded() == 'tr_encoder_register [mine] 3: 06000000 =0,4 4: 06000000000000000400000000000000 =0,16' &
      //' 5: 0000c040 =0,4 6: 6162 0102 failed[no more] at 4 =0,4 bound=12 head: 7465 =0', 'got '//recorded())
    refuses = .true.
    call tr_encoder_register('refusing', encode_last, twice)
    call check(index(recorded(), ' failed[no such field] at 2 bound=12') > 0, 'a bound refuses: got '//recorded())
    call tr_encoder_register('other', encode_last, ierr=code)
    call check(code == TR_OK .and. index(recorded(), 'bound') == 0 .and. index(recorded(), 'head') == 0, &
               'functions that are left out are none')
  end subroutine
end module
