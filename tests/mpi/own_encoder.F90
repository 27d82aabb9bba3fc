! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! own_encoder.c in Fortran.
module run_length
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use tailrace
  implicit none
  logical :: fails = .false., has_no_bound = .false.

contains

  recursive subroutine encode(record, out)
    type(tr_record), intent(in) :: record
    type(tr_encoded), intent(inout) :: out
    real(real32), pointer :: narrow(:,:)
    real(real64), pointer :: wide(:)
    real(real64), allocatable :: values(:)
    integer(int32) :: i, run
    call record%values(narrow)
    call record%values(wide)
    if (associated(narrow)) values = reshape(real(narrow, real64), [size(narrow)])
    if (associated(wide)) values = wide
    if (fails .and. nint(record%level) == 850 .and. record%lead == 7200) then
      call out%fail('too hot', index=12)
      return
    end if
    call out%append(record%field)
    call out%append(record%level)
    call out%append(record%lead)
    run = 0
    do i = 1, size(values, kind=int32)
      run = run + 1_int32
      if (i < size(values)) then
        if (.not. (values(i + 1) < values(i) .or. values(i + 1) > values(i))) cycle
      end if
      call out%append(run)
      call out%append(values(i:i))
      run = 0
    end do
  end subroutine

  function bound(field, out) result(bytes)
    type(tr_record), intent(in) :: field
    type(tr_encoded), intent(inout) :: out
    integer(int64) :: bytes
    if (has_no_bound) call out%fail('no bound for that')
    bytes = 64 + 12*field%count
  end function

  subroutine head(fields, out)
    type(tr_record), intent(in) :: fields(:)
    type(tr_encoded), intent(inout) :: out
    integer :: i
    do i = 1, size(fields)
      if (fields(i)%field_number /= i) call out%fail('the fields have other numbers')
      if (any(fields(i)%shape /= [8, 6])) call out%fail('shapes are not as Fortran has them')
      if (i == 1 .and. fields(i)%key('quality') /= '3') call out%fail('an option is lost')
      call out%append(fields(i)%field//' ')
    end do
  end subroutine
end module

program own_encoder
  use mpi_f08
  use run_length
  implicit none
  type(MPI_Comm) :: model
  character(400) :: argument
  integer :: rank, code
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call get_command_argument(3, argument)
  fails = argument == 'fail'
  has_no_bound = argument == 'bound'
  call tr_encoder_register('runs', encode, bound, head, ierr=code)
  if (code == TR_OK) call tr_init(MPI_COMM_WORLD, model, ierr=code)
  if (code /= TR_OK) then
    call say('init', 0_int64)
  else if (model /= MPI_COMM_NULL) then
    call run()
  end if
  call tr_finalize()
  call MPI_Finalize()

contains

  subroutine say(call, step)
    character(*), intent(in) :: call
    integer(int64), intent(in) :: step
    character(:), allocatable :: text
    text = ''
    if (code /= TR_OK) text = tr_error()
    print '("rank ",i0,": ",a,1x,i0,": ",i0,1x,a)', rank, call, step, code, text
  end subroutine

  function number_of(argument_number) result(number)
    integer, intent(in) :: argument_number
    integer(int64) :: number
    call get_command_argument(argument_number, argument)
    read (argument, *) number
  end function

  subroutine run()
    type(tr_layout) :: grid
    type(tr_stream) :: out
    real(real32), allocatable :: t(:,:,:)
    real(real64), allocatable :: q(:,:)
    character(400) :: pattern, options
    integer :: lo(2), hi(2), i, j, level
    integer(int64) :: step
    call get_command_argument(1, pattern)
    call get_command_argument(2, options)
    call grid%block([8, 6])
    lo = grid%own_lower()
    hi = grid%own_upper()
    call out%create(trim(pattern), options=trim(options), ierr=code)
    if (code /= TR_OK) then
      call say('create', 0_int64)
      return
    end if
    allocate (t(lo(1):hi(1), lo(2):hi(2), 2), q(lo(1):hi(1), lo(2):hi(2)))
    call out%define('t', grid, tr_pressure([1000, 850]), type=TR_F32, options='quality=3', ierr=code)
    if (code /= TR_OK) then
      call say('define', 0_int64)
      return
    end if
    call out%define('q', grid, tr_surface(), type=TR_F64)
    do step = number_of(4), number_of(5)
      do j = lo(2), hi(2)
        do i = lo(1), hi(1)
          do level = 1, 2
            t(i, j, level) = real(step + 100*(level - 1) + (8*(j - 1) + i - 1)/3, real32) + 0.25_real32
          end do
          q(i, j) = real((j - 1)*step, real64)
        end do
      end do
      call out%begin(lead=3600*step)
      call out%put('t', t)
      call out%put('q', q)
      call out%end(ierr=code)
      if (code == TR_OK) call out%wait(TR_DURABLE, ierr=code)
      call say('step', step)
    end do
    call out%close(ierr=code)
    call say('close', 0_int64)
  end subroutine
end program
