! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! The command line of the model.
module options
  implicit none
  private
  public :: options_type, read_options, print_help

  type options_type
    integer :: nx = 312, ny = 252, levels = 40
    integer :: hours = 48, output_every = 3, surface_every = 1
    character(:), allocatable :: out, terrain, timings
    character(8) :: progress = 'auto'                 ! auto, bar, lines, none
    character(6) :: ending = '.grib2'                 ! of the names of files
    logical :: output = .true., help = .false., print_grid = .false.
    integer :: checkpoint_every = 0
    logical :: restart = .false.
    logical :: nested = .false., in_memory = .false.
    integer :: boundaries_every = -1, prefetch = 2    ! -1: not said
    character(:), allocatable :: boundaries, follow, hook
  end type

contains

  ! `problem` is empty if all is well. Every rank reads the same command line.
  subroutine read_options(chosen, problem)
    type(options_type), intent(out) :: chosen
    character(:), allocatable, intent(out) :: problem
    character(:), allocatable :: name, text
    integer :: n
    chosen%out = '.'
    chosen%terrain = 'terrain.grib2'
    chosen%timings = ''
    chosen%boundaries = ''
    chosen%follow = ''
    chosen%hook = ''
    problem = ''
    n = 1
    do while (n <= command_argument_count() .and. problem == '')
      name = argument(n)
      n = n + 1
      select case (name)
        case ('--help', '-h')
          chosen%help = .true.
        case ('--print-grid')
          chosen%print_grid = .true.
        case ('--no-output')
          chosen%output = .false.
        case ('--quiet', '-q')
          chosen%progress = 'none'
        case ('--levels')
          call value_of(n, name, number=chosen%levels, problem=problem)
        case ('--hours')
          call value_of(n, name, number=chosen%hours, problem=problem)
        case ('--output-every')
          call value_of(n, name, number=chosen%output_every, problem=problem)
        case ('--surface-every')
          call value_of(n, name, number=chosen%surface_every, problem=problem)
        case ('--checkpoint-every')
          call value_of(n, name, number=chosen%checkpoint_every, problem=problem)
        case ('--restart')
          chosen%restart = .true.
        case ('--nested')
          chosen%nested = .true.
        case ('--boundaries-every')
          call value_of(n, name, number=chosen%boundaries_every, problem=problem)
        case ('--hook')
          call value_of(n, name, text=chosen%hook, problem=problem)
        case ('--boundaries')
          call value_of(n, name, text=chosen%boundaries, problem=problem)
        case ('--boundaries-in-memory')
          chosen%in_memory = .true.
        case ('--prefetch')
          call value_of(n, name, number=chosen%prefetch, problem=problem)
        case ('--follow')
          call value_of(n, name, text=chosen%follow, problem=problem)
        case ('--out')
          call value_of(n, name, text=chosen%out, problem=problem)
        case ('--terrain')
          call value_of(n, name, text=chosen%terrain, problem=problem)
        case ('--timings')
          call value_of(n, name, text=chosen%timings, problem=problem)
        case ('--format')
          call value_of(n, name, text=text, problem=problem)
          if (problem == '') call read_format(text, chosen, problem)
        case ('--size')
          call value_of(n, name, text=text, problem=problem)
          if (problem == '') call read_size(text, chosen, problem)
        case ('--progress')
          call value_of(n, name, text=text, problem=problem)
          if (problem == '') call read_progress(text, chosen, problem)
        case default
          problem = 'unknown option "'//name//'"; see --help'
      end select
    end do
    if (problem == '') call check_nesting(chosen, problem)
    if (problem == '') call check(chosen, problem)
  end subroutine

  ! Fills in what was not said, too.
  subroutine check_nesting(chosen, problem)
    type(options_type), intent(inout) :: chosen
    character(:), allocatable, intent(inout) :: problem
    logical :: reads
    reads = chosen%boundaries /= '' .or. chosen%in_memory .or. chosen%follow /= '' .or. chosen%prefetch /= 2
    if (reads .and. .not. chosen%nested) problem = '--boundaries, --boundaries-in-memory, --prefetch and --follow need --nested'
    if (chosen%nested .and. chosen%hook /= '') problem = '--hook: a nested forecast writes no boundary files'
    if (chosen%hook /= '' .and. chosen%boundaries_every <= 0) problem = '--hook needs --boundaries-every'
    if (chosen%nested .and. chosen%boundaries_every == 0) problem = '--boundaries-every: at least 1 in a nested forecast'
    if (chosen%boundaries == '') chosen%boundaries = chosen%out//'/bd_{base:%Y%m%d%H}+{lead:03h}.grib2'
    if (chosen%boundaries_every == -1) chosen%boundaries_every = merge(3, 0, chosen%nested)
  end subroutine

  subroutine check(chosen, problem)
    type(options_type), intent(in) :: chosen
    character(:), allocatable, intent(inout) :: problem
    if (min(chosen%nx, chosen%ny) < 24) problem = '--size: at least 24x24 points, for the rims at the boundary'
    if (chosen%levels < 1) problem = '--levels: at least 1'
    if (chosen%hours < 1) problem = '--hours: at least 1'
    if (min(chosen%output_every, chosen%surface_every, chosen%checkpoint_every, chosen%boundaries_every) < 0) &
      problem = '--output-every, --surface-every, --checkpoint-every and --boundaries-every: hours, 0 for never'
  end subroutine

  function argument(n) result(text)
    integer, intent(in) :: n
    character(:), allocatable :: text
    integer :: length
    call get_command_argument(n, length=length)
    allocate(character(length) :: text)
    call get_command_argument(n, text)
  end function

  ! The value that follows option `name`, as a text or a whole number.
  subroutine value_of(n, name, text, number, problem)
    integer, intent(inout) :: n
    character(*), intent(in) :: name
    character(:), allocatable, intent(out), optional :: text
    integer, intent(inout), optional :: number
    character(:), allocatable, intent(inout) :: problem
    character(:), allocatable :: given
    integer :: status
    if (present(text)) text = ''
    if (n > command_argument_count()) then
      problem = name//': a value is missing'
      return
    end if
    given = argument(n)
    if (present(text)) text = given
    if (present(number)) then
      read(given, *, iostat=status) number
      if (status /= 0) problem = name//': a whole number expected, got "'//given//'"'
    end if
    n = n + 1
  end subroutine

  subroutine read_size(text, chosen, problem)
    character(*), intent(in) :: text
    type(options_type), intent(inout) :: chosen
    character(:), allocatable, intent(inout) :: problem
    integer :: cross, status
    cross = index(text, 'x')
    status = 1
    if (cross > 1 .and. cross < len(text)) then
      read(text(:cross-1), *, iostat=status) chosen%nx
      if (status == 0) read(text(cross+1:), *, iostat=status) chosen%ny
    end if
    if (status /= 0) problem = '--size: expected NXxNY such as 312x252, got "'//text//'"'
  end subroutine

  subroutine read_format(text, chosen, problem)
    character(*), intent(in) :: text
    type(options_type), intent(inout) :: chosen
    character(:), allocatable, intent(inout) :: problem
    select case (text)
      case ('grib2')
        chosen%ending = '.grib2'
      case ('cdf5')
        chosen%ending = '.nc'
      case ('netcdf4')
        chosen%ending = '.nc4'
      case ('zarr')
        chosen%ending = '.zarr'
      case default
        problem = '--format: grib2, cdf5, netcdf4 or zarr, got "'//text//'"'
    end select
  end subroutine

  subroutine read_progress(text, chosen, problem)
    character(*), intent(in) :: text
    type(options_type), intent(inout) :: chosen
    character(:), allocatable, intent(inout) :: problem
    if (chosen%progress /= 'none') chosen%progress = text
    if (all(text /= [character(5) :: 'auto', 'bar', 'lines', 'none'])) &
      problem = '--progress: auto, bar, lines or none, got "'//text//'"'
  end subroutine

  subroutine print_help()
    integer :: n
    character(*), parameter :: lines(65) = [character(116) :: &
      'weather: a shallow-water forecast for the North Atlantic and Europe over real orography, written to', &
      'GRIB2 or NetCDF files or Zarr stores through Tailrace.', &
      '', &
      'usage: mpirun -n N weather [options]', &
      '', &
      '  --size NXxNY         grid points; the area stays the same                         (312x252)', &
      '  --levels N           hybrid levels of t, u and v                                  (40)', &
      '  --hours H            length of the forecast                                       (48)', &
      '  --output-every H     hours between outputs of all fields, one file each; 0: never (3)', &
      '  --surface-every H    hours between outputs of surface fields, in one file; 0: never (1)', &
      '  --checkpoint-every H hours between checkpoints, DIR/restart.0 and .1; 0: never    (0)', &
      '  --restart            go on from the newest checkpoint in DIR; from the start if there is none', &
      '  --boundaries-every H hours between boundary files, outer_2026030100+000.grib2, ...; 0: none (0; nested: 3)', &
      '  --hook COMMAND       run by the shell with each finished boundary file as $1      (none)', &
      '  --nested             a forecast for Europe alone, half as wide and high, held to boundary files at its rims', &
      '  --boundaries PATTERN the files that it reads        (DIR/bd_{base:%Y%m%d%H}+{lead:03h}.grib2)', &
      '  --prefetch N         files that are read ahead                                    (2)', &
      '  --follow DURATION    wait so long for each file that is not there yet, as 10m     (not at all)', &
      '  --boundaries-in-memory  read all of them at the start', &
      '  --format FORMAT      grib2; cdf5: classic NetCDF with 64-bit sizes; netcdf4; zarr (grib2)', &
      '  --out DIR            where the files go; it must exist                            (.)', &
      '  --terrain FILE       GRIB2 message with the height of the ground on the model''s grid (terrain.grib2)', &
      '  --timings FILE       seconds per step and in output calls, as JSON                (not written)', &
      '  --no-output          no files but those of --boundaries-every and --checkpoint-every', &
      '  --progress HOW       auto, bar, lines or none', &
      '  --quiet              the same as --progress none', &
      '  --print-grid         print the grid as a description for cdo, and end', &
      '  --help', &
      '', &
      'How the files are written is said by the environment: TAILRACE_SERVERS=1 makes the last rank an I/O', &
      'server, TAILRACE_THROTTLE=20MB/s slows the storage down, TAILRACE_REPORT=report.json keeps a record.', &
      'TAILRACE_TIME_LIMIT=2h, USR1 or TERM stop it early, with whole files; with --checkpoint-every or --restart', &
      'it saves a last checkpoint then.', &
      '', &
      'examples', &
      '  # the terrain of a small grid, from the topography built into cdo', &
      '  weather --size 156x126 --print-grid > grid.txt', &
      '  cdo -f grb2 -setname,orog -remapbil,grid.txt -topo terrain.grib2', &
      '  # a day on 4 ranks, each of which writes what it has to', &
      '  mpirun -n 4 weather --size 156x126 --hours 24', &
      '  # the same files from 4 ranks and 1 server', &
      '  TAILRACE_SERVERS=1 mpirun -n 5 weather --size 156x126 --hours 24', &
      '  # in NetCDF: fc_2026030100+003.nc, ... and surface_2026030100.nc', &
      '  mpirun -n 4 weather --size 156x126 --hours 24 --format cdf5', &
      '  # in Zarr, which xarray opens: fc_2026030100+003.zarr, ... and surface_2026030100.zarr', &
      '  mpirun -n 4 weather --size 156x126 --hours 24 --format zarr', &
      '  # a forecast that may be killed, and gone on with on another number of ranks: the same files', &
      '  mpirun -n 4 weather --size 156x126 --hours 24 --checkpoint-every 3', &
      '  mpirun -n 3 weather --size 156x126 --hours 24 --checkpoint-every 3 --restart', &
      '  # a nested forecast: boundaries from a run for the whole area, interpolated by cdo (nested.py does all of it)', &
      '  mpirun -n 4 weather --size 156x126 --hours 24 --boundaries-every 3', &
      '  weather --nested --size 156x126 --print-grid > nested.txt', &
      '  cdo -f grb2 -setname,orog -remapbil,nested.txt -topo nested_terrain.grib2', &
      '  for lead in 000 003 006 009 012 015 018 021 024; do', &
      '    cdo -b 24 remapbil,nested.txt outer_2026030100+$lead.grib2 bd_2026030100+$lead.grib2; done', &
      '  mkdir nested && mv bd_* nested', &
      '  mpirun -n 4 weather --nested --size 156x126 --hours 24 --terrain nested_terrain.grib2 --out nested', &
      '  # the size of a regional model in operation', &
      '  weather --size 468x378 --print-grid > grid.txt', &
      '  cdo -f grb2 -setname,orog -remapbil,grid.txt -topo terrain.grib2', &
      '  TAILRACE_SERVERS=2 mpirun -n 18 weather --size 468x378', &
      '', &
      'Files: fc_2026030100+003.grib2, ... (t, u, v, sp, tp) and surface_2026030100.grib2 (sp, tp, gh at 500 hPa).', &
      'Exit status: 0 done or stopped, 1 failed (the reason is printed), 2 a wrong option.', &
      '']
    do n = 1, size(lines) - 1
      print '(a)', trim(lines(n))
    end do
  end subroutine
end module
