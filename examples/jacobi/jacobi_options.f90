! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The command line.
module jacobi_options
  implicit none
  private
  public :: options_type, read_options, print_help

  type :: options_type
    integer :: size = 1000, iterations = 100, save_every = 10, checkpoint_every = 0
    character(:), allocatable :: mode, letters, out, progress, checkpoint_mode
    logical :: keep = .false., verify = .false., sync = .false., restart = .false., help = .false.
  end type

  character(*), parameter :: names(5) = [character(14) :: 'old', 'parallel', 'local', 'async-local', 'async-parallel']
  character(*), parameter :: all_letters(5) = [character(2) :: '', 'p', 'l', 'ls', 'ps']

contains

  ! `problem` is empty if all is well. Every rank reads the same command line.
  subroutine read_options(chosen, problem)
    type(options_type), intent(out) :: chosen
    character(:), allocatable, intent(out) :: problem
    character(:), allocatable :: name
    integer :: n
    chosen%mode = 'parallel'
    chosen%out = '.'
    chosen%progress = 'auto'
    chosen%checkpoint_mode = 'p'
    problem = ''
    n = 1
    do while (n <= command_argument_count() .and. problem == '')
      name = argument(n)
      n = n + 1
      select case (name)
        case ('--help', '-h')
          chosen%help = .true.
        case ('--keep')
          chosen%keep = .true.
        case ('--verify')
          chosen%verify = .true.
        case ('--sync')
          chosen%sync = .true.
        case ('--restart')
          chosen%restart = .true.
        case ('--quiet')
          chosen%progress = 'none'
        case default
          call read_value(name, argument(n), chosen, problem)
          n = n + 1
      end select
    end do
    if (problem == '') call check(chosen, problem)
  end subroutine

  subroutine read_value(name, value, chosen, problem)
    character(*), intent(in) :: name, value
    type(options_type), intent(inout) :: chosen
    character(:), allocatable, intent(inout) :: problem
    integer :: status
    status = 0
    select case (name)
      case ('--size')
        read(value, *, iostat=status) chosen%size
      case ('--iterations')
        read(value, *, iostat=status) chosen%iterations
      case ('--save-every')
        read(value, *, iostat=status) chosen%save_every
      case ('--checkpoint')
        read(value, *, iostat=status) chosen%checkpoint_every
      case ('--checkpoint-mode')
        chosen%checkpoint_mode = value
      case ('--mode')
        chosen%mode = value
      case ('--out')
        chosen%out = value
      case ('--progress')
        chosen%progress = value
      case default
        problem = 'unknown option "'//name//'"; see --help'
    end select
    if (status /= 0) problem = name//': a whole number expected, got "'//value//'"'
  end subroutine

  subroutine check(chosen, problem)
    type(options_type), intent(inout) :: chosen
    character(:), allocatable, intent(inout) :: problem
    integer :: n
    do n = 1, size(names)
      if (names(n) == chosen%mode) chosen%letters = trim(all_letters(n))
    end do
    if (.not. allocated(chosen%letters)) problem = '--mode: old, parallel, local, async-local or async-parallel'
    if (all(chosen%progress /= [character(5) :: 'auto', 'bar', 'lines', 'none'])) &
      problem = '--progress: auto, bar, lines or none'
    if (chosen%size < 3) problem = '--size: at least 3'
    if (chosen%iterations < 1) problem = '--iterations: at least 1'
    if (chosen%save_every < 0) problem = '--save-every: a number of iterations, or 0 for never'
    if (chosen%checkpoint_every < 0) problem = '--checkpoint: a number of iterations, or 0 for never'
    if (all(chosen%checkpoint_mode /= ['p', 'l'])) problem = '--checkpoint-mode: p or l'
    if (chosen%out == '') problem = '--out: a directory'
  end subroutine

  ! Returns an empty text if there are not so many.
  function argument(n) result(text)
    integer, intent(in) :: n
    character(:), allocatable :: text
    integer :: length
    length = 0
    if (n <= command_argument_count()) call get_command_argument(n, length=length)
    allocate(character(length) :: text)
    if (length > 0) call get_command_argument(n, text)
  end function

  subroutine print_help()
    integer :: n
    character(*), parameter :: lines(33) = [character(101) :: &
      'jacobi_fortran: the Jacobi iteration on a grid of L x L points, cut into blocks, that saves its array', &
      'every few iterations and prints what that cost. jacobi_c is the same in C.', &
      '', &
      'usage: mpirun -n N jacobi_fortran [options]', &
      '', &
      '  --size L             points along each side                                    (1000)', &
      '  --iterations N                                                                 (100)', &
      '  --save-every N       iterations between saves of the array; 0: never           (10)', &
      '  --mode MODE          old, parallel, local, async-local or async-parallel       (parallel)', &
      '  --out DIR            where the files go; it must exist                         (.)', &
      '  --keep               a file for each save; without it two are overwritten in turn', &
      '  --verify             read the result back, in the same mode, and compare it', &
      '  --checkpoint N       iterations between checkpoints of the run; 0: never       (0)', &
      '  --checkpoint-mode M  p: one file, l: a file for each rank                      (p)', &
      '  --sync               checkpoints are on storage before the next iteration', &
      '  --restart            go on from the last checkpoint in the directory, if there is one', &
      '  --progress HOW       auto, bar, lines or none                                  (auto)', &
      '  --quiet              the same as --progress none', &
      '  --help', &
      '', &
      'examples', &
      '  # 100 iterations of 1000 x 1000 points, saved 10 times into two files that take turns', &
      '  mpirun -n 4 jacobi_fortran', &
      '  # the same on a disk of 20 MB/s, saved while the program computes on', &
      '  TAILRACE_THROTTLE=20MB/s mpirun -n 4 jacobi_fortran --mode async-parallel', &
      '  # stopped after 60 iterations, it goes on on another number of ranks', &
      '  mpirun -n 4 jacobi_fortran --iterations 60 --checkpoint 20', &
      '  mpirun -n 3 jacobi_fortran --iterations 100 --checkpoint 20 --restart', &
      '', &
      'Files: jacobi_a.dat and jacobi_b.dat (or jacobi_0010.dat, ...), and jacobi_result.dat; of the local', &
      'modes one for each rank, as jacobi_result.0003.dat. Checkpoints: jacobi_first.ckpt and', &
      'jacobi_second.ckpt in turn; jacobi_c goes on from them, too.', &
      'Exit status: 0 done, 1 failed (the reason is printed), 2 a wrong option.']
    do n = 1, size(lines)
      print '(a)', trim(lines(n))
    end do
  end subroutine
end module
